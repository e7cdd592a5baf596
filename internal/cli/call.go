package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/labels"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// maxIterations is how often Crossplane calls a function again whose requirements changed.
const maxIterations = 5

// call calls the function until its requirements no longer change, as Crossplane does.
func call(ctx context.Context, fn Runner, g *snapshot) (*fnv1.RunFunctionResponse, error) {
	return callAgain(ctx, fn, g, nil)
}

// callAgain calls the function with the requirements of an earlier call for the same XR, which
// are nil for the first one. They save the calls that only find out what is required.
func callAgain(ctx context.Context, fn Runner, g *snapshot, before *fnv1.Requirements) (*fnv1.RunFunctionResponse, error) {
	req, err := request(g)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if err := fulfil(req, before, g); err != nil {
			return nil, err
		}
	}
	for i := 0; i <= maxIterations; i++ {
		// A response may share parts with its request. Over gRPC, changing them would not
		// change the next request.
		rsp, err := fn.RunFunction(ctx, proto.CloneOf(req))
		if err != nil {
			return nil, fmt.Errorf("cannot run the function: %w", err)
		}
		reqs := rsp.GetRequirements()
		if g.input == nil || g.inputMade {
			askForInput(rsp.GetResults())
		}
		if isFatal(rsp) || proto.Equal(reqs, before) {
			return rsp, nil
		}
		before = reqs
		if err := fulfil(req, reqs, g); err != nil {
			return nil, err
		}
		req.Context = rsp.GetContext()
	}
	return nil, fmt.Errorf("the function's requirements still change after %d calls", maxIterations+1)
}

// missingCRDs names the CustomResourceDefinitions that the function requires and that are
// not among the objects of the cluster.
func missingCRDs(rsp *fnv1.RunFunctionResponse, cluster []object) string {
	var names []string
	for _, s := range rsp.GetRequirements().GetResources() {
		if s.GetKind() == "CustomResourceDefinition" && len(find(cluster, s)) == 0 {
			names = append(names, s.GetMatchName())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// askForInput says where profiles are, and how to pass an Input, where there is none that could have them.
func askForInput(results []*fnv1.Result) {
	for _, r := range results {
		r.Message = strings.ReplaceAll(r.GetMessage(), servingprofile.NoProfiles, "no profiles are known: they are in the Input of the platform team's Composition, such as package/xr/composition.yaml. Pass the Composition by --composition, or its Input by --input")
	}
}

func isFatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

func request(g *snapshot) (*fnv1.RunFunctionRequest, error) {
	xr, err := asStruct(g.xr)
	if err != nil {
		return nil, err
	}
	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "render", Capabilities: []fnv1.Capability{
			fnv1.Capability_CAPABILITY_CAPABILITIES,
			fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
			fnv1.Capability_CAPABILITY_CREDENTIALS,
			fnv1.Capability_CAPABILITY_CONDITIONS,
			fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
		}},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: map[string]*fnv1.Resource{}},
		Desired:  &fnv1.State{},
	}
	for key, o := range g.observed {
		s, err := asStruct(o)
		if err != nil {
			return nil, err
		}
		req.Observed.Resources[key] = &fnv1.Resource{Resource: s}
	}
	if g.input != nil {
		req.Input, err = asStruct(*g.input)
	}
	return req, err
}

func asStruct(o object) (*structpb.Struct, error) {
	s, err := structpb.NewStruct(o.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return s, nil
}

// fulfil adds to the request the objects of the cluster that the function requires.
func fulfil(req *fnv1.RunFunctionRequest, reqs *fnv1.Requirements, g *snapshot) error {
	req.RequiredResources = map[string]*fnv1.Resources{}
	for name, sel := range reqs.GetResources() {
		found, err := g.resources(sel)
		if err != nil {
			return err
		}
		req.RequiredResources[name] = &fnv1.Resources{Items: found}
	}
	return nil
}

// resources returns the objects that match a selector, as a request has them.
func (g *snapshot) resources(sel *fnv1.ResourceSelector) ([]*fnv1.Resource, error) {
	if g.store != nil {
		return g.store.resources(sel)
	}
	var all []*fnv1.Resource
	for _, o := range find(g.cluster, sel) {
		s, err := asStruct(o)
		if err != nil {
			return nil, err
		}
		all = append(all, &fnv1.Resource{Resource: s})
	}
	return all, nil
}

// find returns the objects that match a selector, sorted by namespace and name.
func find(cluster []object, sel *fnv1.ResourceSelector) []object {
	var all []object
	for _, o := range cluster {
		if o.GetAPIVersion() == sel.GetApiVersion() && o.GetKind() == sel.GetKind() && matches(o, sel) {
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, func(a, b object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return all
}

func matches(o object, sel *fnv1.ResourceSelector) bool {
	switch m := sel.GetMatch().(type) {
	case *fnv1.ResourceSelector_MatchName:
		return o.GetName() == m.MatchName && o.GetNamespace() == sel.GetNamespace()
	case *fnv1.ResourceSelector_MatchLabels:
		if !labels.SelectorFromSet(m.MatchLabels.GetLabels()).Matches(labels.Set(o.GetLabels())) {
			return false
		}
	}
	return sel.GetNamespace() == "" || o.GetNamespace() == sel.GetNamespace()
}

// errFatal ends a render whose problems report has already written.
var errFatal = errors.New("the function returned a fatal result")

// report writes each problem of the function's results in a line of its own. It returns
// errFatal if one of the results is fatal.
func report(w io.Writer, results []*fnv1.Result) error {
	var fatal error
	for _, r := range results {
		severity := "info"
		switch r.GetSeverity() { //nolint:exhaustive // The others are for information.
		case fnv1.Severity_SEVERITY_FATAL:
			severity, fatal = "fatal", errFatal
		case fnv1.Severity_SEVERITY_WARNING:
			severity = "warning"
		}
		for _, problem := range problems(r.GetMessage()) {
			_, _ = fmt.Fprintf(w, "%s: %s\n", severity, problem)
		}
	}
	return fatal
}

// nextProblem matches where a message goes on with the path of another problem. A Fatal has
// only one message, so the function puts all problems into it.
var nextProblem = regexp.MustCompile(`; ((?:spec|metadata|input)[.\[:])`)

func problems(message string) []string {
	return strings.Split(nextProblem.ReplaceAllString(strings.TrimSpace(message), "\n$1"), "\n")
}

// Exit returns the exit code for a command's error. It writes the error, except for one that
// report has written, and for a code that a flag asked for.
func Exit(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if changes := exitCodeError(0); errors.As(err, &changes) {
		return int(changes)
	}
	if !errors.Is(err, errFatal) {
		_, _ = fmt.Fprintln(forPeople{w}, "error:", err)
	}
	return 1
}

// An exitCodeError ends a command that has succeeded with another code than 0.
type exitCodeError int

// Error says which code.
func (c exitCodeError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
