package epp

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Config is a configuration that a user wrote.
type Config struct {
	doc  map[string]any
	path *field.Path
}

// Parse reads a configuration, which is at a path of the service.
func Parse(text string, path *field.Path) (*Config, field.ErrorList) {
	var doc any
	if err := yaml.UnmarshalStrict([]byte(text), &doc); err != nil {
		why := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		return nil, field.ErrorList{field.Invalid(path, check.Shown(text), "must be YAML: "+strings.TrimPrefix(why, "yaml: "))}
	}
	if another(text) {
		return nil, field.ErrorList{field.Invalid(path, check.Shown(text), "must be one document: the endpoint picker reads the first, and nothing after the next line that starts with ---")}
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, field.ErrorList{field.Invalid(path, check.Shown(text), "must be an "+Kind+" with apiVersion, kind, plugins and schedulingProfiles")}
	}
	// A few lines with aliases of aliases are much more than their text.
	v, err := kube.EncodeValue(object)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, check.Shown(text), "must be YAML that is JSON, too: "+err.Error())}
	}
	return &Config{doc: object, path: path}, kube.Bounded(v.GetStructValue(), path)
}

// another tells whether there is more in a text than one YAML document, which is all
// that is read of it, here and by endpoint pickers.
func another(text string) bool {
	d := goyaml.NewDecoder(strings.NewReader(text))
	for first := true; ; first = false {
		n := goyaml.Node{}
		switch err := d.Decode(&n); {
		case errors.Is(err, io.EOF), first && err != nil:
			return false
		case first:
		case err != nil || len(n.Content) > 0 && n.Content[0].Tag != "!!null":
			return true // Also one that is not YAML: nobody reads that either.
		}
	}
}

// APIVersion of the configuration, or nothing.
func (c *Config) APIVersion() string {
	v, _ := c.doc["apiVersion"].(string)
	return v
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

// unknown returns an error for each field that nobody reads. The endpoint picker
// refuses those too, one at a time.
func unknown(path *field.Path, v any, known fields) field.ErrorList {
	var errs field.ErrorList
	switch t := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(t)) {
			below, ok := known[name]
			if !ok {
				errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("is no field here: there are %s", list(slices.Sorted(maps.Keys(known))))))
				continue
			}
			if below != nil {
				errs = append(errs, unknown(path.Child(name), t[name], below)...)
			}
		}
	case []any:
		for i, e := range t {
			errs = append(errs, unknown(path.Index(i), e, known)...)
		}
	}
	return errs
}

// maxListed is above the number of plugins that there are.
const maxListed = 100

// list writes names for people.
func list(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > maxListed:
		return strings.Join(names[:maxListed], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
