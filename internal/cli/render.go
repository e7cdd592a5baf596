/*
Package cli has the commands that run the function on files: render, plan and profiles. They run it in
process, and write what Crossplane would apply. They need no cluster, no container and no network.

They also do what Crossplane does around a function: it calls the function until
its requirements no longer change, gives the composed resources their metadata, and gives
the XR its conditions. The documents are therefore those of "crossplane composition
render".
*/
package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A Runner is a composition function.
type Runner interface {
	RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)
}

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// warn writes warnings for people, each on a line.
func (s Streams) warn(all []string) {
	for _, w := range all {
		_, _ = fmt.Fprintln(s.Err, "warning: "+w)
	}
}

// Render shows what an InferenceService, an InferenceCluster, an InferenceModel or a ModelCache becomes.
type Render struct {
	XR               string   `arg:"" name:"xr" help:"File with the InferenceService, the XInferenceService behind a claim, the InferenceCluster, the InferenceModel, or the ModelCache. - is standard input."`
	Input            OneFile  `placeholder:"FILE" xor:"input" help:"File with the function's Input."`
	Composition      OneFile  `placeholder:"FILE" xor:"input" help:"File with the Composition. The Input is that of its one step that has one. If it is for the XRs behind claims, the XR may be a claim without resourceRef."`
	Observed         []string `placeholder:"PATH" sep:"none" help:"File or directory with the composed resources that exist, each with the annotation crossplane.io/composition-resource-name. The output of an earlier render will do. Can be repeated."`
	Required         []string `placeholder:"PATH" sep:"none" help:"File or directory with other objects of the cluster, such as the service's pods. Can be repeated. Without a CustomResourceDefinition among them, all kinds count as installed."`
	Simulate         bool     `help:"First place the InferenceServices among the required objects in the InferenceClusters among them, as if every cluster were reachable. Without it, the status of each cluster says what it has reserved."`
	Format           string   `enum:"yaml,json,summary" default:"yaml" help:"yaml, json or summary. A summary is for people."`
	Strict           bool     `help:"Exit with 1 if a field is unknown, as kubectl apply does. Without it, that is a warning."`
	AssumeModelReady bool     `help:"Render as if the weights of the model were in their cache. If the service names a ModelCache, that has to be among the required objects. --explain does so by itself, and a summary shows which roles wait for them."`
	Explain          bool     `help:"Write instead where each value of the roles comes from: the spec, the serving profile that it names, or the function, which adds to the pods."`
}

// A OneFile is the path of a file that a command takes once.
type OneFile string

// UnmarshalText refuses a second path: the first one would count for nothing.
func (f *OneFile) UnmarshalText(path []byte) error {
	if *f != "" {
		return fmt.Errorf("given twice, as %q and as %q: pass one file", *f, path)
	}
	*f = OneFile(path)
	return nil
}

// Run renders. It writes to standard output only if everything succeeds.
func (r *Render) Run(ctx context.Context, fn Runner, s Streams) error {
	s.Err = forPeople{s.Err}
	if r.Explain && (r.Format == "json" || r.Format == "summary") {
		return fmt.Errorf("cannot write --explain as %s: it is text for people, so leave out --format", r.Format)
	}
	given, err := r.load(&files{stdin: s.In, err: s.Err})
	if err != nil {
		return err
	}
	given.installAll()
	unknown := given.unknown()
	s.warn(slices.Concat(unknown, given.nulls))
	if err := r.placeFirst(ctx, fn, given, s); err != nil {
		return err
	}
	rsp, err := call(ctx, fn, given)
	if err != nil {
		return err
	}
	if r.AssumeModelReady || r.Explain {
		if missing := given.missingCache(rsp); missing != "" {
			_, _ = fmt.Fprintln(s.Err, "warning: "+missing)
		}
		if given, rsp, err = loaded(ctx, fn, given, rsp); err != nil {
			return err
		}
	}
	if names := missingCRDs(rsp, given.cluster); names != "" {
		_, _ = fmt.Fprintf(s.Err, "warning: --required has no CRD for %s: treated as not installed. With missingKinds: Fail in the Input, everything is rendered.\n", names)
	}
	if err := report(s.Err, rsp.GetResults()); err != nil {
		return err
	}
	if r.Strict && len(unknown) > 0 {
		return errStrict
	}
	return r.write(ctx, fn, given, rsp, s.Out)
}

