package crossplane

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// functionName is what the Compositions call the function.
const functionName = "fusioninfer-function-inferenceservice"

// An outcome is what a render shows.
type outcome struct {
	// Documents as they are on standard output, byte for byte.
	Documents string
	// Fatal is why the service is refused.
	Fatal string
	// Results that are not fatal, each with its severity.
	Results []string
}

// files are the arguments of a render, the same for ours and Crossplane's.
type files struct {
	flavour flavour
	dir     string
	// xr, composition and functions are always there. The Composition may have no
	// input.
	xr, composition, functions string
	input                      bool
	observed, required         string
}

// files writes a service down, with the Composition that comes with its XRD. It has
// the service's input in place of its own.
func (s *service) files(t *testing.T) *files {
	t.Helper()
	c := one(t, s.flavour.composition())
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline")
	if err != nil || len(steps) != 1 {
		t.Fatalf("%s has %d steps, want one: %v", s.flavour.composition(), len(steps), err)
	}
	step := steps[0].(map[string]any)
	delete(step, "input")
	if s.input != nil {
		step["input"] = s.input.Object
	}
	set(t, c, steps, "spec", "pipeline")
	f := s.filesOf(t)
	f.input = s.input != nil
	f.composition = write(t, filepath.Join(f.dir, "composition.yaml"), c)
	return f
}

// filesOf writes a service down, with the packaged Composition and what the service's
// platform team sets besides.
func (s *service) filesOf(t *testing.T) *files {
	t.Helper()
	f := &files{flavour: s.flavour, dir: t.TempDir(), composition: s.flavour.composition(), input: true}
	f.xr = write(t, filepath.Join(f.dir, "xr.yaml"), s.xr)
	if s.input != nil {
		f.composition = write(t, filepath.Join(f.dir, "composition.yaml"), s.withInput(t))
	}
	if len(s.observed) > 0 {
		f.observed = write(t, filepath.Join(f.dir, "observed.yaml"), s.observed...)
	}
	if len(s.required) > 0 {
		f.required = write(t, filepath.Join(f.dir, "required.yaml"), s.required...)
		if slices.ContainsFunc(s.required, func(o *object) bool { return o.GetKind() == "InferenceCluster" }) {
			// Our own command does this by itself.
			f.addProfiles(t)
		}
	}
	function := &object{}
	function.SetAPIVersion("pkg.crossplane.io/v1")
	function.SetKind("Function")
	function.SetName(functionName)
	function.SetAnnotations(map[string]string{
		"render.crossplane.io/runtime":                    "Development",
		"render.crossplane.io/runtime-development-target": programs.address,
	})
	set(t, function, "ghcr.io/fusioninfer/function-inferenceservice:v0.0.0", "spec", "package")
	f.functions = write(t, filepath.Join(f.dir, "functions.yaml"), function)
	return f
}

// addProfiles adds what services read of the InferenceClusters in the file.
func (f *files) addProfiles(t *testing.T) {
	t.Helper()
	stdout, stderr, failed := execute(t, programs.function, "profiles", f.required)
	if failed {
		t.Fatal(stderr)
	}
	all, err := os.ReadFile(f.required)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.required, append(append(all, '\n'), stdout...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withInput is the packaged Composition with the service's input over its own.
func (s *service) withInput(t *testing.T) *object {
	t.Helper()
	c := one(t, s.flavour.composition())
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline")
	if err != nil || len(steps) != 1 {
		t.Fatalf("%s has %d steps, want one: %v", s.flavour.composition(), len(steps), err)
	}
	input := steps[0].(map[string]any)["input"].(map[string]any)
	maps.Copy(input, s.input.Object)
	set(t, c, steps, "spec", "pipeline")
	return c
}

// ours renders with the function's own command.
func (f *files) ours(t *testing.T) outcome {
	t.Helper()
	args := []string{"render", f.xr}
	if f.input {
		args = append(args, "--composition="+f.composition)
	}
	if f.observed != "" {
		args = append(args, "--observed="+f.observed)
	}
	if f.required != "" {
		args = append(args, "--required="+f.required)
	}
	stdout, stderr, failed := execute(t, programs.function, args...)
	o := outcome{Documents: stdout, Fatal: fatal(stderr)}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "fatal: ") && !aboutFiles(line) {
			o.Results = append(o.Results, line)
		}
	}
	if failed != (o.Fatal != "") {
		t.Errorf("our render fails: %t, but says:\n%s", failed, stderr)
	}
	return o
}

// aboutFiles reports whether a line is a warning of the command rather than of the function.
func aboutFiles(line string) bool {
	return strings.HasSuffix(line, ": kubectl apply refuses it, other clients drop it") || strings.HasPrefix(line, "warning: --required has no CRD for ")
}

