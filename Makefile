# Everything runs from here: make help lists it.

GO ?= go

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
