package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// runnerFn implements Runner by a Go function.
type runnerFn func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// RunFunction runs the function.
func (f runnerFn) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return f(req)
}

// echo composes one ConfigMap that records what was in the request. It requires the pods of
// the service, and one object by name.
func echo(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	ns := "default"
	data := map[string]any{
		"name":     req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue(),
		"input":    req.GetInput().GetFields()["podObservationLimit"].GetNumberValue(),
		"observed": len(req.GetObserved().GetResources()),
		"pods":     len(req.GetRequiredResources()["pods"].GetItems()),
		"named":    len(req.GetRequiredResources()["named"].GetItems()),
	}
	o, err := structpb.NewStruct(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "echo", "namespace": ns}, "data": data})
	return &fnv1.RunFunctionResponse{
		Requirements: &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			"pods":  {ApiVersion: "v1", Kind: "Pod", Namespace: &ns, Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"app": "x"}}}},
			"named": {ApiVersion: "v1", Kind: "Secret", Namespace: &ns, Match: &fnv1.ResourceSelector_MatchName{MatchName: "s"}},
		}},
		Desired: &fnv1.State{
			Composite: &fnv1.Resource{},
			Resources: map[string]*fnv1.Resource{"configmap": {Resource: o, Ready: fnv1.Ready_READY_TRUE}},
		},
	}, err
}

// kindsOf is echo with the condition KindsAvailable. It composes nothing for an Input that skips missing kinds, and
// refuses one that has something else there.
func kindsOf(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp, err := echo(req)
	switch given := req.GetInput().GetFields()["missingKinds"]; {
	case given == nil, given.GetStringValue() == "Fail":
	case given.GetStringValue() == "Skip":
		rsp.Desired.Resources = nil
	default:
		text, err := given.MarshalJSON()
		rsp.Results = []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "input.missingKinds: " + string(text)}}
		return rsp, err
	}
	message := "the Input does not ask"
	rsp.Conditions = []*fnv1.Condition{{Type: "KindsAvailable", Status: fnv1.Status_STATUS_CONDITION_TRUE, Reason: "NotChecked", Message: &message}}
	return rsp, err
}

// withCondition returns what was echoed with the condition KindsAvailable.
func withCondition(out, message string) string {
	at := "  - lastTransitionTime: \"2024-01-01T00:00:00Z\"\n    reason: ReconcileSuccess\n"
	return strings.Replace(out, at, "  - lastTransitionTime: \"2024-01-01T00:00:00Z\"\n    message: "+message+"\n    reason: NotChecked\n    status: \"True\"\n    type: KindsAvailable\n"+at, 1)
}

func results(rs ...*fnv1.Result) runnerFn {
	return func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp, err := echo(req)
		rsp.Results = rs
		return rsp, err
	}
}

