package incoming_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

type widget struct {
	Spec struct {
		Parts []struct {
			Name string `json:"name"`
		} `json:"parts"`
	} `json:"spec"`
}

type gadget struct {
	Status struct {
		Size int32 `json:"size"`
	} `json:"status"`
}

// This test declares what it reads, as packages of the function do.
var (
	widgets = incoming.NewView[widget]()
	gadgets = incoming.NewCompositeView[gadget]()
	color   = incoming.NewPath("metadata", "annotations", "color")
	inner   = incoming.NewNested("status", "inner")
)

func resource(tb testing.TB, y string) *fnv1.Resource {
	tb.Helper()
	o := map[string]any{}
	if err := yaml.Unmarshal([]byte(y), &o); err != nil {
		tb.Fatal(err)
	}
	s, err := structpb.NewStruct(o)
	if err != nil {
		tb.Fatal(err)
	}
	return &fnv1.Resource{Resource: s}
}

// TestRead shows that declared fields arrive and can be read, and that no others arrive.
func TestRead(t *testing.T) {
	const (
		sent = `
apiVersion: v1
kind: Widget
metadata: {name: w, annotations: {color: red, shape: round}, managedFields: [{}]}
spec: {parts: [{name: a, weight: 1}]}
status:
  size: 7
  inner: {kind: Inner, metadata: {annotations: {color: blue, shape: flat}}, status: {inner: {metadata: {name: innermost}}, size: 8}}
`
		arrived = `
apiVersion: v1
kind: Widget
metadata: {name: w, annotations: {color: red}}
spec: {parts: [{name: a}]}
status:
  inner: {kind: Inner, metadata: {annotations: {color: blue}}, status: {inner: {metadata: {name: innermost}}}}
`
		composite = "{kind: Gadget, spec: {any: [thing]}, status: {size: 7, weight: 1}}"
	)
	raw := incomingtest.Raw(t, &fnv1.RunFunctionRequest{
		Observed:          &fnv1.State{Composite: resource(t, composite), Resources: map[string]*fnv1.Resource{"widget": resource(t, sent)}},
		RequiredResources: map[string]*fnv1.Resources{"widgets": {Items: []*fnv1.Resource{resource(t, sent)}}, "none": {}},
	})
	want := &fnv1.RunFunctionRequest{
		Observed: &fnv1.State{
			Composite: resource(t, "{kind: Gadget, spec: {any: [thing]}, status: {size: 7}}"),
			Resources: map[string]*fnv1.Resource{"widget": resource(t, arrived)},
		},
		RequiredResources: map[string]*fnv1.Resources{"widgets": {Items: []*fnv1.Resource{resource(t, arrived)}}, "none": {}},
	}
	if diff := cmp.Diff(want, raw, protocmp.Transform()); diff != "" {
		t.Errorf("-want, +arrived:\n%s", diff)
	}

	type read struct {
		Kind, Name, Color, Part, InnerColor, Innermost string
		Size                                           int32
		Spec                                           any
		Keys                                           []key.Key
		Missing, Resolved, Unresolved                  bool
	}
	req := incoming.Of(raw)
	g := gadget{}
	if errs := gadgets.Read(req.Composite(), &g); len(errs) > 0 {
		t.Error(errs)
	}
	required, resolved := req.Required("widgets")
	none, alsoResolved := req.Required("none")
	_, notYet := req.Required("other")
	w := widget{}
	if errs := widgets.Read(required[0], &w); len(errs) > 0 {
		t.Error(errs)
	}
	o := req.Observed(key.Parse("widget"))
	got := read{
		Kind: o.Kind(), Name: o.Name(), Color: color.Text(o), Part: w.Spec.Parts[0].Name,
		InnerColor: color.Text(inner.In(o)), Innermost: inner.In(inner.In(o)).Name(),
		Size: g.Status.Size, Spec: req.Composite().Spec().AsInterface(), Keys: req.ObservedKeys(),
		Missing: !req.Observed(key.Parse("gone")).Exists(), Resolved: resolved && alsoResolved && len(none) == 0, Unresolved: !notYet,
	}
	if diff := cmp.Diff(read{
		Kind: "Widget", Name: "w", Color: "red", Part: "a", InnerColor: "blue", Innermost: "innermost",
		Size: 7, Spec: map[string]any{"any": []any{"thing"}}, Keys: []key.Key{key.Parse("widget")}, Missing: true, Resolved: true, Unresolved: true,
	}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestObservedKeys shows the order of the keys of observed resources, which of them are of one kind in one cluster, and that they are
// sorted once for all readers.
func TestObservedKeys(t *testing.T) {
	all := map[string]*fnv1.Resource{}
	for _, k := range []string{"job/b/1", "job/a/1", "job", "cluster/east/job/a/1", "cluster/east/pod/a", "cluster/west/job/a/1", "jobs/a"} {
		all[k] = &fnv1.Resource{}
	}
	req := incoming.Of(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: all}})
	cases := map[string]struct {
		reason string
		read   func() []key.Key
		want   []string
	}{
		"All":    {reason: "They are in the order of their text.", read: req.ObservedKeys, want: []string{"cluster/east/job/a/1", "cluster/east/pod/a", "cluster/west/job/a/1", "job", "job/a/1", "job/b/1", "jobs/a"}},
		"Local":  {reason: "Beside the XR there is no cluster in a key.", read: func() []key.Key { return req.ObservedOf("", "job") }, want: []string{"job", "job/a/1", "job/b/1"}},
		"Remote": {reason: "Each cluster has keys of its own.", read: func() []key.Key { return req.ObservedOf("east", "job") }, want: []string{"cluster/east/job/a/1"}},
		"None":   {reason: "There is none.", read: func() []key.Key { return req.ObservedOf("north", "job") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, k := range tc.read() {
				got = append(got, k.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if n := testing.AllocsPerRun(10, func() { tc.read() }); n > 0 {
				t.Errorf("another reader costs %v allocations, want none", n)
			}
		})
	}
}

// TestUndeclared shows that a field cannot be read unless it was declared in time. The codec
// would skip it.
func TestUndeclared(t *testing.T) {
	incoming.Fields() // As the codec does with the first request.
	o := incomingtest.Object(t, resource(t, "{metadata: {name: w}}").GetResource())
	for name, read := range map[string]func(){
		"View":          func() { _ = incoming.View[widget]{}.Read(o, &widget{}) },
		"CompositeView": func() { _ = incoming.CompositeView[gadget]{}.Read(incoming.Composite{Object: o}, &gadget{}) },
		"Path":          func() { _ = incoming.Path{}.In(o) },
		"Nested":        func() { _ = incoming.Nested{}.In(o) },
		"LateView":      func() { incoming.NewView[widget]() },
		"LatePath":      func() { incoming.NewPath("spec") },
		"LateNested":    func() { incoming.NewNested("spec") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("want a panic")
				}
			}()
			read()
		})
	}
}

// TestRawRequests shows that only packages that pass requests on use the raw type, of which
// undeclared fields can be read.
func TestRawRequests(t *testing.T) {
	passOn := []string{"fn.go", "main.go", "internal/cli/", "internal/codec/", "internal/composite/call.go", "internal/incoming/"}
	root := os.DirFS(filepath.Join("..", ".."))
	files := 0
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && path != "internal" && !strings.HasPrefix(path, "internal/"):
			return fs.SkipDir
		case d.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"):
			return nil
		case slices.ContainsFunc(passOn, func(m string) bool { return strings.HasPrefix(path, m) }):
			return nil
		}
		files++
		src, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		tokens := token.NewFileSet()
		f, err := parser.ParseFile(tokens, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "RunFunctionRequest" {
				t.Errorf("%s: uses a raw request: use an incoming.Request, and declare the fields that are read", tokens.Position(s.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("found only %d files", files)
	}
}
