package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// runnerFn is a function that is nothing but its RunFunction.
type runnerFn func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// RunFunction runs the function.
func (f runnerFn) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return f(req)
}

// echo composes one ConfigMap that tells what the function was given, after it
// has asked for the pods of the service and for one object by name.
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
spec: {roles: [{name: a, componentType: worker, template: {anything: {goes: here}}}]}
`
	xrTypo = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec: {crossplane: {compositionRef: {name: c}}, rolse: [], replicas: "3", roles: [{name: a, replcas: 2, template: {any: thing}, resources: {limits: {cpu: 1}, limit: {}}}]}
`
	inputDoc = `apiVersion: inferenceservice.fn.crossplane.io/v1beta1
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
  - {step: first, functionRef: {name: x}, input: {apiVersion: x.fn.crossplane.io/v1, kind: Input}}
  - {step: second, functionRef: {name: y}, input: {apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, podObservationLimit: 9}}
`
	cluster = `# Only a comment.
---
apiVersion: v1
kind: Pod
metadata: {name: p0, namespace: default, labels: {app: x, more: "1"}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: p1, namespace: other, labels: {app: x}}}
- {apiVersion: v1, kind: Pod, metadata: {name: p2, namespace: default, labels: {app: y}}}
- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}}
`
	observedDoc = `apiVersion: v1
kind: ConfigMap
metadata: {name: old, namespace: default, annotations: {crossplane.io/composition-resource-name: configmap}}
`
)

