package router

import (
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// The kinds of llm-d's API, with the fields that are used here (apix/v1alpha2 of llm-d-router
// v0.10.0). They are declared here, because its Go module is that of the whole router.
const (
	apiVersionLLMD = groupLLMD + "/v1alpha2"
	matchExact     = "Exact"
)

type inferenceObjective struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Metadata   meta                   `json:"metadata"`
	Spec       inferenceObjectiveSpec `json:"spec"`
}

type inferenceObjectiveSpec struct {
	// Priority is always sent, since 0 is a valid choice.
	Priority int32   `json:"priority"`
	PoolRef  poolRef `json:"poolRef"`
}

type inferenceModelRewrite struct {
	APIVersion string                    `json:"apiVersion"`
	Kind       string                    `json:"kind"`
	Metadata   meta                      `json:"metadata"`
	Spec       inferenceModelRewriteSpec `json:"spec"`
}

type inferenceModelRewriteSpec struct {
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

// models returns an InferenceObjective for each model with a priority, and an
// InferenceModelRewrite for each model.
func (r *rendering) models() []object {
	pool := poolRef{Group: inference.GroupName, Kind: plan.KindPool, Name: r.cluster.PoolName()}
	var all []object
	for _, m := range r.router.Models {
		name := r.cluster.ModelName(m.Name)
		if m.Priority != nil {
			all = append(all, object{r.cluster.Key(key.InferenceObjective, name), inferenceObjective{
				APIVersion: apiVersionLLMD,
				Kind:       "InferenceObjective",
				Metadata:   r.meta(name),
				Spec:       inferenceObjectiveSpec{Priority: *m.Priority, PoolRef: pool},
			}})
		}
		all = append(all, object{r.cluster.Key(key.InferenceModelRewrite, name), inferenceModelRewrite{
			APIVersion: apiVersionLLMD,
			Kind:       "InferenceModelRewrite",
			Metadata:   r.meta(name),
			Spec:       inferenceModelRewriteSpec{PoolRef: pool, Rules: []rewriteRule{rewrite(m)}},
		}})
	}
	return all
}

func rewrite(m plan.Model) rewriteRule {
	rule := rewriteRule{Matches: []rewriteMatch{{Model: modelMatch{Type: matchExact, Value: m.Name}}}}
	for _, t := range m.Targets {
		rule.Targets = append(rule.Targets, rewriteTarget{ModelRewrite: t.Name, Weight: t.Weight})
	}
	return rule
}