// fatal returns the message of a Fatal as Crossplane prints it: one text, where standard error has
// a line for each problem.
func fatal(stderr string) string {
	var all []string
	for line := range strings.Lines(stderr) {
		if problem, ok := strings.CutPrefix(strings.TrimSpace(line), "fatal: "); ok {
			all = append(all, problem)
		}
	}
	return strings.Join(all, "; ")
}

// crossplane renders with Crossplane's own CLI. Claims need their XRD: without it, the CLI treats
// every XR as namespaced.
func (f *files) crossplane(t *testing.T, more ...string) outcome {
	t.Helper()
	args := []string{"composition", "render", "--crossplane-binary=" + programs.core, "--include-function-results", "--timeout=5m"}
	if f.flavour == claimed {
		args = append(args, "--xrd="+f.flavour.definition())
	}
	if f.observed != "" {
		args = append(args, "--observed-resources="+f.observed)
	}
	if f.required != "" {
		args = append(args, "--required-resources="+f.required)
	}
	stdout, stderr, failed := execute(t, programs.cli, append(append(args, more...), f.xr, f.composition, f.functions)...)
	if failed {
		_, why, ok := strings.Cut(stderr, `step "render" returned a fatal result: `)
		if !ok {
			t.Fatalf("Crossplane's render fails:\n%s", stderr)
		}
		return outcome{Documents: stdout, Fatal: strings.TrimSpace(why)}
	}
	return f.split(t, stdout)
}

// split separates the function's results from the documents, and drops Crossplane's own results.
func (f *files) split(t *testing.T, stdout string) outcome {
	t.Helper()
	const start = "---\napiVersion: render.crossplane.io/v1beta1\nkind: Result\n"
	o := outcome{}
	end := strings.Index(stdout, start)
	if end < 0 {
		return outcome{Documents: stdout}
	}
	o.Documents = stdout[:end]
	for _, r := range documents(t, []byte(stdout[end:])) {
		severity, _, _ := unstructured.NestedString(r.Object, "severity")
		message, _, _ := unstructured.NestedString(r.Object, "message")
		if text, ok := strings.CutPrefix(message, `Pipeline step "render": `); ok {
			o.Results = append(o.Results, map[string]string{"Normal": "info", "Warning": "warning"}[severity]+": "+text)
		}
	}
	return o
}

// execute runs a command that may fail.
func execute(t *testing.T, name string, args ...string) (stdout, stderr string, failed bool) {
	t.Helper()
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = out, errs
	// These processes are short: garbage collection would only cost time.
	cmd.Env = append(os.Environ(), "GOGC=400")
	err := cmd.Run()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), err != nil
}

// TestRender renders every example in both flavours: first as it is, and then with the first
// output observed.
func TestRender(t *testing.T) {
	for _, e := range examples(t) {
		for _, f := range e.flavours() {
			t.Run(e.name+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				s := e.as(t, f)
				theirs := same(t, s)
				if f == e.flavour {
					golden(t, e, theirs)
				}
				if (theirs.Fatal != "") != (e.rendered == "") {
					t.Fatalf("refused: %t, but as the example is: %t\n%s", theirs.Fatal != "", e.rendered == "", theirs.Fatal)
				}
				if theirs.Fatal == "" && theirs.Documents != "" {
					same(t, s.next(t, theirs.Documents))
				}
			})
		}
	}
}

// TestResults renders services whose conditions changed. The changes are results.
func TestResults(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   string
	}{
		"lifecycle-ready":  {reason: "A condition that becomes True is an info.", want: "info: "},
		"lifecycle-failed": {reason: "A condition that becomes False is a warning.", want: "warning: "},
	}
	all := examples(t)
	for name, tc := range cases {
		for _, f := range flavours {
			t.Run(name+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				s := named(t, all, name).as(t, f)
				s = s.next(t, s.files(t).ours(t).Documents)
				conditions, _, err := unstructured.NestedSlice(s.xr.Object, "status", "conditions")
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range conditions {
					was := map[any]string{"True": "False", "False": "True", "Unknown": "True"}
					c.(map[string]any)["status"] = was[c.(map[string]any)["status"]]
				}
				set(t, s.xr, conditions, "status", "conditions")
				results := same(t, s).Results
				if !slices.ContainsFunc(results, func(r string) bool { return strings.HasPrefix(r, tc.want) }) {
					t.Errorf("\n%s\nresults: want one that starts with %q, got %q", tc.reason, tc.want, results)
				}
			})
		}
	}
}

func named(t *testing.T, all []*example, name string) *example {
	t.Helper()
	i := slices.IndexFunc(all, func(e *example) bool { return e.name == name })
	if i < 0 {
		t.Fatalf("there is no example %s any more", name)
	}
	return all[i]
}