const (
	xrDoc = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec: {roles: [{name: a, componentType: worker, template: {spec: {}}}]}
`
	claimDoc = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: mine, namespace: team}, spec: {resourceRef: {apiVersion: fusioninfer.io/v1alpha1, kind: XInferenceService, name: mine-x7k2p}}}\n"
	xrTypo   = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec: {crossplane: {compositionRef: {name: c}}, rolse: [], replicas: "3", roles: [{name: a, replcas: 2, template: {any: thing}, endpointPicker: {resources: {limits: {cpu: 1}, limit: {}}}}]}
`
	inputDoc = `apiVersion: fn.fusioninfer.io/v1alpha1
kind: Input
podObservationLimit: 7
`
	compositionDoc = `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: c}
spec:
  compositeTypeRef: {apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService}
  mode: Pipeline
  pipeline:
  - {step: first, functionRef: {name: x}, input: {apiVersion: fn.example.org/v1, kind: Input}}
  - {step: second, functionRef: {name: y}, input: {apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, podObservationLimit: 9}}
`
	fromCluster = `# Only a comment.
---
apiVersion: v1
kind: Pod
metadata: {name: p0, namespace: default, labels: {app: x, more: "1"}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: p1, namespace: other, labels: {app: x}}}
- {apiVersion: v1, kind: Pod, metadata: {name: p2, namespace: default, labels: {app: z}}}
- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}}
`
	observedDoc = `apiVersion: v1
kind: ConfigMap
metadata: {name: old, namespace: default, annotations: {crossplane.io/composition-resource-name: configmap}}
`
	observedRole = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceRole
metadata: {name: chat-a, annotations: {crossplane.io/composition-resource-name: inferencerole/a}}
spec: {serviceName: chat, roleName: a, replicas: 3}
`
)

// echoed returns the output of a render with the function echo.
func echoed(name string, input, observed, pods, named int) string {
	return fmt.Sprintf(`---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata:
  name: chat
  namespace: default
spec:
  crossplane:
    resourceRefs:
    - apiVersion: v1
      kind: ConfigMap
      name: %[1]s
status:
  conditions:
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: WatchCircuitClosed
    status: "True"
    type: Responsive
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: ReconcileSuccess
    status: "True"
    type: Synced
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: Available
    status: "True"
    type: Ready
---
apiVersion: v1
data:
  input: %[2]d
  name: chat
  named: %[5]d
  observed: %[3]d
  pods: %[4]d
kind: ConfigMap
metadata:
  annotations:
    crossplane.io/composition-resource-name: configmap
  labels:
    crossplane.io/composite: chat
  name: %[1]s
  namespace: default
  ownerReferences:
  - apiVersion: fusioninfer.io/v1alpha1
    blockOwnerDeletion: true
    controller: true
    kind: InferenceService
    name: chat
    uid: 838bec26-633f-520d-8d11-d897a07f7fe6
`, name, input, observed, pods, named)
}

func TestRender(t *testing.T) {
	type args struct {
		fn     runnerFn
		files  map[string]string
		stdin  string
		render Render
	}
	type want struct {
		out, err string
		code     int
	}
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"OnlyXR": {
			reason: "Only an XR is needed. Without a namespace it is in default.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc}, render: Render{XR: "xr.yaml"}},
			want:   want{out: echoed("echo", 0, 0, 0, 0)},
		},
		"Nulls": {
			reason: "An API server removes nulls of fields that the schema knows, and no others. So render goes without them, too.",
			args: args{
				fn: func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					rsp := response.To(req, response.DefaultTTL)
					spec, err := json.Marshal(req.GetObserved().GetComposite().GetResource().AsMap()["spec"])
					response.Fatal(rsp, errors.New(string(spec)))
					return rsp, err
				},
				files:  map[string]string{"xr.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: chat}, spec: {roles: [{name: w, multinode: null, lifecycle: {drainSeconds: null}, template: {spec: {tolerations: null}}}]}}"},
				render: Render{XR: "xr.yaml"},
			},
			want: want{
				err: "warning: xr.yaml: spec.roles[0].lifecycle.drainSeconds is null: an API server removes it, as if it were not there\n" +
					"warning: xr.yaml: spec.roles[0].multinode is null: an API server removes it, as if it were not there\n" +
					"fatal: {\"roles\":[{\"lifecycle\":{},\"name\":\"w\",\"template\":{\"spec\":{\"tolerations\":null}}}]}\n",
				code: 1,
			},
		},
		"Stdin": {
			reason: "The path - is standard input.",
			args:   args{fn: echo, stdin: xrDoc, render: Render{XR: "-"}},
			want:   want{out: echoed("echo", 0, 0, 0, 0)},
		},
		"StdinTwice": {
			reason: "Standard input can be read once.",
			args:   args{fn: echo, stdin: xrDoc, render: Render{XR: "-", Input: "-"}},
			want:   want{err: "error: cannot read standard input (-) twice\n", code: 1},
		},
		"Everything": {
			reason: "Input, observed and required objects reach the function; an observed object keeps its name.",
			args: args{
				fn:    echo,
				files: map[string]string{"xr.yaml": xrDoc, "in.yaml": inputDoc, "o/a.yaml": observedDoc, "o/readme.md": "no", "r.yaml": fromCluster},
				render: Render{
					XR: "xr.yaml", Input: "in.yaml", Observed: []string{"o"}, Required: []string{"r.yaml"},
				},
			},
			want: want{out: echoed("old", 7, 1, 1, 1)},
		},
		"Directories": {
			reason: "JSON files are read, too. What is not read is said.",
			args: args{
				fn: echo,
				files: map[string]string{
					"xr.yaml": xrDoc, "r/pods.yml": "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, labels: {app: x}}}",
					"r/secret.json":    `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}`,
					"r/more/pods.yaml": fromCluster, "r/.git/pods.yaml": fromCluster, "r/values.txt": "no",
				},
				render: Render{XR: "xr.yaml", Required: []string{"r"}},
			},
			want: want{out: echoed("echo", 0, 0, 1, 1), err: "warning: \"r/more\" is not read, because it is a directory in a directory: pass it by itself\n"},
		},
		"ObservedOutput": {
			reason: "The output of a render can be observed: the XR in it is skipped.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o.yaml": echoed("echo", 0, 0, 0, 0)}, render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}}},
			want:   want{out: echoed("echo", 0, 1, 0, 0)},
		},
		"ObservedResults": {
			reason: "The results and the context that Crossplane's own render writes are skipped.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": xrDoc, "o.yaml": echoed("echo", 0, 0, 0, 0) +
					"---\n{apiVersion: render.crossplane.io/v1beta1, kind: Result, message: m}\n---\n{apiVersion: render.crossplane.io/v1beta1, kind: Context, fields: {}}\n"},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{out: echoed("echo", 0, 1, 0, 0)},
		},
		"ObservedGeneratedName": {
			reason: "An object whose name the API server generates gets one, which is the same each time.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(observedDoc, "name: old", "generateName: chat-", 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{out: strings.Replace(echoed("chat-76a45da0f0ef", 0, 1, 0, 0), "  labels:\n", "  generateName: chat-\n  labels:\n", 1)},
		},
		"ObservedStatus": {
			reason: "The status in an output is observed, if the XR's own file has none.",
			args: args{
				fn: func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					rsp, err := echo(req)
					status := req.GetObserved().GetComposite().GetResource().GetFields()["status"].GetStructValue()
					if status.GetFields()["url"].GetStringValue() != "seen" {
						return nil, fmt.Errorf("the status is %v", status)
					}
					return rsp, err
				},
				files:  map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(echoed("echo", 0, 0, 0, 0), "status:\n", "status:\n  url: seen\n", 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{out: echoed("echo", 0, 1, 0, 0)},
		},
		"ObservedOtherXR": {
			reason: "Only the XR itself is skipped, not another of its kind.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.ReplaceAll(xrDoc, "chat", "other")}, render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}}},
			want:   want{err: `error: cannot use InferenceService other in "o.yaml": it has no annotation crossplane.io/composition-resource-name, so nobody knows which composed resource it is. Pass what InferenceService chat has not composed with --required` + "\n", code: 1},
		},
		"Composition": {
			reason: "The Input comes from the step that has this function's Input.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "c.yaml": compositionDoc}, render: Render{XR: "xr.yaml", Composition: "c.yaml"}},
			want:   want{out: echoed("echo", 9, 0, 0, 0)},
		},
		"InputOfServices": {
			reason: "An InferenceCluster has an input of its own kind.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east}}", "in.yaml": inputDoc},
				render: Render{XR: "xr.yaml", Input: "in.yaml"},
			},
			want: want{err: `error: cannot read "in.yaml": it is of kind Input in fn.fusioninfer.io/v1alpha1, not ClusterInput in fn.fusioninfer.io/v1alpha1` + "\n", code: 1},
		},
		"CompositionWithoutInput": {
			reason: "If no step has the Input, the error names the steps.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "c.yaml": strings.Replace(compositionDoc, "fn.fusioninfer.io", "fn.example.org", 1)},
				render: Render{XR: "xr.yaml", Composition: "c.yaml"},
			},
			want: want{err: `error: cannot read "c.yaml": 0 of its steps (first, second) have an input of kind Input in fn.fusioninfer.io/v1alpha1, and exactly one must` + "\n", code: 1},
		},
		"CompositionOfClaims": {
			reason: "With the Composition of claims, the XR is a claim. What nobody reads of it is told.",
			args: args{
				fn: results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "end"}),
				files: map[string]string{
					"xr.yaml": strings.Replace(xrDoc, "spec: {", "roles: []\nspec: {compositeDeletePolicy: Foreground, modl: {}, ", 1),
					"c.yaml":  strings.Replace(compositionDoc, "kind: InferenceService", "kind: XInferenceService", 1),
				},
				render: Render{XR: "xr.yaml", Composition: "c.yaml"},
			},
			want: want{
				err: "warning: xr.yaml: unknown field roles (did you mean spec.roles?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.modl (did you mean spec.model?): kubectl apply refuses it, other clients drop it\nfatal: end\n",
				code: 1,
			},
		},
		"CompositionOfAnotherKind": {
			reason: "A Composition for another kind is refused.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "c.yaml": strings.Replace(compositionDoc, "kind: InferenceService", "kind: InferenceModel", 1)},
				render: Render{XR: "xr.yaml", Composition: "c.yaml"},
			},
			want: want{err: `error: cannot use "c.yaml": it composes "InferenceModel", and the XR is of kind "InferenceService"` + "\n", code: 1},
		},
		"UnknownFields": {
			reason: "A warning names each field that an API server would drop. Values of the wrong type and Crossplane's own fields get none.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrTypo, "in.yaml": inputDoc + "endpointPicker: {imagee: x, tolerations: [{key: a}]}\n"}, render: Render{XR: "xr.yaml", Input: "in.yaml"}},
			want: want{
				out: echoed("echo", 7, 0, 0, 0),
				err: "warning: xr.yaml: unknown field spec.roles[0].endpointPicker.resources.limit (did you mean spec.roles[0].endpointPicker.resources.limits?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].replcas (did you mean spec.roles[0].replicas?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.rolse (did you mean spec.roles?): kubectl apply refuses it, other clients drop it\n",
			},
		},
		"UnknownFieldsOfPods": {
			reason: "A field of pods, of containers or of the spec that is written elsewhere is told with the place where it belongs. Users know these from Deployments.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": strings.Replace(xrDoc, "spec: {roles: [{", `profileName: a