// write writes what the last response becomes, if nothing fails.
func (r *Render) write(ctx context.Context, fn Runner, given *snapshot, rsp *fnv1.RunFunctionResponse, w io.Writer) error {
	out, err := compose(given, rsp)
	if err != nil {
		return err
	}
	if r.Format == "summary" {
		if err := out.plan(ctx, fn, given, rsp); err != nil {
			return err
		}
	}
	if given.assumed {
		sayAssumed(&out.xr)
	}
	if err := withoutTimes(out.composed); err != nil {
		return err
	}
	if r.Simulate {
		out.fleet = given.store.ofKind(v1alpha1.Group, v1alpha1.KindInferenceCluster)
	}
	b := &bytes.Buffer{}
	if r.Explain {
		err = explain(forPeople{b}, given, out.composed)
	} else {
		err = write(b, r.Format, out)
	}
	if err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// placeFirst places services in the clusters among the required objects, or tells services what these say of
// themselves.
func (r *Render) placeFirst(ctx context.Context, fn Runner, given *snapshot, s Streams) error {
	if r.Simulate {
		n := 1 + len(given.observed)
		required, going, warnings := withoutDeleted(given.cluster[n:])
		for i := range warnings {
			warnings[i] = "--required: " + warnings[i]
		}
		given.cluster = append(slices.Clone(given.cluster[:n]), required...)
		s.warn(append(warnings, missing(given.cluster, going)...))
		return simulate(ctx, fn, given)
	}
	if err := given.addProfiles(); err != nil {
		return err
	}
	if names := given.clustersWithoutStatus(); names != "" {
		_, _ = fmt.Fprintf(s.Err, "warning: these clusters have no status, so nothing is placed there: %s. --simulate computes their free capacity.\n", names)
	}
	return nil
}

// A snapshot is what a call of the function reads: the XR, its Input, what it has composed, and the other objects. It comes from
// files, or in a simulation from the store.
type snapshot struct {
	xr     object
	xrFile string
	input  *object
	// inputMade tells that nobody has given the input: it only says where clusters write.
	inputMade bool
	// observed are the composed resources that exist, by their keys.
	observed map[string]object
	// unknownObserved are the unknown fields of the composed resources, for people.
	unknownObserved []string
	// nulls are the fields of the XR that were null, for people.
	nulls []string
	// cluster are the objects that a requirement can find: the XR, the observed resources by
	// their keys, and the required objects.
	cluster []object
	// assumed tells that all kinds count as installed, although the Input asks for them.
	assumed bool
	// store has the objects instead, in a simulation.
	store *store
}

func (r *Render) load(f *files) (*snapshot, error) {
	xr, err := f.xr(r.XR)
	if err != nil {
		return nil, err
	}
	g := &snapshot{xr: xr, xrFile: r.XR}
	for _, n := range dropNulls(xr) {
		g.nulls = append(g.nulls, r.XR+": "+n)
	}
	switch {
	case r.Input != "":
		g.input, err = f.input(string(r.Input), xr)
	case r.Composition != "":
		g.input, err = f.composition(string(r.Composition), &g.xr)
	}
	if err != nil {
		return nil, err
	}
	if g.observed, g.unknownObserved, err = f.observed(r.Observed, &g.xr); err != nil {
		return nil, err
	}
	required, err := f.required(r.Required)
	if err != nil {
		return nil, err
	}
	if r.Simulate {
		if err := simulable(g.xr, required); err != nil {
			return nil, fmt.Errorf("cannot use --required: %w", err)
		}
	}
	g.cluster = append(append([]object{g.xr}, sorted(g.observed)...), required...)
	return g, nil
}

// simulable refuses required objects that cannot be simulated beside the XR: itself, and claims.
func simulable(xr object, required []object) error {
	id := identityOf(xr)
	for _, o := range required {
		if identityOf(o) == id {
			return fmt.Errorf("it has %s %s, which is what is rendered. Leave it out, or use plan with --change", id.kind, id.nice())
		}
		if err := noClaim(o); err != nil {
			return err
		}
	}
	return nil
}
