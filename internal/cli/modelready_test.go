package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// loads composes a claim, then a Job too, and the role w once the Job is complete.
func loads(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	desired, observed := map[string]*fnv1.Resource{}, req.GetObserved().GetResources()
	add := func(key string, o map[string]any) error {
		s, err := structpb.NewStruct(o)
		desired[key] = &fnv1.Resource{Resource: s}
		return err
	}
	if err := add("persistentvolumeclaim/model", map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": "m"}}); err != nil {
		return nil, err
	}
	job := observed["job/model"].GetResource().GetFields()["status"].GetStructValue().GetFields()["succeeded"].GetNumberValue()
	switch {
	case job == 1:
		if err := add("leaderworkerset/w/0", map[string]any{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": map[string]any{
			"name": "chat-w-0", "labels": map[string]any{"fusioninfer.io/role-name": "w"},
		}, "spec": map[string]any{"leaderWorkerTemplate": map[string]any{"workerTemplate": map[string]any{"spec": map[string]any{"priority": 1}}}}}); err != nil {
			return nil, err
		}
	case observed["persistentvolumeclaim/model"] != nil:
		if err := add("job/model", map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "m"}}); err != nil {
			return nil, err
		}
	}
	return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{}, Resources: desired}}, nil
}

// TestModelReady previews a service whose weights are not loaded yet.
func TestModelReady(t *testing.T) {
	const xr = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: chat}, spec: {roles: [{name: w, template: {spec: {}}}]}}"
	const table = `  ROLE   TYPE  REPLICAS  NODES  PODS  GPUS/POD  GPUS  LAUNCHER  PORT  SCHEDULER  IMAGE
  w            1         1      1     0         0     -         8000  default
  total                         1               0

  Gang  none
`
	const title = "InferenceService default/chat\n\nIn this cluster, namespace default: "
	cases := map[string]struct {
		reason string
		render Render
		want   string
	}{
		"Summary": {
			reason: "The roles are there, and marked. What is composed now is counted.",
			render: Render{Format: "summary"},
			want:   title + "1 object\n  These roles wait until the weights are in their cache:\n" + table + "\nNot ready\n  Ready  Creating  Unready resources: persistentvolumeclaim/model\n",
		},
		"Assumed": {
			reason: "The weights are taken for loaded.",
			render: Render{Format: "summary", AssumeModelReady: true},
			want:   title + "2 objects\n" + table + "\nNot ready\n  Ready  Creating  Unready resources: leaderworkerset/w/0, persistentvolumeclaim/model\n",
		},
		"Explain": {
			reason: "What the function adds is known.",
			render: Render{Explain: true},
			want:   "spec.roles[0].name: \"w\" (spec)\nspec.roles[0].template.spec: {} (spec)\nspec.roles[0].template.spec.priority: 1 (function)\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inDirectory(t, map[string]string{"xr.yaml": xr})
			tc.render.XR = "xr.yaml"
			out, errs := &bytes.Buffer{}, &bytes.Buffer{}
			if err := tc.render.Run(t.Context(), runnerFn(loads), Streams{Out: out, Err: errs}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want, ""}, []string{out.String(), errs.String()}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMissingCache warns of a ModelCache whose weights cannot be taken for loaded, because it is in none of the files.
func TestMissingCache(t *testing.T) {
	const (
		service = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: chat}, spec: {model: {cacheRef: {name: qwen}}, roles: [{name: w, template: {spec: {}}}]}}"
		claimed = "{apiVersion: fusioninfer.io/v1alpha1, kind: XInferenceService, metadata: {name: chat-x, labels: {crossplane.io/claim-name: chat, crossplane.io/claim-namespace: default}}, spec: {model: {cacheRef: {name: qwen}}, roles: [{name: w, template: {spec: {}}}]}}"
		cache   = "{apiVersion: fusioninfer.io/v1alpha1, kind: ModelCache, metadata: {name: qwen, namespace: default}}"
		behind  = "{apiVersion: fusioninfer.io/v1alpha1, kind: XModelCache, metadata: {name: qwen-x, labels: {crossplane.io/claim-name: qwen, crossplane.io/claim-namespace: default}}}"
		warning = "warning: --required has no ModelCache default/qwen, so the roles wait for its weights, and are not here. Pass a file with the ModelCache by --required.\n"
	)
	byName := &fnv1.ResourceSelector{ApiVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindModelCache, Namespace: ptr.To("default"), Match: &fnv1.ResourceSelector_MatchName{MatchName: "qwen"}}
	byLabels := &fnv1.ResourceSelector{ApiVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindClaimedCache, Match: &fnv1.ResourceSelector_MatchLabels{
		MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{v1alpha1.LabelClaimName: "qwen", v1alpha1.LabelClaimNamespace: "default"}},
	}}
	cases := map[string]struct {
		reason  string
		xr      string
		sel     *fnv1.ResourceSelector
		require string
		render  Render
		want    string
	}{
		"Assumed": {"Nothing can be assumed of it.", service, byName, "", Render{AssumeModelReady: true}, warning},
		"Explain": {"What the function adds is missing.", service, byName, "", Render{Explain: true}, warning},
		"Claim":   {"The XR behind a claim reads that of another claim.", claimed, byLabels, cache, Render{AssumeModelReady: true}, warning},
		"Given":   {"Its weights are taken for loaded.", service, byName, cache, Render{AssumeModelReady: true}, ""},
		"Behind":  {"So are those of the XR behind a claim.", claimed, byLabels, behind, Render{AssumeModelReady: true}, ""},
		"Plain":   {"The status says that the roles wait.", service, byName, "", Render{}, ""},
		"OfOwn":   {"A cache of the service's own is in no file.", service, nil, "", Render{AssumeModelReady: true}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inDirectory(t, map[string]string{"xr.yaml": tc.xr, "required.yaml": tc.require})
			tc.render.XR = "xr.yaml"
			if tc.require != "" {
				tc.render.Required = []string{"required.yaml"}
			}
			requires := func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				rsp := &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{}}}
				if tc.sel != nil {
					rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{require.ModelCache: tc.sel}}
				}
				return rsp, nil
			}
			errs := &bytes.Buffer{}
			if err := tc.render.Run(t.Context(), runnerFn(requires), Streams{Out: &bytes.Buffer{}, Err: errs}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, errs.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
