/*
Package epp generates and checks the configuration of endpoint pickers, which pick the pod for
each request. It generates a configuration for each routing strategy. It checks a configuration
that a user wrote, so that the user learns of errors before an endpoint picker fails to start.

There are two dialects. GAIE is that of the Gateway API Inference Extension, whose last endpoint
picker is v1.5.0. LLMD is that of llm-d-router, which continues this endpoint picker with other
plugins and stricter parameters. gaie.go and llmd.go list what each dialect has, as of the release
that is the default image of the dialect.
*/
package epp

import inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"

const (
	// GroupGAIE is the group of the older kinds that both dialects read, a configuration among them.
	GroupGAIE = "inference.networking.x-k8s.io"
	// APIVersionGAIE is read by both dialects. LLMD deprecates it.
	APIVersionGAIE = GroupGAIE + "/v1alpha1"
	// APIVersionLLMD is read by LLMD only, from v0.9.0 on.
	APIVersionLLMD = "llm-d.ai/v1alpha1"
	// Kind of a configuration.
	Kind = "EndpointPickerConfig"
	// ConfigFile is the name of a configuration in its ConfigMap, and of its file.
	ConfigFile = "config.yaml"
)

// dialects are the known dialects.
var dialects = map[inputv1alpha1.Dialect]*dialect{
	inputv1alpha1.DialectGAIE: &gaie,
	inputv1alpha1.DialectLLMD: &llmd,
}

// A dialect is the configuration that one family of endpoint pickers reads.
type dialect struct {
	name inputv1alpha1.Dialect
	// apiVersions are those that the dialect reads, the preferred one first.
	apiVersions []string
	// fields of a configuration.
	fields fields
	// features are the names that featureGates may list.
	features []string
	// featureValues tells whether a feature may be written as name=true.
	featureValues bool
	// plugins by their type.
	plugins map[string]plugin
	// injected are plugins that the endpoint picker adds, so that references may name them
	// although the configuration does not list them.
	injected []string
	// strict tells that plugins refuse unknown parameters instead of ignoring them.
	strict bool
	// scorersNeedWeights tells that a scorer after the picker of its profile needs a
	// weight.
	scorersNeedWeights bool
}

// fields are the known fields of an object, each with the fields of its own value. Nil
// means that the value is not checked. The fields of a list are those of its items.
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
	// unknown is the role of an unknown plugin if the platform team chose the image.
	unknown role = "unknown plugin"
)

// A plugin is what is known of one type of plugin.
type plugin struct {
	role role
	// params returns a new struct to decode the parameters into. Nil means that the plugin
	// has no parameters, or that they are not checked.
	params func() any
	// needsParams tells that the plugin does not start without parameters.
	needsParams bool
	// experimental tells that the endpoint picker refuses the plugin without the flag
	// --allow-experimental-plugins.
	experimental bool
}