// echoed is what a render of the echo function looks like.
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
			reason: "An XR alone is enough. Without a namespace it is in default.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc}, render: Render{XR: "xr.yaml"}},
			want:   want{out: echoed("echo", 0, 0, 0, 0)},
		},
		"Stdin": {
			reason: "- is standard input.",
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
				files: map[string]string{"xr.yaml": xrDoc, "in.yaml": inputDoc, "o/a.yaml": observedDoc, "o/readme.md": "no", "r.yaml": cluster},
				render: Render{
					XR: "xr.yaml", Input: "in.yaml", Observed: []string{"o"}, Required: []string{"r.yaml"},
				},
			},
			want: want{out: echoed("old", 7, 1, 1, 1)},
		},
		"Composition": {
			reason: "The Input comes from the step that has one of ours.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "c.yaml": compositionDoc}, render: Render{XR: "xr.yaml", Composition: "c.yaml"}},
			want:   want{out: echoed("echo", 9, 0, 0, 0)},
		},
		"CompositionWithoutInput": {
			reason: "A Composition without our Input names its steps.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "c.yaml": strings.Replace(compositionDoc, "inferenceservice.fn", "other.fn", 1)},
				render: Render{XR: "xr.yaml", Composition: "c.yaml"},
			},
			want: want{err: `error: cannot read "c.yaml": 0 of its steps (first, second) have an input of kind Input of inferenceservice.fn.crossplane.io/v1beta1, and one should` + "\n", code: 1},
		},
		"CompositionOfAnotherKind": {
			reason: "A Composition for another kind is not for this XR.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "c.yaml": strings.Replace(compositionDoc, "kind: InferenceService", "kind: XInferenceService", 1)},
				render: Render{XR: "xr.yaml", Composition: "c.yaml"},
			},
			want: want{err: `error: cannot use "c.yaml": it composes "XInferenceService", and the XR is of kind "InferenceService"` + "\n", code: 1},
		},
		"UnknownFields": {
			reason: "What an API server would drop is named with its path, beside values of the wrong type; Crossplane's own fields are known.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrTypo, "in.yaml": inputDoc + "endpointPicker: {imagee: x, tolerations: [{key: a}]}\n"}, render: Render{XR: "xr.yaml", Input: "in.yaml"}},
			want: want{
				out: echoed("echo", 7, 0, 0, 0),
				err: "warning: xr.yaml: unknown field spec.roles[0].replcas: an API server drops it\n" +
					"warning: xr.yaml: unknown field spec.roles[0].resources.limit: an API server drops it\n" +
					"warning: xr.yaml: unknown field spec.rolse: an API server drops it\n",
			},
		},
		"UnknownRequired": {
			reason: "So it is in other services and clusters, which would change the plan in silence.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": xrDoc, "fleet.yaml": `
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east, label: {region: us}}, spec: {taint: [{effect: Drain}], crossplane: {}}, status: {younger: 1}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCLuster, metadata: {name: west}}
---
{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: s, namespace: team}, spec: {roles: [{replcas: 1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, label: {}}, spec: {typo: 1}}
`},
				render: Render{XR: "xr.yaml", Required: []string{"fleet.yaml"}},
			},
			want: want{
				out: echoed("echo", 0, 0, 0, 0),
				err: "warning: --required: InferenceCluster east: unknown field metadata.label: an API server drops it\n" +
					"warning: --required: InferenceCluster east: unknown field spec.taint: an API server drops it\n" +
					"warning: --required: InferenceCluster east: is there twice\n" +
					"warning: --required: InferenceCLuster west: there is no such kind\n" +
					"warning: --required: InferenceService team/s: unknown field spec.roles[0].replcas: an API server drops it\n" +
					"warning: these clusters have no status, so nothing is placed there: east, east. With --settle they say what room they have.\n",
			},
		},
		"Warning": {
			reason: "A warning does not keep the documents back.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "careful"}, &fnv1.Result{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: "well"}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{out: echoed("echo", 0, 0, 0, 0), err: "warning: careful\ninfo: well\n"},
		},
		"Fatal": {
			reason: "A Fatal has a line for each problem, and leaves standard output empty.",
			args: args{
				fn:     results(&fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: `nothing was changed: spec.roles[0].name: Invalid value: "A; B": must be lower case; or not; spec.roles[1].name: Required value`}),
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{err: `fatal: nothing was changed: spec.roles[0].name: Invalid value: "A; B": must be lower case; or not` + "\n" + "fatal: spec.roles[1].name: Required value\n", code: 1},
		},
		"Kinds": {
			reason: "A function that asks for definitions of kinds is given those of the files. The person is told of the others.",
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
				err: "warning: these kinds count as missing, for --required has no definition of them: a.example.com, c.example.com. " +
					"Without requireKinds in the Input everything is rendered.\n",
			},
		},
		"AnswerSharesRequest": {
			reason: "What a function adds to the desired state that it was given is not there at the next call.",
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
			reason: "An error of the call itself is an error.",
			args: args{
				fn:     func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) { return nil, os.ErrClosed },
				files:  map[string]string{"xr.yaml": xrDoc},
				render: Render{XR: "xr.yaml"},
			},
			want: want{err: "error: cannot run the function: file already closed\n", code: 1},
		},
		"NeverSettles": {
			reason: "A function that always asks for something else is stopped, as Crossplane does.",
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
			want: want{err: "error: the function still asks for something else after 6 calls\n", code: 1},
		},
		"NoFile": {
			reason: "A file that does not exist.",
			args:   args{fn: echo, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": no such file or directory` + "\n", code: 1},
		},
		"EmptyFile": {
			reason: "A file with nothing but a comment.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "# nothing\n---\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has no document` + "\n", code: 1},
		},
		"TwoXRs": {
			reason: "An XR file has one document.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc + "---\n" + xrDoc}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has 2 documents and should have one` + "\n", code: 1},
		},
		"OtherKind": {
			reason: "A file of another kind.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": inputDoc}, render: Render{XR: "xr.yaml"}},
			want: want{
				err:  `error: cannot read "xr.yaml": it is of kind Input in inferenceservice.fn.crossplane.io/v1beta1, not InferenceService, XInferenceService or InferenceCluster in fusioninfer.io/v1alpha1` + "\n",
				code: 1,
			},
		},
		"NoName": {
			reason: "An XR needs a name.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": strings.Replace(xrDoc, "name: chat", "namespace: a", 1)}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": it has no metadata.name` + "\n", code: 1},
		},
		"NotYAML": {
			reason: "A file that is no YAML.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "a: b: c\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": document 1: yaml: mapping values are not allowed in this context` + "\n", code: 1},
		},
		"TwiceTheSameKey": {
			reason: "A key that is there twice is a mistake.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc + "kind: Other\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": document 1: yaml: unmarshal errors:` + "\n" + `  line 5: key "kind" already set in map` + "\n", code: 1},
		},
		"NotAnObject": {
			reason: "YAML that is no object.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": "[1, 2]\n"}, render: Render{XR: "xr.yaml"}},
			want:   want{err: `error: cannot read "xr.yaml": document 1: not a Kubernetes object` + "\n", code: 1},
		},
		"ObservedWithoutKey": {
			reason: "An observed resource without the annotation would be taken for nobody's.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o.yaml": cluster}, render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}}},
			want:   want{err: `error: cannot use Pod p0 in "o.yaml": it has no annotation crossplane.io/composition-resource-name` + "\n", code: 1},
		},
		"ObservedTwice": {
			reason: "Two observed resources with one key.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o.yaml": observedDoc + "---\n" + observedDoc}, render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}}},
			want:   want{err: `error: cannot use ConfigMap old in "o.yaml": another observed resource is "configmap" as well` + "\n", code: 1},
		},
		"ObservedOfAnother": {
			reason: "An observed resource that another XR controls.",
			args: args{
				fn: echo,
				files: map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(observedDoc, "metadata: {",
					"metadata: {ownerReferences: [{apiVersion: v1, kind: X, name: other, uid: z, controller: true}], ", 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{
				err:  `error: cannot use ConfigMap old in "o.yaml": its controller is X other with uid "z", and the XR has uid "838bec26-633f-520d-8d11-d897a07f7fe6"` + "\n",
				code: 1,
			},
		},
		"ObservedElsewhere": {
			reason: "An XR in a namespace composes in that namespace only.",
			args: args{
				fn:     echo,
				files:  map[string]string{"xr.yaml": xrDoc, "o.yaml": strings.Replace(observedDoc, "namespace: default", "namespace: other", 1)},
				render: Render{XR: "xr.yaml", Observed: []string{"o.yaml"}},
			},
			want: want{err: `error: cannot use ConfigMap old in "o.yaml": it is in namespace "other", and the XR in "default"` + "\n", code: 1},
		},
		"EmptyDirectory": {
			reason: "A directory without YAML.",
			args:   args{fn: echo, files: map[string]string{"xr.yaml": xrDoc, "o/readme.md": ""}, render: Render{XR: "xr.yaml", Observed: []string{"o"}}},
			want:   want{err: `error: cannot read "o": the directory has no .yaml file` + "\n", code: 1},
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

// inDirectory makes the files and works among them, so that messages have short
// paths.
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
