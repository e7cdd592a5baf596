# Everything runs from here: make help lists it.

GO ?= go

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: lint test-unit test-fuzz test-epp ## Run every test and check.

.PHONY: test-unit
test-unit: ## Run the unit, golden and property tests with the race detector.
	$(GO) test -race -timeout 20m ./...

# Each fuzzer for a while, from its seeds and from what it has found before.
FUZZTIME ?= 15s

.PHONY: test-fuzz
test-fuzz: ## Run each fuzzer for FUZZTIME.
	@for target in $$(grep -rEo --include='*_test.go' 'func Fuzz[A-Za-z]+' . --exclude-dir=test | sed 's/func //'); do \
		dir=$${target%/*}; name=$${target##*:}; \
		echo "fuzz $$name in $$dir"; \
		$(GO) test "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) || exit 1; \
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

# A linter is built like any other command, at the version named here.
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

.PHONY: lint
lint: ## Run the linters of .golangci.yml. The first run builds them, which takes minutes.
	$(GOLANGCI_LINT) run ./...
