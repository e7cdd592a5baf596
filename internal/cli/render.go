/*
Package cli has the commands for people. Render runs the function in process, on
files, and shows what Crossplane would apply: no cluster, no container, no
network.

What Crossplane does around a function is done here as well, so that the
documents are the same as those of "crossplane composition render": it calls the
function until its requirements settle, gives the composed resources their
metadata and the XR its conditions.
*/
package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
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

// Render shows what an InferenceService or an InferenceCluster becomes.
type Render struct {
	XR          string   `arg:"" name:"xr" help:"File with the InferenceService, the XInferenceService behind a claim, or the InferenceCluster. - is standard input."`
	Input       string   `placeholder:"FILE" xor:"input" help:"File with the function's Input."`
	Composition string   `placeholder:"FILE" xor:"input" help:"File with the Composition whose step has the function's Input."`
	Observed    []string `placeholder:"PATH" sep:"none" help:"File or directory with the composed resources as they are, each with the annotation crossplane.io/composition-resource-name. Can be repeated."`
	Required    []string `placeholder:"PATH" sep:"none" help:"File or directory with what else is in the cluster, such as the service's pods. Can be repeated."`
	Settle      bool     `help:"Let the InferenceServices and InferenceClusters among the required objects agree on who runs where first, as if every cluster were reachable. Without it, clusters are taken as their status says."`
	Format      string   `enum:"yaml,json,summary" default:"yaml" help:"yaml, json or summary. A summary is for people."`
}

// Run renders. Nothing is written to standard output unless all of it worked.
func (r *Render) Run(ctx context.Context, fn Runner, s Streams) error {
	given, err := r.load(&files{stdin: s.In})
	if err != nil {
		return err
	}
	for _, u := range given.unknown() {
		_, _ = fmt.Fprintln(s.Err, "warning: "+u)
	}
	if r.Settle {
		if err := settle(ctx, fn, given); err != nil {
			return err
		}
	} else if names := given.silent(); names != "" {
		_, _ = fmt.Fprintf(s.Err, "warning: these clusters have no status, so nothing is placed there: %s. With --settle they say what room they have.\n", names)
	}
	rsp, err := call(ctx, fn, given)
	if err != nil {
		return err
	}
	if names := missing(rsp, given.cluster); names != "" {
		_, _ = fmt.Fprintf(s.Err, "warning: these kinds count as missing, for --required has no definition of them: %s. Without requireKinds in the Input everything is rendered.\n", names)
	}
	if err := report(s.Err, rsp.GetResults()); err != nil {
		return err
	}
	out, err := compose(given, rsp)
	if err != nil {
		return err
	}
	if r.Settle {
		out.fleet = slices.DeleteFunc(slices.Clone(given.cluster), func(o object) bool { return !ofCluster(o) })
	}
	b := &bytes.Buffer{}
	if err := write(b, r.Format, out); err != nil {
		return err
	}
	_, err = b.WriteTo(s.Out)
	return err
}

// given is everything that the files say.
type given struct {
	xr       object
	xrFile   string
	input    *object
	observed map[string]object
	// cluster is what a requirement can find.
	cluster []object
	// inputFile is where the input is from.
	inputFile string
}

func (r *Render) load(f *files) (*given, error) {
	xr, err := f.xr(r.XR)
	if err != nil {
		return nil, err
	}
	g := &given{xr: xr, xrFile: r.XR}
	switch {
	case r.Input != "":
		g.inputFile = r.Input
		g.input, err = f.input(r.Input)
	case r.Composition != "":
		g.inputFile = r.Composition
		g.input, err = f.composition(r.Composition, xr)
	}
	if err != nil {
		return nil, err
	}
	if g.observed, err = f.observed(r.Observed, xr); err != nil {
		return nil, err
	}
	required, err := f.required(r.Required)
	if err != nil {
		return nil, err
	}
	g.cluster = append(append([]object{xr}, sorted(g.observed)...), required...)
	return g, nil
}
