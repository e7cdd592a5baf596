package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A stateConfig is the configuration of kube-state-metrics for custom resources (v2.15.0,
// pkg/customresourcestate/config.go).
type stateConfig struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []stateResource `json:"resources"`
	} `json:"spec"`
}

type stateResource struct {
	GroupVersionKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"groupVersionKind"`
	MetricNamePrefix string              `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string `json:"labelsFromPath"`
	Metrics          []struct {
		Name string `json:"name"`
		Help string `json:"help"`
		Each struct {
			Type     string      `json:"type"`
			Gauge    *stateValue `json:"gauge"`
			Info     *stateValue `json:"info"`
			StateSet *stateValue `json:"stateSet"`
		} `json:"each"`
	} `json:"metrics"`
}

type stateValue struct {
	Path           []string            `json:"path"`
	LabelFromKey   string              `json:"labelFromKey"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	LabelName      string              `json:"labelName"`
	ValueFrom      []string            `json:"valueFrom"`
	List           []string            `json:"list"`
	NilIsZero      bool                `json:"nilIsZero"`
}

func config(t *testing.T) stateConfig {
	t.Helper()
	b, err := os.ReadFile("kube-state-metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := stateConfig{}
	if err := yaml.UnmarshalStrict(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// states returns the metrics that kube-state-metrics makes.
func states(t *testing.T) table {
	t.Helper()
	all := table{}
	for _, r := range config(t).Spec.Resources {
		for _, m := range r.Metrics {
			all[r.MetricNamePrefix+"_"+m.Name] = "gauge"
		}
	}
	return all
}

// A node is a part of the schema of a kind.
type node struct {
	Type                 string           `json:"type"`
	Properties           map[string]*node `json:"properties"`
	Items                *node            `json:"items"`
	AdditionalProperties *node            `json:"additionalProperties"`
}

// at returns the part at a path. An element stands for the list or map that it is in.
func (n *node) at(path []string) *node {
	for _, p := range path {
		if n = n.Properties[p]; n == nil {
			return nil
		}
	}
	return n
}

func (n *node) element() *node {
	switch {
	case n.Items != nil:
		return n.Items
	case n.AdditionalProperties != nil:
		return n.AdditionalProperties
	}
	return n
}

// schemas returns the schemas of both flavours of the API, by their kinds.
func schemas(t *testing.T) map[string][]*node {
	t.Helper()
	all := map[string][]*node{}
	for _, flavour := range []string{"xr", "claim"} {
		for _, file := range []string{"definition.yaml", "cluster-definition.yaml"} {
			b, err := os.ReadFile(filepath.Join("..", flavour, file))
			if err != nil {
				t.Fatal(err)
			}
			xrd := struct {
				Spec struct {
					Names      struct{ Kind string }
					ClaimNames struct{ Kind string }
					Versions   []struct {
						Schema struct {
							OpenAPIV3Schema *node `json:"openAPIV3Schema"`
						}
					}
				}
			}{}
			if err := yaml.Unmarshal(b, &xrd); err != nil {
				t.Fatal(err)
			}
			kind := xrd.Spec.Names.Kind
			if c := xrd.Spec.ClaimNames.Kind; c != "" {
				kind = c
			}
			all[kind] = append(all[kind], xrd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		}
	}
	return all
}

// provided are the fields of a status that Crossplane adds to the schema of a kind.
var provided = &node{Properties: map[string]*node{"conditions": {Type: "array", Items: &node{Type: "object", Properties: map[string]*node{"type": {Type: "string"}, "status": {Type: "string"}, "reason": {Type: "string"}}}}}}

// TestStates proves that the paths of kube-state-metrics are those of the status, in both flavours of the API.
func TestStates(t *testing.T) {
	c := config(t)
	if c.Kind != "CustomResourceStateMetrics" || len(c.Spec.Resources) != 2 {
		t.Fatalf("%s with %d kinds", c.Kind, len(c.Spec.Resources))
	}
	all := schemas(t)
	for _, r := range c.Spec.Resources {
		if len(all[r.GroupVersionKind.Kind]) != 2 {
			t.Fatalf("%s has %d schemas, want one in each flavour", r.GroupVersionKind.Kind, len(all[r.GroupVersionKind.Kind]))
		}
		for _, schema := range all[r.GroupVersionKind.Kind] {
			for _, m := range r.Metrics {
				for _, v := range []*stateValue{m.Each.Gauge, m.Each.Info, m.Each.StateSet} {
					if v != nil {
						v.check(t, r.MetricNamePrefix+"_"+m.Name, schema)
					}
				}
			}
		}
	}
}

func (v *stateValue) check(t *testing.T, metric string, schema *node) {
	t.Helper()
	if v.Path[1] == "conditions" {
		schema = &node{Properties: map[string]*node{"status": provided}}
	}
	of := schema.at(v.Path)
	if of == nil {
		t.Errorf("%s: the status has no %v", metric, v.Path)
		return
	}
	if (v.LabelFromKey != "") != (of.AdditionalProperties != nil) {
		t.Errorf("%s: keys of %v become labels exactly where it is a map", metric, v.Path)
	}
	paths := [][]string{v.ValueFrom}
	for _, p := range v.LabelsFromPath {
		paths = append(paths, p)
	}
	for _, p := range paths {
		if of.element().at(p) == nil {
			t.Errorf("%s: %v has no %v", metric, v.Path, p)
		}
	}
	if value := of.element().at(v.ValueFrom); len(v.List) == 0 && len(v.LabelsFromPath) == 0 && value != nil && value.Type != "integer" {
		t.Errorf("%s: %v is no number, but of type %s", metric, v.Path, value.Type)
	}
}

// TestStatesAllowed proves that kube-state-metrics may read what it is told to, and nothing else of the group.
func TestStatesAllowed(t *testing.T) {
	b, err := os.ReadFile("kube-state-metrics-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(b, &role); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range config(t).Spec.Resources {
		want = append(want, strings.ToLower(r.GroupVersionKind.Kind)+"s")
	}
	if rule := role.Rules[0]; !slices.Equal(rule.Resources, want) || !slices.Equal(rule.Verbs, []string{"list", "watch"}) || rule.APIGroups[0] != "fusioninfer.io" {
		t.Errorf("the role has %v, want to list and watch %v", rule, want)
	}
}
