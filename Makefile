# All commands of the project. make help lists them.

GO ?= go

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# This builds neither Kubernetes nor Crossplane nor the linters, so it takes minutes on a fresh machine.
.PHONY: test
test: ## Run the unit, golden, property and wire tests. At most ten minutes on a fresh machine, then about one.
	$(GO) test -timeout 20m ./...

.PHONY: test-all
test-all: test ## Run every test and check: make test, then make test-rest. An hour and a quarter on a fresh machine, then an hour.
	@$(MAKE) --no-print-directory test-rest

# The longest parts come first. Parts wait for much of their time, so two run at once. With three, there are up to ten control planes, which
# take half of two cores while nothing happens. Parts do without go vet: the part lint has the same checks for all modules, and go vet
# would read all dependencies of each.
PARTS = test-e2e-shared test-e2e-own lint test-controlplane test-packages test-fuzz test-bench test-race test-epp test-queries
# On a machine that would be too slow for them, .ci/run leaves out MORE, or MORE and LONG.
LONG = test-e2e-fleet test-simulation test-crossplane
MORE = test-e2e-traffic test-e2e-engines test-e2e-kueue
BESIDE = $(MAKE) --no-print-directory --output-sync=target

.PHONY: test-rest
test-rest: test-parts ## Run the parts of make test-all that make test does not have, two at once. Each part prints its output when it ends.
	@$(MAKE) --no-print-directory test-long
	@$(MAKE) --no-print-directory test-more

.PHONY: test-parts
test-parts: e2e ## The parts of make test-rest that always run before a change lands.
	@echo "running $(PARTS)"
	@$(BESIDE) --jobs=2 $(PARTS)

.PHONY: test-long
test-long: e2e ## The parts of make test-rest that have several clusters, or many random fleets.
	@echo "running $(LONG)"
	@$(BESIDE) --jobs=2 $(LONG)

.PHONY: test-more
test-more: e2e ## The parts of make test-rest that send requests and run engines for long.
	@echo "running $(MORE)"
	@$(BESIDE) --jobs=2 $(MORE)

# The function starts no goroutines, so only concurrent calls can have races. The race detector is on only for the test
# with concurrent calls, because it makes tests take five times as long.
.PHONY: test-race
test-race: ## Serve many calls at once with the race detector. Needs gcc and libc6-dev.
	$(GO) test -vet=off -timeout 20m -race -run '^TestServe$$' .

# The number of inputs of each fuzzer. With a time such as 60s, Go would report an input that is still running when the
# time is over as a failure.
FUZZTIME ?= 1000x
# One worker leaves a core for the other parts.
FUZZWORKERS ?= 1

