# The image of the function, built with Docker. make packages builds it without Docker. The build
# stage runs on the machine's architecture and compiles for the image's. The digest is that of the
# index, which has both architectures. There is no syntax line, so BuildKit uses its built-in
# frontend and pulls none.
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

# The image has no shell, no libraries and no certificates: the function makes no connections.
FROM scratch
COPY --from=build /function /function
EXPOSE 9443 8080
USER 65532:65532
ENTRYPOINT ["/function"]
