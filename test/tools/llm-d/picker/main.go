/*
Command picker is an endpoint picker that knows llm-d's plugins for prefill and decode, in the last
release that is a Go module. It leaves out those that need a tokenizer, which is not written in Go. It
has one more, which keeps a request to one revision, as a later release does.
*/
package main

import (
	"os"

	"github.com/llm-d/llm-d-inference-scheduler/pkg/plugins/filter"
	prerequest "github.com/llm-d/llm-d-inference-scheduler/pkg/plugins/pre-request"
	"github.com/llm-d/llm-d-inference-scheduler/pkg/plugins/profile"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/gateway-api-inference-extension/cmd/epp/runner"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/plugins"
)

func main() {
	plugins.Register(filter.ByLabelSelectorType, filter.ByLabelSelectorFactory)
	plugins.Register(prerequest.PrefillHeaderHandlerType, prerequest.PrefillHeaderHandlerFactory)
	plugins.Register(profile.PdProfileHandlerType, profile.PdProfileHandlerFactory)
	plugins.Register(oneRevisionType, newOneRevision)
	if err := runner.NewRunner().Run(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
