# The function's image, for those who have Docker: make packages needs none. The builder runs on
# the machine's own architecture and compiles for the image's. The digest is that of the index,
# which has both. There is no syntax line: BuildKit's own frontend knows all of this, and is not pulled.
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOFLAGS=-trimpath

COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -buildvcs=false -ldflags="-s -w -X github.com/fusioninfer/function-inferenceservice/internal/cli.version=${VERSION}" -o /function .

# No shell, no libraries, no certificates: the function calls nobody.
FROM scratch
COPY --from=build /function /function
EXPOSE 9443 8080
USER 65532:65532
ENTRYPOINT ["/function"]