.PHONY: test-fuzz
test-fuzz: ## Run each fuzzer for FUZZTIME inputs.
	@for target in $$(grep -rEo --include='*_test.go' 'func Fuzz[A-Za-z]+' . --exclude-dir=test | sed 's/func //'); do \
		dir=$${target%/*}; name=$${target##*:}; \
		echo "fuzz $$name in $$dir"; \
		$(GO) test -vet=off "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel $(FUZZWORKERS) || exit 1; \
	done

# The number of random fleets of make test-simulation, and the seed of the first. A fleet takes some two seconds. There are an eighth
# more in which services stop while nobody uses them, as many with quotas, as many where Kueue admits, and twice as many in which one
# service is changed again and again: in other clusters, and in that of the control plane.
SEEDS ?= 200
FIRST ?= 0

.PHONY: test-simulation
test-simulation: ## Run SEEDS random fleets through the function, on a model of the control plane and its clusters.
	$(GO) test -count=1 -timeout 10h ./test/simulation -run '^Test(Simulation|Sleepers|Quotas|Kueue|Roll|Here)$$' -seeds $(SEEDS) -first $(FIRST)

.PHONY: test-epp
test-epp: ## Load the endpoint picker configurations with the loaders of the endpoint picker's releases.
	cd test/epp/v1.2.1 && $(GO) test -vet=off ./...
	cd test/epp/v1.5.0 && $(GO) test -vet=off ./...

.PHONY: test-queries
test-queries: ## Evaluate what targets measure, and the alerts, with Prometheus's own library.
	cd test/tools/prometheus && $(GO) test -vet=off ./...

.PHONY: golden
golden: ## Write the goldens of the examples. Read the difference.
	$(GO) test ./example -run TestExamples -update

.PHONY: generate
generate: ## Write the XRDs, the CRDs of the inputs and docs/api.md from the Go types, and copy schemas of the Gateway API.
	$(GO) run ./internal/api/xrdgen

.PHONY: check-generated
check-generated: ## Fail if a generated file is stale.
	$(GO) test -count=1 -run TestFresh ./internal/api/xrdgen

# go run builds the linter at this version. Its cache has the paths of a clone, so each clone has its own cache: with a
# shared one, lint would fail after another clone was deleted.
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
# The modules that have code of the project.
LINTED = . test/bench test/controlplane test/crossplane test/epp/v1.2.1 test/epp/v1.5.0 test/packages test/tools/prometheus

.PHONY: lint
lint: ## Run the linters of .golangci.yml. The first run builds them, which takes minutes.
	@for module in $(LINTED); do \
		echo "lint $$module"; \
		(cd $$module && GOGC=300 GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint $(GOLANGCI_LINT) run ./...) || exit 1; \
	done

# The first run builds etcd, Kubernetes and LeaderWorkerSet from their modules, which takes minutes.
.PHONY: test-controlplane
test-controlplane: ## Apply every example to a real API server, with the real webhooks of the composed kinds.
	test/tools/build.sh etcd kube-apiserver lws-manager
	cd test/controlplane && $(GO) test -vet=off -count=1 -timeout 30m . ./cluster ./engine ./node ./traffic ./up

.PHONY: test-e2e
test-e2e: e2e ## Install the packages on whole control planes, serve, break everything, upgrade and uninstall.
	@$(BESIDE) --jobs=2 test-e2e-traffic test-e2e-shared test-e2e-fleet test-e2e-own test-e2e-engines test-e2e-kueue

# Some tests install and uninstall packages, break what other tests need, or need several clusters. They have their own
# control planes.
OWN = ^(TestXR|TestClaims|TestUpgrade)$$
ENGINES = ^(TestEngines|TestScaling|TestModels|TestModelCache|TestModelClaims|TestAdapters)$$
TRAFFIC = ^TestTraffic$$
FLEET = ^TestFleet$$
KUEUE = ^TestKueue$$
SCALED = ^TestAutoscaling(Fleet|Picker|Adapter)?$$

# The commit whose packages TestUpgrade upgrades from. It is the newest release, once there is one. Until then it is a
# commit whose endpoint pickers drain, as those of today, so that no request fails while the next one replaces them.
PREVIOUS ?= 1c7c17308d45ad641b0ef8b4a86f4448ac9feba8

# The tests are one program, which is built once. So are the packages that they install: two of this commit, and one of
# the previous version, with the manifests that install it.
.PHONY: e2e
e2e: tools ## Build what make test-e2e and its parts run: the tools, the tests, and the packages of this commit and of PREVIOUS.
	@$(GO) -C test/controlplane test -vet=off -c -o ../../.cache/bin/e2e.test ./e2e
	@for v in v0.1.0 v0.1.1; do \
		.cache/bin/packager build --root . --version $$v --arch $$($(GO) env GOARCH) --dist $(CURDIR)/.cache/packages/$$v || exit 1; \
	done
	@test/tools/previous.sh $(PREVIOUS) v0.0.9 .cache/packages/v0.0.9

E2E = cd test/controlplane/e2e && ../../../.cache/bin/e2e.test -test.timeout 60m -packages $(CURDIR)/.cache/packages

# These need the target e2e, but do not have it as a prerequisite: make would then start them after all targets without
# prerequisites.
.PHONY: test-e2e-own
test-e2e-own: ## The tests of make test-e2e that install, upgrade and uninstall. Run make e2e first.
	$(E2E) -test.run '$(OWN)'

.PHONY: test-e2e-engines
test-e2e-engines: ## The tests of make test-e2e that run engines, models, adapters and loaders on control planes of their own. Run make e2e first.
	$(E2E) -test.run '$(ENGINES)'

.PHONY: test-e2e-traffic
test-e2e-traffic: ## The tests of make test-e2e that count the answers to requests. Run make e2e first.
	$(E2E) -test.run '$(TRAFFIC)'

.PHONY: test-e2e-fleet
test-e2e-fleet: ## The tests of make test-e2e with several clusters. Run make e2e first.
	$(E2E) -test.run '$(FLEET)'

.PHONY: test-e2e-kueue
test-e2e-kueue: ## The tests of make test-e2e with Kueue. Run make e2e first.
	$(E2E) -test.run '$(KUEUE)'

.PHONY: test-e2e-shared
test-e2e-shared: ## All other tests of make test-e2e, on one control plane. Run make e2e first.
	$(E2E) -test.skip '$(OWN)|$(ENGINES)|$(TRAFFIC)|$(FLEET)|$(KUEUE)|$(SCALED)' -test.parallel 6

# It is no part of make test-all, because KEDA and Prometheus take a quarter of an hour to build.
.PHONY: test-autoscaling
test-autoscaling: e2e ## Scale services by their load with real KEDA and Prometheus. Forty minutes, and a quarter of an hour more on a fresh machine.
	@test/tools/build.sh keda-operator keda-adapter prometheus-adapter prometheus kube-state-metrics
	$(E2E) -test.run '$(SCALED)' -test.v

# The programs of a whole control plane on this machine: Kubernetes, LeaderWorkerSet, Volcano, Crossplane and a registry.
# It needs neither Docker nor root, but Linux, for the addresses of its pods.
.PHONY: tools
tools: ## Build the programs of a whole control plane into .cache/bin. The first run takes minutes.
	@command -v $(GO) git >/dev/null || { echo "Go 1.26 and git are required" >&2; exit 1; }
	@test/tools/build.sh $$(test/tools/build.sh --list)

# The number of nodes of the control plane, of GPUs per node, and of nodes per HyperNode of Volcano (0 means no HyperNodes).
NODES ?= 12
GPUS ?= 8
HYPERNODE ?= 0
# The number of remote clusters for provider-kubernetes. Each has NODES nodes.
CLUSTERS ?= 0
# Whether KEDA, Prometheus and kube-state-metrics run, too.
AUTOSCALING ?= false

.PHONY: up
up: tools ## Start a control plane with NODES nodes of GPUS GPUs, and CLUSTERS remote clusters, in the background. The first run builds them, which takes minutes.
	@$(GO) -C test/controlplane build -o ../../.cache/bin/controlplane ./up
	@.cache/bin/controlplane up --nodes $(NODES) --gpus $(GPUS) --nodes-per-hypernode $(HYPERNODE) --clusters $(CLUSTERS) --autoscaling=$(AUTOSCALING)

.PHONY: down
down: ## Stop the control plane, and remove its files.
	@if [ -x .cache/bin/controlplane ]; then .cache/bin/controlplane down; fi

.PHONY: demo
demo: up ## Install the packages on the control plane, and show how the quickstart becomes ready.
	@test/controlplane/demo.sh

.PHONY: demo-fleet
demo-fleet: CLUSTERS = 3
demo-fleet: NODES = 4
demo-fleet: up ## Install the packages on a control plane with three remote clusters, and show who answers requests during a drain and a failover.
	@test/controlplane/demo-fleet.sh

.PHONY: demo-scaling
demo-scaling: AUTOSCALING = true
demo-scaling: up ## Install the packages on a control plane with KEDA and Prometheus, show how a role follows its load, and draw the dashboards. Its programs take a quarter of an hour to build.
	@test/controlplane/demo-scaling.sh

# The version of a release, such as v0.1.0. Packages between releases have none.
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
test-packages: ## Build the packages, check their contents, and push and pull them with a registry on loopback.
	cd test/packages && $(GO) test -vet=off -count=1 -timeout 30m ./...

.PHONY: release-goldens
release-goldens: ## Store the pods of the examples for VERSION. Later versions must not restart them.
	$(GO) test -count=1 -run '^TestUpgrade$$' ./test/upgrade -keep "$(VERSION)"

.PHONY: test-crossplane
test-crossplane: ## Render every example with real Crossplane, too, and validate the output. The first run builds Crossplane, which takes minutes.
	test/tools/build.sh crossplane crossplane-core
	cd test/crossplane && $(GO) test -vet=off -count=1 -timeout 30m ./...

# It takes about eight minutes. It only reports: it does not fail if the function is slow, because the machine may be busy.
.PHONY: bench
bench: ## Compare the function with a minimal function and with function-go-templating, and write docs/performance.md.
	$(GO) -C test/bench run . --write ../../docs/performance.md

# It takes about a quarter of an hour. It only reports, too.
.PHONY: bench-scale
bench-scale: tools ## Measure 200 services, and one of 300 replicas, on a whole control plane, and write docs/performance.md.
	$(GO) -C test/controlplane run ./scale --write ../../docs/performance.md

# It takes some minutes. It only reports, too.
.PHONY: bench-fleet
bench-fleet: ## Print what 1,000 services on 20 clusters cost: reconciles, sizes of requests, and one time.
	$(GO) run ./test/simulation/benchfleet

.PHONY: test-bench
test-bench: ## Check that the functions that make bench compares do the same work.
	cd test/bench && $(GO) test -vet=off -count=1 ./...