// same renders a service with both commands, and returns the common output.
func same(t *testing.T, s *service) outcome {
	t.Helper()
	f := s.files(t)
	ours, theirs := withoutTimes(t, f.ours(t)), withoutTimes(t, f.crossplane(t))
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("-Crossplane, +ours:\n%s", diff)
	}
	if s.flavour != claimed {
		// With the XRD, its defaults are set before the function is called.
		if diff := cmp.Diff(theirs, withoutTimes(t, f.crossplane(t, "--xrd="+s.flavour.definition()))); diff != "" {
			t.Errorf("-without the XRD, +with it:\n%s", diff)
		}
	}
	return theirs
}

// golden compares Crossplane's render with the files beside the example.
func golden(t *testing.T, e *example, theirs outcome) {
	t.Helper()
	if diff := cmp.Diff(withoutTimes(t, outcome{Documents: e.rendered}).Documents, theirs.Documents); diff != "" {
		t.Errorf("-rendered.yaml, +Crossplane:\n%s", diff)
	}
	if diff := cmp.Diff(fatal(e.stderr), theirs.Fatal); diff != "" {
		t.Errorf("-stderr.txt, +Crossplane:\n%s", diff)
	}
}

// TestPackagedComposition renders with the Compositions of the packages, which skip kinds that
// the cluster does not have.
func TestPackagedComposition(t *testing.T) {
	installed := installed(t)
	all := examples(t)
	for _, name := range []string{"quickstart", "story-1-monolithic", "router-models", "lifecycle-partly-ready", "claim-ready", "two-clusters-first-reconcile"} {
		e := named(t, all, name)
		for _, fl := range flavours {
			t.Run(name+"/"+string(fl), func(t *testing.T) {
				t.Parallel()
				s := e.as(t, fl)
				want, _ := apart(t, s.files(t).ours(t), "KindsAvailable")
				// Without a definition, our own command takes all kinds for installed.
				if got, available := apart(t, s.filesOf(t).ours(t), "KindsAvailable"); available != "True" || !cmp.Equal(want, got) {
					t.Errorf("no kinds are known, KindsAvailable is %q: -missingKinds: Fail, +Skip:\n%s", available, cmp.Diff(want, got))
				}
				known := *s
				known.required = slices.Concat(s.required, unrelated(t, installed))
				f := known.filesOf(t)
				if diff := cmp.Diff(f.crossplane(t), f.ours(t)); diff != "" {
					t.Errorf("no kind of the service is installed: -Crossplane, +ours:\n%s", diff)
				}
				known.required = slices.Concat(s.required, installed)
				f = known.filesOf(t)
				theirs := f.crossplane(t)
				if diff := cmp.Diff(theirs, f.ours(t)); diff != "" {
					t.Errorf("all kinds are known: -Crossplane, +ours:\n%s", diff)
				}
				got, available := apart(t, theirs, "KindsAvailable")
				if diff := cmp.Diff(want, got); diff != "" || available != "True" {
					t.Errorf("all kinds are known, KindsAvailable is %q: -missingKinds: Fail, +Skip:\n%s", available, diff)
				}
			})
		}
	}
}

// unrelated returns the definition of a kind that no service composes.
func unrelated(t *testing.T, installed []*object) []*object {
	t.Helper()
	o := installed[0].DeepCopy()
	o.SetName("others.example.com")
	set(t, o, "example.com", "spec", "group")
	return []*object{o}
}

// apart removes a condition from the documents, and returns them and its status.
func apart(t *testing.T, o outcome, condition string) (all []*object, status string) {
	t.Helper()
	all = documents(t, []byte(o.Documents))
	if len(all) == 0 {
		t.Fatalf("nothing is rendered: %s", o.Fatal)
	}
	conditions, _, err := unstructured.NestedSlice(all[0].Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	set(t, all[0], slices.DeleteFunc(conditions, func(c any) bool {
		if m := c.(map[string]any); m["type"] == condition {
			status = m["status"].(string)
			return true
		}
		return false
	}), "status", "conditions")
	return all, status
}

var ledger = regexp.MustCompile(`(?m)^(  ledger: )(\S+)$`)

// withoutTimes decompresses ledgers, and leaves out since when services wait in them. Crossplane's render calls the function with
// the time of the day.
func withoutTimes(t *testing.T, o outcome) outcome {
	t.Helper()
	o.Documents = ledger.ReplaceAllStringFunc(o.Documents, func(line string) string {
		parts := ledger.FindStringSubmatch(line)
		compressed, err := base64.StdEncoding.DecodeString(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			t.Fatal(err)
		}
		content := map[string]any{}
		if err := json.NewDecoder(r).Decode(&content); err != nil {
			t.Fatal(err)
		}
		delete(content, "waiting")
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return parts[1] + string(text)
	})
	return o
}
