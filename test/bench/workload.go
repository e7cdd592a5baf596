package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A workload is an InferenceService to reconcile.
type workload struct {
	name string
	file string
	// replicas of its roles, where the file's own are not what is meant.
	replicas int
}

var workloads = []workload{
	{name: "story 4", file: "../../example/quickstart/xr.yaml"},
	{name: "10 replicas", file: "../../example/workers-single-node/xr.yaml", replicas: 10},
	{name: "100 replicas", file: "../../example/workers-single-node/xr.yaml", replicas: 100},
	{name: "300 replicas", file: "../../example/workers-single-node/xr.yaml", replicas: 300},
}

// A call is one request, in the form that each target takes.
type call struct {
	workload string
	state    string
	// function is the request with this function's input; templated is the same
	// with the input of function-go-templating.
	function, templated []byte
	// answer is what this function says, and size how many bytes that has.
	answer *fnv1.RunFunctionResponse
	size   int
	// answerFile has the answer for the floor.
	answerFile string
}

func (c *call) tag() string { return c.workload + ", " + c.state }

//go:embed template/service.yaml.tmpl
var template string

// calls makes the requests of a workload: that of the first reconcile, and that
// of the steady state, when all is there and ready. Both are what Crossplane sends
// last in a reconcile, with all that the function requires.
func (w workload) calls(ctx context.Context, function *caller) ([]*call, error) {
	xr, err := w.xr()
	if err != nil {
		return nil, err
	}
	first, err := converge(ctx, function, &call{workload: w.name, state: "first"}, xr, nil)
	if err != nil {
		return nil, err
	}
	desired := first.answer.GetDesired().GetResources()
	resources := make(map[string]object, len(desired))
	for key, r := range desired {
		resources[key] = observed(key, r.GetResource().AsMap(), xr)
	}
	refer(xr, resources)
	steady := first
	// Twice, so that the status and conditions of the XR are those of the answer.
	for range 2 {
		tell(xr, steady.answer)
		if steady, err = converge(ctx, function, &call{workload: w.name, state: "steady"}, xr, resources); err != nil {
			return nil, err
		}
	}
	return []*call{first, steady}, nil
}

// xr is the composite resource as the API server returns it.
func (w workload) xr() (object, error) {
	b, err := os.ReadFile(w.file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the workload: %w", err)
	}
	xr := object{}
	if err := yaml.Unmarshal(b, &xr); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", w.file, err)
	}
	if w.replicas > 0 {
		roles, _ := lookup(xr, "spec", "roles").([]any)
		for _, r := range roles {
			role, _ := r.(object)
			role["replicas"] = w.replicas
		}
	}
	written, err := json.Marshal(xr)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", w.file, err)
	}
	name, _ := lookup(xr, "metadata", "name").(string)
	user := manager(clone(xr), "kubectl-client-side-apply", "Update", "", applied)
	maps.Copy(child(xr, "metadata"), object{
		"annotations":       object{"kubectl.kubernetes.io/last-applied-configuration": string(written)},
		"creationTimestamp": applied, "finalizers": []any{"composite.apiextensions.crossplane.io"}, "generation": 2,
		"labels": object{"crossplane.io/composite": name}, "managedFields": []any{user}, "resourceVersion": "48211932", "uid": uid(name),
	})
	child(xr, "spec")["crossplane"] = object{
		"compositionRef":          object{"name": "inferenceservices.fusioninfer.io"},
		"compositionRevisionRef":  object{"name": "inferenceservices.fusioninfer.io-5c1d8f7"},
		"compositionUpdatePolicy": "Automatic",
	}
	return xr, nil
}

// refer lists the composed resources in the XR, as Crossplane does.
func refer(xr object, resources map[string]object) {
	refs := make([]any, 0, len(resources))
	for _, key := range slices.Sorted(maps.Keys(resources)) {
		r := resources[key]
		refs = append(refs, object{"apiVersion": r["apiVersion"], "kind": r["kind"], "name": lookup(r, "metadata", "name")})
	}
	child(xr, "spec", "crossplane")["resourceRefs"] = refs
}

