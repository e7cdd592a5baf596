/*
Package epp knows the configuration of endpoint pickers, which pick the pod for
each request. It generates one for every routing strategy, and it checks one that
a user wrote before an endpoint picker would refuse to start with it.

There are two dialects. The Gateway API Inference Extension (GAIE) had an endpoint
picker up to its v1.5.0; it lives on as llm-d-router (LLMD), with other plugins
and stricter parameters. What each knows is listed in gaie.go and llmd.go, taken
from the release that is the default image of its dialect.
*/
package epp

import "github.com/fusioninfer/function-inferenceservice/input/v1beta1"

const (
	// APIVersionGAIE is what both dialects read; for LLMD it is deprecated.
	APIVersionGAIE = "inference.networking.x-k8s.io/v1alpha1"
	// APIVersionLLMD is what only LLMD reads, from v0.9.0 on.
	APIVersionLLMD = "llm-d.ai/v1alpha1"
	// Kind of a configuration.
	Kind = "EndpointPickerConfig"
)

// dialects has what each dialect knows.
var dialects = map[v1beta1.Dialect]*dialect{
	v1beta1.DialectGAIE: &gaie,
	v1beta1.DialectLLMD: &llmd,
}

// A dialect is what one family of endpoint pickers understands.
type dialect struct {
	name v1beta1.Dialect
	// apiVersions that it reads, the preferred one first.
	apiVersions []string
	// fields of a configuration.
	fields fields
	// features are the names that featureGates may have.
	features []string
	// featureValues tells whether a feature may be written as name=true.
	featureValues bool
	// plugins by their type.
	plugins map[string]plugin
	// injected plugins need not be listed to be referred to.
	injected []string
	// strict parameters refuse unknown fields; others pass over them.
	strict bool
	// scorersNeedWeights tells that a scorer behind a picker needs a weight.
	scorersNeedWeights bool
}

// Fields of an object that are known, each with the fields below it. Nil is a
// value that is not looked into. Lists are looked through.
type fields map[string]fields

// A role is what a plugin does in the endpoint picker.
type role string

const (
	handler   role = "profile handler"
	filter    role = "filter"
	scorer    role = "scorer"
	picker    role = "picker"
	decider   role = "decider"
	parser    role = "parser"
	detector  role = "saturation detector"
	source    role = "data source"
	extractor role = "extractor"
	discovery role = "discovery"
	fairness  role = "fairness policy"
	ordering  role = "ordering policy"
	limits    role = "usage limit policy"
	other     role = "other plugin"
)

// A plugin is a type of plugin.
type plugin struct {
	role role
	// params makes the struct that its parameters are read into. Nil: it takes
	// none, or they are not looked into.
	params func() any
	// needsParams tells that it does not start without parameters.
	needsParams bool
	// experimental plugins are refused unless the endpoint picker is told
	// otherwise.
	experimental bool
}