spec: {nodeSelector: {gpu: h100}, name: a, placement: {clusterSelector: {example.com/region: us, matchLabel: {}}}, roles: [{resources: {limits: {nvidia.com/gpu: 1}}, tolerations: [], spec: {}, labels: {}, limits: {}, `, 1)},
				render: Render{XR: "xr.yaml"},
			},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: xr.yaml: unknown field profileName (did you mean spec.profileName?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.name: kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.nodeSelector (did you mean spec.roles[].template.spec.nodeSelector?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.placement.clusterSelector.example.com/region (did you mean spec.placement.clusterSelector.matchLabels[example.com/region]?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.placement.clusterSelector.matchLabel (did you mean spec.placement.clusterSelector.matchLabels?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].labels (did you mean spec.roles[0].template.metadata.labels?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].limits: kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].resources (did you mean spec.roles[0].template.spec.containers[].resources?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].spec (did you mean spec.roles[0].template.spec?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].tolerations (did you mean spec.roles[0].template.spec.tolerations?): kubectl apply refuses it, other clients drop it\n",
			},
		},
		"UnknownFieldsInPart": {
			reason: "A name that one known field begins or ends with is told as that field. Several such fields are none.",
			args: args{
				fn: echo,
				files: map[string]string{
					"xr.yaml": strings.Replace(xrDoc, "spec: {roles: [{", "spec: {profile: a, model: {token: a, cache: {storageClass: fast}}, roles: [{type: worker, re: a, ", 1),
				},
				render: Render{XR: "xr.yaml"},
			},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: xr.yaml: unknown field spec.model.cache.storageClass (did you mean spec.model.cache.storageClassName?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.model.token (did you mean spec.model.tokenSecretRef?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.profile (did you mean spec.profileName?): kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].re: kubectl apply refuses it, other clients drop it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].type (did you mean spec.roles[0].componentType?): kubectl apply refuses it, other clients drop it\n",
			},
		},
		"Strict": {
			reason: "With --strict an unknown field is an error, after everything that the function says.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "careful"}),
				files:  map[string]string{"xr.yaml": strings.Replace(xrDoc, "roles: [{", "modl: {}, roles: [{", 1)},
				render: Render{XR: "xr.yaml", Strict: true},
			},
			want: want{
				err: "warning: xr.yaml: unknown field spec.modl (did you mean spec.model?): kubectl apply refuses it, other clients drop it\n" +
					"warning: careful\nerror: --strict refuses the files because of the unknown fields above\n",
				code: 1,
			},
		},
		"BesideSpec": {
			reason: "The same applies beside the spec.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "specs: {}\n" + xrDoc}, render: Render{XR: "xr.yaml"}},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: xr.yaml: unknown field specs (did you mean spec?): kubectl apply refuses it, other clients drop it\n",
			},
		},
		"StrictKnown": {
			reason: "With --strict nothing changes for files without unknown fields.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc}, render: Render{XR: "xr.yaml", Strict: true}},
			want:   want{out: echoed("echo", 0, 0, 0, 0)},
		},
		"UnknownRequired": {
			reason: "The same applies to required services and clusters, where a mistake would change the plan silently.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": xrDoc, "fleet.yaml": `
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east, label: {region: us}}, spec: {stopPolice: Drain, crossplane: {}}, status: {younger: 1}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCLuster, metadata: {name: west}}
---
{apiVersion: fusioninfer.io/v1, kind: ModelCache, metadata: {name: younger, namespace: team}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: s, namespace: team}, spec: {roles: [{replcas: 1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, label: {}}, spec: {typo: 1}}
`},
				render: Render{XR: "xr.yaml", Required: []string{"fleet.yaml"}},
			},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: --required: InferenceCluster east: unknown field metadata.label (did you mean metadata.labels?): kubectl apply refuses it, other clients drop it\n" +
					"warning: --required: InferenceCluster east: unknown field spec.stopPolice (did you mean spec.stopPolicy?): kubectl apply refuses it, other clients drop it\n" +
					"warning: --required: InferenceCluster east: appears twice\n" +
					"warning: --required: InferenceCLuster west: unknown kind\n" +
					"warning: --required: ModelCache team/younger: unknown version fusioninfer.io/v1, so it counts as missing: write it as fusioninfer.io/v1alpha1\n" +
					"warning: --required: InferenceService team/s: unknown field spec.roles[0].replcas (did you mean spec.roles[0].replicas?): kubectl apply refuses it, other clients drop it\n" +
					"warning: these clusters have no status, so nothing is placed there: east, east. --simulate computes their free capacity.\n",
			},
		},
		"UnknownObserved": {
			reason: "The same applies to observed InferenceRoles, whose numbers of replicas a user sets. The file is named.",
			args: args{
				fn: echo,
				files: map[string]string{
					"xr.yaml":    xrDoc,
					"o/one.yaml": strings.Replace(observedRole, "replicas: 3", "replcas: 3", 1),
					"o/two.yaml": observedDoc + "---\n" + strings.NewReplacer("chat-a", "chat-b", "/a", "/b", "v1alpha1", "v1").Replace(observedRole),
				},
				render: Render{XR: "xr.yaml", Observed: []string{"o"}, Strict: true},
			},
			want: want{
				err: "warning: o/one.yaml: InferenceRole chat-a: unknown field spec.replcas (did you mean spec.replicas?): kubectl apply refuses it, other clients drop it\n" +
					"warning: o/two.yaml: InferenceRole chat-b: unknown version fusioninfer.io/v1, so it counts as missing: write it as fusioninfer.io/v1alpha1\n" +
					"error: --strict refuses the files because of the unknown fields above\n",
				code: 1,
			},
		},
		"ObservedNumber": {
			reason: "No API server has an InferenceRole with a number that cannot be read, so it is an error, with and without --strict.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "o/one.yaml": strings.Replace(observedRole, "replicas: 3", `replicas: "three"`, 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o"}},
			},
			want: want{err: `error: cannot use InferenceRole chat-a in "o/one.yaml": spec.replicas: Invalid value: "three": must be a whole number` + "\n", code: 1},
		},
		"ObservedNumbers": {
			reason: "All of them are told at once.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(observedRole, "replicas: 3", "replicas: -1, current: {replicas: 2.5}", 1) +
					"---\n" + strings.NewReplacer("chat-a", "chat-b", "/a", "/b", "replicas: 3", "replicas: 2001").Replace(observedRole)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{
				err: `error: cannot use InferenceRole chat-a in "o.yaml": spec.current.replicas: Invalid value: 2.5: must be a whole number; spec.replicas: Invalid value: -1: must be from 0 to 2000` + "\n" +
					`cannot use InferenceRole chat-b in "o.yaml": spec.replicas: Invalid value: 2001: must be from 0 to 2000` + "\n",
				code: 1,
			},
		},
		"RequiredNumber": {
			reason: "The same applies to required InferenceRoles, which a simulation reads.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "r.yaml": strings.Replace(observedRole, "replicas: 3", `replicas: "3"`, 1)},
				render: Render{XR: "xr.yaml", Required: []string{"r.yaml"}},
			},
			want: want{err: `error: cannot use InferenceRole chat-a in "r.yaml": spec.replicas: Invalid value: "3": must be a whole number` + "\n", code: 1},
		},
		"RequiredWithoutNamespace": {
			reason: "A required object of a kind that the package defines is in default without a namespace, as the XR is.",
			args: args{
				fn: func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					rsp, err := echo(req)
					ns := "default"
					for _, kind := range []string{"InferenceModel", "InferenceRole", "InferenceService", "ModelCache"} {
						rsp.Requirements.Resources[kind] = &fnv1.ResourceSelector{
							ApiVersion: "fusioninfer.io/v1alpha1", Kind: kind, Namespace: &ns,
							Match: &fnv1.ResourceSelector_MatchName{MatchName: "other"},
						}
						if len(req.GetRequiredResources()[kind].GetItems()) != 1 {
							rsp.Desired.Resources = nil
						}
					}
					return rsp, err
				},
				files: map[string]string{"xr.yaml": xrDoc, "r.yaml": `
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceModel, metadata: {name: other}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: other}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: other}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: ModelCache, metadata: {name: other}}
`},
				render: Render{XR: "xr.yaml", Required: []string{"r.yaml"}},
			},
			want: want{out: echoed("echo", 0, 0, 0, 0)},
		},
		"NamespaceOfCluster": {
			reason: "A cluster belongs to no namespace, whatever its file says.",
			args: args{
				fn: runnerFn(func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{}}}, nil
				}),
				files:  map[string]string{"xr.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east, namespace: team}}"},
				render: Render{XR: "xr.yaml"},
			},
			want: want{out: `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata:
  name: east
