/*
Package modelroute has what the name of a model becomes for the endpoint picker: an InferenceObjective with
the priority of its requests, and an InferenceModelRewrite with its targets.
*/
package modelroute

import (
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// Dialect is the one of endpoint pickers that read the objects of this package.
const Dialect = inputv1alpha1.DialectLLMD

// A Model is a model name that clients request.
type Model struct {
	// Name as clients write it.
	Name string
	// Priority of its requests; nil makes no InferenceObjective.
	Priority *int32
	// Targets with a weight above 0.
	Targets []Target
}

// A Target is a name that the engine knows, with its share of the requests.
type Target struct {
	Name   string
	Weight int32
}

// priorities of the criticalities. A request without an InferenceObjective has priority 0.
var priorities = map[v1alpha1.Criticality]int32{
	v1alpha1.CriticalityCritical:  10,
	v1alpha1.CriticalityStandard:  0,
	v1alpha1.CriticalitySheddable: -10,
}

// Of converts a model for the endpoint picker. Validation of the API refuses one without a target that
// gets requests.
func Of(m v1alpha1.ServedModel) Model {
	p := Model{Name: m.Name, Priority: m.Priority}
	if v, ok := priorities[m.Criticality]; ok && p.Priority == nil {
		p.Priority = &v
	}
	for _, t := range m.Targets {
		weight := int32(1)
		if t.Weight != nil {
			weight = *t.Weight
		}
		if weight > 0 {
			// A rewrite's weight is at least 1. A target of weight 0 gets no requests.
			p.Targets = append(p.Targets, Target{Name: t.Name, Weight: weight})
		}
	}
	if len(m.Targets) == 0 {
		p.Targets = []Target{{Name: m.Name, Weight: 1}}
	}
	return p
}

// The kinds of llm-d's API, with the fields that are used here (apix/v1alpha2 of llm-d-router
// v0.10.0). They are declared here, because its Go module is that of the whole router.
const (
	// Group of the kinds.
	Group = "llm-d.ai"

	apiVersion = Group + "/v1alpha2"

	// KindObjective is the kind of an InferenceObjective.
	KindObjective = "InferenceObjective"
	// KindRewrite is the kind of an InferenceModelRewrite.
	KindRewrite = "InferenceModelRewrite"

	// KindPool is the kind of an InferencePool.
	KindPool = "InferencePool"

	matchExact = "Exact"
)

// An InferenceObjective gives requests a priority.
type InferenceObjective struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   kube.Metadata `json:"metadata"`
	Spec       objectiveSpec `json:"spec"`
}

type objectiveSpec struct {
	// Priority is always sent, since 0 is a valid choice.
	Priority int32   `json:"priority"`
	PoolRef  poolRef `json:"poolRef"`
}

// An InferenceModelRewrite gives the requests for a model to its targets.
type InferenceModelRewrite struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   kube.Metadata `json:"metadata"`
	Spec       rewriteSpec   `json:"spec"`
}

type rewriteSpec struct {
	PoolRef poolRef       `json:"poolRef"`
	Rules   []rewriteRule `json:"rules"`
}

type rewriteRule struct {
	Matches []rewriteMatch  `json:"matches"`
	Targets []rewriteTarget `json:"targets"`
}

type rewriteMatch struct {
	Model modelMatch `json:"model"`
}

type modelMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type rewriteTarget struct {
	ModelRewrite string `json:"modelRewrite"`
	Weight       int32  `json:"weight"`
}

type poolRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

func poolOf(name string) poolRef {
	return poolRef{Group: inference.GroupName, Kind: KindPool, Name: name}
}

// Objective returns the InferenceObjective of a model in the pool of a name. The model has a priority.
func (m *Model) Objective(meta kube.Metadata, pool string) InferenceObjective {
	return InferenceObjective{
		APIVersion: apiVersion,
		Kind:       KindObjective,
		Metadata:   meta,
		Spec:       objectiveSpec{Priority: *m.Priority, PoolRef: poolOf(pool)},
	}
}

// Rewrite returns the InferenceModelRewrite of a model in the pool of a name.
func (m *Model) Rewrite(meta kube.Metadata, pool string) InferenceModelRewrite {
	rule := rewriteRule{Matches: []rewriteMatch{{Model: modelMatch{Type: matchExact, Value: m.Name}}}}
	for _, t := range m.Targets {
		rule.Targets = append(rule.Targets, rewriteTarget{ModelRewrite: t.Name, Weight: t.Weight})
	}
	return InferenceModelRewrite{
		APIVersion: apiVersion,
		Kind:       KindRewrite,
		Metadata:   meta,
		Spec:       rewriteSpec{PoolRef: poolOf(pool), Rules: []rewriteRule{rule}},
	}
}
