package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// TestPlanInputs gives each kind of XR the Input that is for it.
func TestPlanInputs(t *testing.T) {
	const (
		services = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, podObservationLimit: 7}\n"
		clusters = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ClusterInput, labels: {a: b}}\n"
		claimed  = "---\n{apiVersion: fusioninfer.io/v1alpha1, kind: XInferenceService, metadata: {name: chat-x}, spec: {placement: {clusterSelector: {}}}}\n"
	)
	composition := func(kind, input string) string {
		return "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: c}, spec: {compositeTypeRef: {apiVersion: fusioninfer.io/v1alpha1, kind: " + kind + "}, pipeline: [{step: a, input: " + strings.TrimSpace(input) + "}]}}\n"
	}
	type want struct {
		inputs map[string]string
		err    string
		code   int
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		plan   Plan
		want   want
	}{
		"Both": {
			reason: "One file may have both. That of services is for those of claims, too.",
			files:  map[string]string{"in.yaml": services + "---\n" + clusters},
			plan:   Plan{Input: []string{"in.yaml"}},
			want:   want{inputs: map[string]string{"InferenceService": "Input 7", "XInferenceService": "Input 7", "InferenceCluster": "ClusterInput"}},
		},
		"SecondInput": {
			reason: "Of two Inputs nobody knows which counts.",
			files:  map[string]string{"a.yaml": services, "b.yaml": strings.Replace(services, "7", "8", 1)},
			plan:   Plan{Input: []string{"a.yaml", "b.yaml"}},
			want:   want{err: "error: cannot use --input: \"b.yaml\" has a second Input, and \"a.yaml\" has the first. Pass one Input\n", code: 1},
		},
		"SecondClusterInput": {
			reason: "Nor of two in one file.",
			files:  map[string]string{"a.yaml": clusters + "---\n" + clusters},
			plan:   Plan{Input: []string{"a.yaml"}},
			want:   want{err: "error: cannot use --input: \"a.yaml\" has a second ClusterInput, and \"a.yaml\" has the first. Pass one ClusterInput\n", code: 1},
		},
		"Compositions": {
			reason: "A Composition is for the kind that it composes.",
			files:  map[string]string{"a.yaml": composition("InferenceService", services), "b.yaml": composition("InferenceCluster", clusters)},
			plan:   Plan{Composition: []string{"a.yaml", "b.yaml"}},
			want: want{
				inputs: map[string]string{"InferenceService": "Input 7", "XInferenceService": "", "InferenceCluster": "ClusterInput"},
				err:    "warning: --composition: none composes XInferenceService, so those are planned without an Input. Pass their Composition, too\n",
			},
		},
		"CompositionOfCaches": {
			reason: "That of ModelCaches has an Input as well, which is not for services.",
			files:  map[string]string{"a.yaml": composition("InferenceService", services), "b.yaml": composition("XInferenceService", services), "c.yaml": composition("ModelCache", strings.Replace(services, "7", "8", 1))},
			plan:   Plan{Composition: []string{"a.yaml", "b.yaml", "c.yaml"}},
			want:   want{inputs: map[string]string{"InferenceService": "Input 7", "XInferenceService": "Input 7", "InferenceCluster": ""}},
		},
		"CompositionOfModels": {
			reason: "InferenceModels move nothing.",
			files:  map[string]string{"a.yaml": composition("InferenceModel", services)},
			plan:   Plan{Composition: []string{"a.yaml"}},
			want: want{
				err:  "error: cannot use --composition: \"a.yaml\" composes \"InferenceModel\", which a plan does not run. Pass Compositions of InferenceService, XInferenceService, InferenceCluster, ModelCache, XModelCache only\n",
				code: 1,
			},
		},
		"SecondComposition": {
			reason: "Two Compositions of a kind contradict each other.",
			files:  map[string]string{"a.yaml": composition("InferenceService", services)},
			plan:   Plan{Composition: []string{"a.yaml", "a.yaml"}},
			want:   want{err: "error: cannot use --composition: \"a.yaml\" composes InferenceService, as \"a.yaml\" does. Pass one Composition of a kind\n", code: 1},
		},
		"Namespace": {
			reason: "Clusters write where services read, also without a ClusterInput.",
			files:  map[string]string{"a.yaml": strings.Replace(services, "podObservationLimit: 7", "fleet: {namespace: fleet}", 1)},
			plan:   Plan{Input: []string{"a.yaml"}},
			want:   want{inputs: map[string]string{"InferenceService": "Input fleet", "XInferenceService": "Input fleet", "InferenceCluster": "ClusterInput fleet"}},
		},
		"NamespaceOfClusters": {
			reason: "Services read where clusters write, also without an Input.",
			files:  map[string]string{"a.yaml": strings.Replace(clusters, "labels: {a: b}", "namespace: fleet", 1)},
			plan:   Plan{Input: []string{"a.yaml"}},
			want:   want{inputs: map[string]string{"InferenceService": "Input fleet", "XInferenceService": "Input fleet", "InferenceCluster": "ClusterInput fleet"}},
		},
		"OtherNamespace": {
			reason: "Services would find no cluster.",
			files:  map[string]string{"a.yaml": strings.Replace(services, "podObservationLimit: 7", "fleet: {namespace: fleet}", 1), "b.yaml": clusters},
			plan:   Plan{Input: []string{"a.yaml", "b.yaml"}},
			want: want{
				err:  "error: cannot use \"b.yaml\": namespace of the ClusterInput is \"crossplane-system\", and in \"a.yaml\" fleet.namespace of the Input is \"fleet\". Write the same namespace into both, because services read there what clusters write\n",
				code: 1,
			},
		},
		"NoComposition": {
			reason: "An Input is no Composition.",
			files:  map[string]string{"a.yaml": services},
			plan:   Plan{Composition: []string{"a.yaml"}},
			want:   want{err: "error: cannot read \"a.yaml\": it is of kind Input in fn.fusioninfer.io/v1alpha1, not Composition in apiextensions.crossplane.io/v1\n", code: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.files["fleet.yaml"] = planned + claimed
			inDirectory(t, tc.files)
			tc.plan.Fleet, tc.plan.Drain = []string{"fleet.yaml"}, []string{"east"}
			got := want{}
			fn := clocked{fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if got.inputs == nil {
					got.inputs = map[string]string{}
				}
				in := req.GetInput().GetFields()
				limit, _, _ := strings.Cut(fmt.Sprint(in["podObservationLimit"].GetNumberValue()), "0")
				text := in["kind"].GetStringValue() + " " + in["namespace"].GetStringValue() + in["fleet"].GetStructValue().GetFields()["namespace"].GetStringValue() + limit
				got.inputs[req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue()] = strings.TrimSpace(text)
				return stays(now, req)
			}}
			errs := &bytes.Buffer{}
			err := tc.plan.Run(t.Context(), fn, Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: errs})
			got.code, got.err = Exit(errs, err), errs.String()
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
