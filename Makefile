# Everything runs from here: make help lists it.

GO ?= go

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The longest first. They wait for much of their time, and the others fill that.
PARTS = test-e2e-shared test-e2e-own test-e2e-fleet lint test-unit test-fuzz test-crossplane test-packages test-bench test-epp test-controlplane
BESIDE = $(MAKE) --no-print-directory --output-sync=target

.PHONY: test
test: e2e ## Run every test and check, three at a time. Each shows what it has to say when it is done.
	@echo "running $(PARTS)"
	@$(BESIDE) --jobs=3 $(PARTS)

# The function starts no goroutine of its own. What there is for the race detector to find is what calls
# share, so it is on where many are served at once, and off where it would only make tests take five times as long.
.PHONY: test-unit
test-unit: ## Run the unit, golden and property tests, and serve many calls at once with the race detector.
	$(GO) test -timeout 20m ./...
	$(GO) test -timeout 20m -race -run '^TestServe$$' .

# Each fuzzer for a number of inputs, from its seeds and from what it has found before. With a time instead, such as
# 60s, Go reports an input that is still running when the time is over as a failure.
FUZZTIME ?= 1000x
# One leaves a core to what runs beside it.
FUZZWORKERS ?= 1

.PHONY: test-fuzz
test-fuzz: ## Run each fuzzer for FUZZTIME.
	@for target in $$(grep -rEo --include='*_test.go' 'func Fuzz[A-Za-z]+' . --exclude-dir=test | sed 's/func //'); do \
		dir=$${target%/*}; name=$${target##*:}; \
		echo "fuzz $$name in $$dir"; \
		$(GO) test "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -parallel $(FUZZWORKERS) || exit 1; \
	done

.PHONY: test-epp
test-epp: ## Load every endpoint picker configuration with the releases that read it.
	cd test/epp/v1.2.1 && $(GO) test ./...
	cd test/epp/v1.5.0 && $(GO) test ./...

.PHONY: golden
golden: ## Write the examples' goldens anew. Read the difference.
	$(GO) test . -run TestExamples -update

.PHONY: generate
generate: ## Write the XRDs, the input's CRD and docs/api.md from the Go types.
	$(GO) run ./internal/api/xrdgen

.PHONY: check-generated
check-generated: ## Fail if a generated file is stale.
	$(GO) test -count=1 -run TestFresh ./internal/api/xrdgen

# A linter is built like any other command, at the version named here. What it remembers has the paths of
# the clone that it looked at, so each clone has a memory of its own: one that was deleted would make others fail.
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

.PHONY: lint
lint: ## Run the linters of .golangci.yml. The first run builds them, which takes minutes.
	GOGC=300 GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint $(GOLANGCI_LINT) run ./...

# Builds etcd, Kubernetes and LeaderWorkerSet from their modules: minutes the first time, nothing later.
.PHONY: test-controlplane
test-controlplane: ## Apply every example to a real API server, with the real webhooks of what is composed.
	test/tools/build.sh etcd kube-apiserver lws-manager
	cd test/controlplane && $(GO) vet ./... && $(GO) test -count=1 -timeout 30m .

.PHONY: test-e2e
test-e2e: e2e ## Install the packages on whole control planes, serve, break everything, upgrade and uninstall.
	@$(BESIDE) --jobs=3 test-e2e-shared test-e2e-own test-e2e-fleet

# The tests that install and uninstall, break what others need, or need more clusters, have control planes of their own.
OWN = ^(TestXR|TestClaims)$$
FLEET = ^TestFleet$$

# One program has them all, which is linked once. So are the versions that they install.
.PHONY: e2e
e2e: tools
	@$(GO) -C test/controlplane vet ./e2e
	@$(GO) -C test/controlplane test -c -o ../../.cache/bin/e2e.test ./e2e
	@for v in v0.1.0 v0.1.1; do \
		$(GO) -C test/packages run . build --version $$v --arch $$($(GO) env GOARCH) --dist $(CURDIR)/.cache/packages/$$v || exit 1; \
	done

E2E = cd test/controlplane/e2e && ../../../.cache/bin/e2e.test -test.timeout 45m -packages $(CURDIR)/.cache/packages

# They need the tools and that program. These are no prerequisites here, because make would start them after everything that has none.
.PHONY: test-e2e-own
test-e2e-own:
	$(E2E) -test.run '$(OWN)'

.PHONY: test-e2e-fleet
test-e2e-fleet:
	$(E2E) -test.run '$(FLEET)'

.PHONY: test-e2e-shared
test-e2e-shared:
	$(E2E) -test.skip '$(OWN)|$(FLEET)' -test.parallel 6

# A whole control plane on this machine: Kubernetes, LeaderWorkerSet, Volcano, Crossplane and a registry, without
# Docker and without being root. It needs Linux, for the addresses of its pods.
.PHONY: tools
tools:
	@command -v $(GO) git >/dev/null || { echo "Go 1.26 and git are needed, to build what is run" >&2; exit 1; }
	@test/tools/build.sh $$(test/tools/build.sh --list)

# Nodes of the control plane, the GPUs of each, and how many of them are below one of Volcano's HyperNodes (0: there are none).
NODES ?= 12
GPUS ?= 8
HYPERNODE ?= 0
# Remote clusters with as many nodes each, for provider-kubernetes.
CLUSTERS ?= 0

.PHONY: up
up: tools ## Start a control plane with NODES of GPUS each, and CLUSTERS like it beside it, in the background. The first run builds it, which takes minutes.
	@$(GO) -C test/controlplane build -o ../../.cache/bin/controlplane ./up
	@.cache/bin/controlplane up --nodes $(NODES) --gpus $(GPUS) --nodes-per-hypernode $(HYPERNODE) --clusters $(CLUSTERS)

.PHONY: down
down: ## End the control plane, and remove everything that it left.
	@if [ -x .cache/bin/controlplane ]; then .cache/bin/controlplane down; fi

.PHONY: demo
demo: up ## Install the packages on the control plane, and show the quickstart come up.
	@test/controlplane/demo.sh

.PHONY: demo-fleet
demo-fleet: CLUSTERS = 3
demo-fleet: NODES = 4
demo-fleet: up ## Install the packages on a control plane above three clusters, and show services land, and move.
	@test/controlplane/demo-fleet.sh

# The version of a release, such as v0.1.0. Without one, packages are of something in between.
VERSION ?=
REGISTRY ?= ghcr.io/fusioninfer
ARCH ?= amd64,arm64

.PHONY: packages
packages: ## Build the packages of VERSION into dist/ with an SBOM for each, without Docker. The first run builds Crossplane's CLI, which takes minutes.
	$(GO) -C test/packages run . build --version "$(VERSION)" --arch "$(ARCH)"

.PHONY: push-packages
push-packages: ## Push the packages of VERSION to REGISTRY, and list them with their digests and SBOMs.
	@$(GO) -C test/packages run . push --version "$(VERSION)" --registry "$(REGISTRY)" --arch "$(ARCH)"

.PHONY: test-packages
test-packages: ## Build the packages and look into them, push them to a registry on loopback and pull them.
	cd test/packages && $(GO) test -count=1 -timeout 30m ./...

.PHONY: release-goldens
release-goldens: ## Keep the pods of the examples as those of VERSION, which upgrades from it must not restart.
	$(GO) test -count=1 -run '^TestUpgrade$$' . -keep "$(VERSION)"

.PHONY: test-crossplane
test-crossplane: ## Render every example with real Crossplane as well, and validate what comes out. The first run builds it, which takes minutes.
	test/tools/build.sh crossplane crossplane-core
	cd test/crossplane && $(GO) vet ./... && $(GO) test -count=1 -timeout 30m ./...

# Five minutes. It prints figures and never fails for being slow: a machine that is busy with something else is no defect.
.PHONY: bench
bench: ## Measure the function beside the least a function can do and beside function-go-templating; write docs/performance.md.
	$(GO) -C test/bench run . --write ../../docs/performance.md

# Some ten minutes. It prints figures and never fails for being slow.
.PHONY: bench-scale
bench-scale: tools ## Measure 200 services, and one of 300 replicas, on a whole control plane; write docs/performance.md.
	$(GO) -C test/controlplane run ./scale --write ../../docs/performance.md

.PHONY: test-bench
test-bench: ## Make sure that what make bench compares does the same work.
	cd test/bench && $(GO) vet ./... && $(GO) test -count=1 ./...