spec:
  crossplane:
    resourceRefs: []
status:
  conditions:
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: WatchCircuitClosed
    status: "True"
    type: Responsive
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: ReconcileSuccess
    status: "True"
    type: Synced
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: Available
    status: "True"
    type: Ready
`},
		},
		"Claim": {
			reason: "What a claim composes belongs to its composite resource.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": claimDoc}, render: Render{XR: "xr.yaml"}},
			want:   want{err: "error: cannot read \"xr.yaml\": InferenceService team/mine is a claim. Use its composite resource, of kind XInferenceService\n", code: 1},
		},
		"SimulatedClaim": {
			reason: "Nor would a simulation of a claim be one of what runs.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "fleet.yaml": claimDoc},
				render: Render{XR: "xr.yaml", Required: []string{"fleet.yaml"}, Simulate: true},
			},
			want: want{err: "error: cannot use --required: InferenceService team/mine is a claim. Use its composite resource, of kind XInferenceService\n", code: 1},
		},
		"RequiredClaim": {
			reason: "Without a simulation, a required claim is an object as any other.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "r.yaml": claimDoc}, render: Render{XR: "xr.yaml", Required: []string{"r.yaml"}}},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: --required: InferenceService team/mine: unknown field spec.resourceRef: kubectl apply refuses it, other clients drop it\n",
			},
		},
		"RequiredInput": {
			reason: "An Input among the required objects would count for nothing.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "r/in.yaml": inputDoc}, render: Render{XR: "xr.yaml", Required: []string{"r"}}},
			want:   want{err: "error: cannot use the Input in \"r/in.yaml\" of --required: pass it with --input\n", code: 1},
		},
		"RequiredComposition": {
			reason: "So would a Composition.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "r.yaml": compositionDoc}, render: Render{XR: "xr.yaml", Required: []string{"r.yaml"}}},
			want:   want{err: "error: cannot use the Composition in \"r.yaml\" of --required: pass it with --composition\n", code: 1},
		},
		"NoInput": {
			reason: "Without an Input, nobody has said that it has no profiles.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: `spec.profileName: Invalid value: "p": ` + servingprofile.NoProfiles}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{err: "fatal: spec.profileName: Invalid value: \"p\": no profiles are known: they are in the Input of the platform team's Composition, such as package/xr/composition.yaml. Pass the Composition by --composition, or its Input by --input\n", code: 1},
		},
		"InputWithoutProfiles": {
			reason: "An Input without profiles is what the platform team has set.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: `spec.profileName: Invalid value: "p": ` + servingprofile.NoProfiles}),
				files:  map[string]string{"xr.yaml": xrDoc, "in.yaml": inputDoc},
				render: Render{XR: "xr.yaml", Input: "in.yaml"},
			},
			want: want{err: "fatal: spec.profileName: Invalid value: \"p\": must be left out until the platform team sets profiles in the Input of the Composition\n", code: 1},
		},
		"SimulationHasIt": {
			reason: "Of two versions of one service it would not be known which to simulate.",
			args: args{
				fn:     results(),
				files:  map[string]string{"xr.yaml": xrDoc, "fleet.yaml": xrDoc},
				render: Render{XR: "xr.yaml", Required: []string{"fleet.yaml"}, Simulate: true},
			},
			want: want{err: "error: cannot use --required: it has InferenceService default/chat, which is what is rendered. Leave it out, or use plan with --change\n", code: 1},
		},
		"SimulationRefused": {
			reason: "A simulation names the service that the function refuses.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "spec.a: wrong; spec.b: wrong"}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml", Simulate: true},
			},
			want: want{err: "error: InferenceService default/chat is refused: spec.a: wrong\n  spec.b: wrong\n", code: 1},
		},
		"Warning": {
			reason: "The documents are written despite a warning.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "careful"}, &fnv1.Result{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: "well"}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{out: echoed("echo", 0, 0, 0, 0), err: "warning: careful\ninfo: well\n"},
		},
		"ControlCharacters": {
			reason: "What a stranger has written does not control the terminal.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "careful\x1b[2J"}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{out: echoed("echo", 0, 0, 0, 0), err: "warning: careful�[2J\n"},
		},
		"Fatal": {
			reason: "Each problem of a Fatal has a line, and standard output is empty.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: `nothing was changed: spec.roles[0].name: Invalid value: "A; B": must be lower case; or not; spec.roles[1].name: Required value`}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{err: `fatal: nothing was changed: spec.roles[0].name: Invalid value: "A; B": must be lower case; or not` + "\n" + "fatal: spec.roles[1].name: Required value\n", code: 1},
		},
		"Kinds": {
			reason: "A function that requires CRDs gets those of the files. A warning names the others.",
			args: args{
				fn: func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					rsp, err := echo(req)
					for _, name := range []string{"a", "b", "c"} {
						rsp.Requirements.Resources[name] = &fnv1.ResourceSelector{
							ApiVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition",
							Match: &fnv1.ResourceSelector_MatchName{MatchName: name + ".example.com"},
						}
					}
					if len(req.GetRequiredResources()["b"].GetItems()) != 1 {
						rsp.Desired.Resources = nil
					}
					return rsp, err
				},
				files: map[string]string{
					"xr.yaml":   xrDoc,
					"crds.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b.example.com}\n",
				},
				render: Render{XR: "xr.yaml", Required: []string{"crds.yaml"}},
			},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: --required has no CRD for a.example.com, c.example.com: treated as not installed. " +
					"With missingKinds: Fail in the Input, everything is rendered.\n",
			},
		},
		"KindsUnknown": {
			reason: "Without a definition of a kind, every kind counts as installed, whatever the Input says, and the condition tells so.",
			args: args{
				fn: kindsOf,
				files: map[string]string{
					"xr.yaml": xrDoc,
					"in.yaml": inputDoc + "missingKinds: Skip\n",
				},
				render: Render{XR: "xr.yaml", Input: "in.yaml"},
			},
			want: want{out: withCondition(echoed("echo", 7, 0, 0, 0), "--required has no CustomResourceDefinition, so all kinds count as installed")},
		},
		"KindsMisspelt": {
			reason: "What is no value of missingKinds reaches the function, which refuses it.",
			args: args{
				fn:     kindsOf,
				files:  map[string]string{"xr.yaml": xrDoc, "in.yaml": inputDoc + "missingKinds: Skpi\n"},
				render: Render{XR: "xr.yaml", Input: "in.yaml"},
			},
			want: want{err: "fatal: input.missingKinds: \"Skpi\"\n", code: 1},
		},
		"KindsNoText": {
			reason: "So does a list, which cannot be compared.",
			args: args{
				fn:     kindsOf,
				files:  map[string]string{"xr.yaml": xrDoc, "in.yaml": inputDoc + "missingKinds: [Skip]\n"},
				render: Render{XR: "xr.yaml", Input: "in.yaml"},
			},
			want: want{err: "fatal: input.missingKinds: [\"Skip\"]\n", code: 1},
		},
		"KindsNoTextWithDefinitions": {
			reason: "So it does with definitions of kinds in the files.",
			args: args{
				fn: kindsOf,
				files: map[string]string{
					"xr.yaml": xrDoc, "in.yaml": inputDoc + "missingKinds: {}\n",
					"crds.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b.example.com}\n",
				},
				render: Render{XR: "xr.yaml", Input: "in.yaml", Required: []string{"crds.yaml"}},
			},
			want: want{err: "fatal: input.missingKinds: {}\n", code: 1},
		},
		"KindsNotAsked": {
			reason: "Of an Input that does not ask for kinds, the condition says what the function says.",
			args:   args{fn: kindsOf, files: map[string]string{"xr.yaml": xrDoc, "in.yaml": inputDoc}, render: Render{XR: "xr.yaml", Input: "in.yaml"}},
			want:   want{out: withCondition(echoed("echo", 7, 0, 0, 0), "the Input does not ask")},
		},
		"ResponseSharesRequest": {
			reason: "If a function changes the desired state of its request, the next request does not have the change.",
			args: args{
				fn: func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					rsp, err := echo(req)
					if req.Desired.Resources == nil {
						req.Desired.Resources = map[string]*fnv1.Resource{}
					}
					req.Desired.Resources[fmt.Sprint("configmap", len(req.GetRequiredResources()))] = rsp.GetDesired().GetResources()["configmap"]
					rsp.Desired = req.GetDesired()
					return rsp, err
				},
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{out: strings.Replace(echoed("echo", 0, 0, 0, 0), "resource-name: configmap", "resource-name: configmap2", 1)},
		},
		"FunctionFails": {
			reason: "An error of the call is reported.",
			args: args{
				fn:     func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) { return nil, os.ErrClosed },
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{err: "error: cannot run the function: file already closed\n", code: 1},
		},
		"UnstableRequirements": {
			reason: "If the requirements change with each call, the render fails after as many calls as Crossplane makes.",
			args: args{
				fn: func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					name := strconv.Itoa(len(req.GetRequiredResources()))
					rs := map[string]*fnv1.ResourceSelector{name: {ApiVersion: "v1", Kind: "Pod"}}
					for n := range req.GetRequiredResources() {
						rs[n] = &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Pod"}
					}
					return &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: rs}}, nil
				},
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{err: "error: the function's requirements still change after 6 calls\n", code: 1},
		},
		"NoFile": {
			reason: "A file that does not exist is an error.",
			args:   args{fn: echo, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": no such file or directory` + "\n", code: 1},
		},
		"EmptyFile": {
			reason: "A file that has only a comment is an error.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "# nothing\n---\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has no documents` + "\n", code: 1},
		},
		"TwoXRs": {
			reason: "The file of the XR must have exactly one document.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc + "---\n" + xrDoc}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has 2 documents, and must have one` + "\n", code: 1},
		},
		"NoXR": {
			reason: "A list without items has none.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "{apiVersion: v1, kind: List, items: []}"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has 0 documents, and must have one` + "\n", code: 1},
		},
		"NothingRequired": {
			reason: "kubectl get writes a list without items where a cluster has none.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "r.yaml": "{apiVersion: v1, kind: List, items: []}", "r/caches.yaml": "{apiVersion: v1, kind: List, items: []}"},
				render: Render{XR: "xr.yaml", Required: []string{"r.yaml", "r"}},
			},
			want: want{out: echoed("echo", 0, 0, 0, 0)},
		},
		"OtherKind": {
			reason: "An XR of another kind is refused.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": inputDoc}, render: Render{XR: "xr.yaml"}},
			want: want{
				err:  `error: cannot read "xr.yaml": it is of kind Input in fn.fusioninfer.io/v1alpha1, not InferenceService, XInferenceService, InferenceCluster, InferenceModel, XInferenceModel, ModelCache or XModelCache in fusioninfer.io/v1alpha1` + "\n",
				code: 1,
			},
		},
		"NoName": {
			reason: "An XR needs a name.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": strings.Replace(xrDoc, "name: chat", "namespace: a", 1)}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has no metadata.name` + "\n", code: 1},
		},
		"NotYAML": {
			reason: "A file that is not YAML is an error.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "a: b: c\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": document 1: yaml: mapping values are not allowed in this context` + "\n", code: 1},
		},
		"TwiceTheSameKey": {
			reason: "A key that appears twice is an error.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc + "kind: Other\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": document 1: yaml: unmarshal errors:` + "\n" + `  line 5: key "kind" already set in map` + "\n", code: 1},
		},
		"NotAnObject": {
			reason: "A document that is not an object is an error.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "[1, 2]\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": document 1: not a Kubernetes object` + "\n", code: 1},
		},
		"ObservedWithoutKey": {
			reason: "Without the annotation, nobody knows which composed resource it is.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o.yaml": fromCluster}, render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}}},
			want:   want{err: `error: cannot use Pod p0 in "o.yaml": it has no annotation crossplane.io/composition-resource-name, so nobody knows which composed resource it is. Pass what InferenceService chat has not composed with --required` + "\n", code: 1},
		},
		"ObservedTwice": {
			reason: "Two observed resources with the same key are refused.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o.yaml": observedDoc + "---\n" + observedDoc}, render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}}},
			want:   want{err: `error: cannot use ConfigMap old in "o.yaml": another observed resource has the key "configmap", too. Pass one state of the service only` + "\n", code: 1},
		},
		"ObservedOfAnother": {
			reason: "An observed resource that another XR controls is refused.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(observedDoc, "metadata: {",
					"metadata: {ownerReferences: [{apiVersion: v1, kind: X, name: other, uid: z, controller: true}], ", 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{
				err:  `error: cannot use ConfigMap old in "o.yaml": its controller is X other with uid "z", and the XR has uid "838bec26-633f-520d-8d11-d897a07f7fe6". Write that uid into the metadata of the XR, if it is the same one` + "\n",
				code: 1,
			},
		},
		"ObservedInOtherNamespace": {
			reason: "A namespaced XR composes resources only in its own namespace.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(observedDoc, "namespace: default", "namespace: other", 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{err: `error: cannot use ConfigMap old in "o.yaml": it is in namespace "other", and the XR in "default"` + "\n", code: 1},
		},
		"EmptyDirectory": {
			reason: "A directory without YAML files is an error.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o/readme.md": ""}, render: Render{XR: "xr.yaml", Observed: []string{"o"}}},
			want:   want{err: `error: cannot read "o": the directory has no file with documents that ends with .yaml, .yml, .json` + "\n", code: 1},
		},
		"DirectoryOfComments": {
			reason: "So is one without documents.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o/a.yaml": "# nothing\n"}, render: Render{XR: "xr.yaml", Observed: []string{"o"}}},
			want: want{
				err: "warning: \"o/a.yaml\" is not read, because it is a file without documents\n" +
					"error: cannot read \"o\": the directory has no file with documents that ends with .yaml, .yml, .json\n",
				code: 1,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inDirectory(t, tc.args.files)
			out, errs := &bytes.Buffer{}, &bytes.Buffer{}
			err := tc.args.render.Run(t.Context(), tc.args.fn, Streams{In: strings.NewReader(tc.args.stdin), Out: out, Err: errs})
			got := want{code: Exit(errs, err), out: out.String(), err: errs.String()}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nRender: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// inDirectory writes files into a temporary directory and changes into it, so that messages
// have short paths.
func inDirectory(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestRenderJSON(t *testing.T) {
	inDirectory(t, map[string]string{"xr.yaml": xrDoc})
	out := &bytes.Buffer{}
	r := Render{XR: "xr.yaml", Format: "json"}
	if err := r.Run(t.Context(), runnerFn(echo), Streams{Out: out, Err: &bytes.Buffer{}}); err != nil {
		t.Fatal(err)
	}
	list := struct {
		APIVersion, Kind string
		Items            []struct{ Kind string }
	}{}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	got := []string{list.APIVersion, list.Kind}
	for _, i := range list.Items {
		got = append(got, i.Kind)
	}
	if diff := cmp.Diff([]string{"v1", "List", "InferenceService", "ConfigMap"}, got); diff != "" {
		t.Errorf("--format json: -want, +got:\n%s", diff)
	}
}