// tell writes a response's status and conditions into the XR, as Crossplane does.
func tell(xr object, rsp *fnv1.RunFunctionResponse) {
	status, _ := rsp.GetDesired().GetComposite().GetResource().AsMap()["status"].(object)
	conditions := []any{condition("Synced", "True", "ReconcileSuccess", ""), condition("Ready", "True", "Available", "")}
	for _, c := range rsp.GetConditions() {
		s := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[c.GetStatus()]
		if s == "" {
			s = "Unknown"
		}
		conditions = append(conditions, condition(c.GetType(), s, c.GetReason(), c.GetMessage()))
	}
	status["conditions"] = conditions
	xr["status"] = status
	managers, _ := lookup(xr, "metadata", "managedFields").([]any)
	crossplane := manager(object{"apiVersion": xr["apiVersion"], "status": status}, "apiextensions.crossplane.io/composite", "Apply", "status", reported)
	child(xr, "metadata")["managedFields"] = append(managers[:1:1], crossplane)
}

// maxIterations is how often Crossplane calls a function whose requirements keep changing.
const maxIterations = 5

// converge calls the function until its requirements no longer change, and returns the last call.
func converge(ctx context.Context, function *caller, c *call, xr object, resources map[string]object) (*call, error) {
	req, err := request(c.tag(), xr, resources)
	if err != nil {
		return nil, err
	}
	for range maxIterations {
		if c.function, err = proto.Marshal(req); err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", c.tag(), err)
		}
		b, err := function.call(ctx, c.function)
		if err != nil {
			return nil, err
		}
		before := c.answer
		c.answer, c.size = &fnv1.RunFunctionResponse{}, len(b)
		if err := proto.Unmarshal(b, c.answer); err != nil {
			return nil, fmt.Errorf("cannot decode the answer to %s: %w", c.tag(), err)
		}
		if f := fatal(c.answer); f != "" {
			return nil, fmt.Errorf("%s is refused: %s", c.tag(), f)
		}
		if proto.Equal(before.GetRequirements(), c.answer.GetRequirements()) {
			return c, c.withTemplate(req)
		}
		if err := fulfil(req, c.answer.GetRequirements(), resources); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the requirements of %s still change", c.tag())
}

func fatal(rsp *fnv1.RunFunctionResponse) string {
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return r.GetMessage()
		}
	}
	return ""
}

// withTemplate keeps the request with the input of function-go-templating.
func (c *call) withTemplate(req *fnv1.RunFunctionRequest) error {
	in, err := structpb.NewStruct(object{
		"apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate",
		"source": "Inline", "inline": object{"template": template},
	})
	if err != nil {
		return fmt.Errorf("cannot encode the template: %w", err)
	}
	own := req.GetInput()
	req.Input = in
	defer func() { req.Input = own }()
	if c.templated, err = proto.Marshal(req); err != nil {
		return fmt.Errorf("cannot encode %s: %w", c.tag(), err)
	}
	return nil
}

func request(tag string, xr object, resources map[string]object) (*fnv1.RunFunctionRequest, error) {
	composite, err := structpb.NewStruct(xr)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the XR: %w", err)
	}
	in, err := structpb.NewStruct(object{"apiVersion": "fn.fusioninfer.io/v1alpha1", "kind": "Input"})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the input: %w", err)
	}
	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: tag, Capabilities: []fnv1.Capability{
			fnv1.Capability_CAPABILITY_CAPABILITIES,
			fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
			fnv1.Capability_CAPABILITY_CREDENTIALS,
			fnv1.Capability_CAPABILITY_CONDITIONS,
			fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
		}},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: composite}, Resources: map[string]*fnv1.Resource{}},
		Desired:  &fnv1.State{},
		Input:    in,
	}
	for key, o := range resources {
		s, err := structpb.NewStruct(o)
		if err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", key, err)
		}
		req.Observed.Resources[key] = &fnv1.Resource{Resource: s}
	}
	return req, nil
}

// fulfil answers what the function requires: its pods, and nothing else that
// would have a name it wants.
func fulfil(req *fnv1.RunFunctionRequest, reqs *fnv1.Requirements, resources map[string]object) error {
	req.RequiredResources = map[string]*fnv1.Resources{}
	for name, selector := range reqs.GetResources() {
		found := &fnv1.Resources{}
		req.RequiredResources[name] = found
		if selector.GetKind() != "Pod" {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(resources)) {
			if !strings.HasPrefix(key, "leaderworkerset/") {
				continue
			}
			for _, p := range pods(resources[key]) {
				s, err := structpb.NewStruct(p)
				if err != nil {
					return fmt.Errorf("cannot encode the pods of %s: %w", key, err)
				}
				found.Items = append(found.Items, &fnv1.Resource{Resource: s})
			}
		}
	}
	return nil
}
