package epp

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Config is the configuration that a user wrote, before it is checked.
type Config struct {
	doc  map[string]any
	path *field.Path
}

// Parse parses a configuration. Path is its field in the service, for errors.
func Parse(config string, path *field.Path) (*Config, field.ErrorList) {
	if err := checkAliases(config, path); err != nil {
		return nil, field.ErrorList{err}
	}
	var doc any
	if err := yaml.UnmarshalStrict([]byte(config), &doc); err != nil {
		return nil, field.ErrorList{notYAML(err, config, path)}
	}
	if hasMoreDocuments(config) {
		return nil, field.ErrorList{field.Invalid(path, text.Value(config), "must be one document: the endpoint picker reads the first, and nothing after the next line that starts with ---")}
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, field.ErrorList{field.Invalid(path, text.Value(config), "must be an "+Kind+" with apiVersion, kind, plugins and schedulingProfiles")}
	}
	v, err := kube.EncodeValue(object)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, text.Value(config), "must be YAML that is JSON, too: "+err.Error())}
	}
	return &Config{doc: object, path: path}, kube.CheckBounds(v.GetStructValue(), path)
}

func notYAML(err error, config string, path *field.Path) *field.Error {
	why := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	return field.Invalid(path, text.Value(config), "must be YAML: "+text.Cut(strings.TrimPrefix(why, "yaml: "), text.MaxMessage))
}

// hasMoreDocuments tells whether a text has a second YAML document. Only the first one is
// read, here and by endpoint pickers.
func hasMoreDocuments(doc string) bool {
	d := goyaml.NewDecoder(strings.NewReader(doc))
	for first := true; ; first = false {
		n := goyaml.Node{}
		switch err := d.Decode(&n); {
		case errors.Is(err, io.EOF), first && err != nil:
			return false
		case first:
		case err != nil || len(n.Content) > 0 && n.Content[0].Tag != "!!null":
			return true // Also for text that is not YAML, because it is not read either.
		}
	}
}

// APIVersion returns the apiVersion of the configuration, or an empty string.
func (c *Config) APIVersion() string {
	v, _ := c.doc["apiVersion"].(string)
	return v
}

// Disaggregates tells whether the configuration picks prefill and decode pods separately, by a plugin that
// is known.
func (c *Config) Disaggregates() bool {
	plugins, _ := c.doc["plugins"].([]any)
	return slices.ContainsFunc(plugins, func(p any) bool {
		spec, _ := p.(map[string]any)
		return slices.Contains([]any{"disagg-profile-handler", "pd-profile-handler"}, spec["type"])
	})
}

// Queues tells whether requests wait while there are no pods: flow control is on.
func (c *Config) Queues() bool {
	list, _ := c.doc["featureGates"].([]any)
	gates := make([]string, len(list))
	for i, g := range list {
		gates[i], _ = g.(string)
	}
	return enabled(gates, flowControlFeature)
}

// A config has the fields of both dialects.
type config struct {
	APIVersion         string       `json:"apiVersion"`
	Kind               string       `json:"kind"`
	FeatureGates       []string     `json:"featureGates"`
	Plugins            []pluginSpec `json:"plugins"`
	SchedulingProfiles []profile    `json:"schedulingProfiles"`
	SaturationDetector *reference   `json:"saturationDetector"`
	DataLayer          *dataLayer   `json:"dataLayer"`
	FlowControl        *flowControl `json:"flowControl"`
	RequestHandler     *struct {
		Parsers []reference `json:"parsers"`
	} `json:"requestHandler"`
	Parser *reference `json:"parser"`
}

type pluginSpec struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Parameters any    `json:"parameters"`
}

type profile struct {
	Name    string `json:"name"`
	Plugins []struct {
		PluginRef string   `json:"pluginRef"`
		Weight    *float64 `json:"weight"`
	} `json:"plugins"`
}

type reference struct {
	PluginRef string `json:"pluginRef"`
}

type dataLayer struct {
	InjectDefaults *bool `json:"injectDefaults"`
	Sources        []struct {
		PluginRef  string      `json:"pluginRef"`
		Extractors []reference `json:"extractors"`
	} `json:"sources"`
	Discovery                   *reference       `json:"discovery"`
	CrossReplicaSyncerPluginRef string           `json:"crossReplicaSyncerPluginRef"`
	CrossReplicaSyncInterval    *metav1.Duration `json:"crossReplicaSyncInterval"`
}

type flowControl struct {
	MaxBytes                    *resource.Quantity `json:"maxBytes"`
	MaxRequests                 *resource.Quantity `json:"maxRequests"`
	DefaultRequestTTL           *metav1.Duration   `json:"defaultRequestTTL"`
	DefaultPriorityBand         *band              `json:"defaultPriorityBand"`
	DefaultNegativePriorityBand *band              `json:"defaultNegativePriorityBand"`
	PriorityBands               []band             `json:"priorityBands"`
	UsageLimitPolicyPluginRef   string             `json:"usageLimitPolicyPluginRef"`
	SaturationDetector          *reference         `json:"saturationDetector"`
	EnableEviction              bool               `json:"enableEviction"`
}

type band struct {
	Priority          int64              `json:"priority"`
	MaxBytes          *resource.Quantity `json:"maxBytes"`
	MaxRequests       *resource.Quantity `json:"maxRequests"`
	FairnessPolicyRef string             `json:"fairnessPolicyRef"`
	OrderingPolicyRef string             `json:"orderingPolicyRef"`
}

// unknownFields fails for each unknown field. The endpoint picker refuses them too, but
// reports only the first.
func (p *problems) unknownFields(path *field.Path, v any, known fields) {
	switch t := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(t)) {
			below, ok := known[name]
			if !ok {
				p.failWith(func() *field.Error {
					return field.Forbidden(path.Child(text.Value(name)), "is not a field here: the fields are "+listTypes(slices.Sorted(maps.Keys(known))))
				})
				continue
			}
			if below != nil {
				p.unknownFields(path.Child(name), t[name], below)
			}
		}
	case []any:
		for i, e := range t {
			p.unknownFields(path.Index(i), e, known)
		}
	}
}
