package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// Plan shows what a change of the fleet moves, and which pods it restarts.
type Plan struct {
	Fleet       []string `arg:"" name:"fleet" help:"Files or directories with the InferenceClusters, InferenceServices, InferenceRoles and ModelCaches as they are, with their status. What kubectl get -A -o yaml writes will do. - is standard input."`
	Change      []string `placeholder:"PATH" sep:"none" help:"File or directory with InferenceClusters, InferenceServices, InferenceRoles and ModelCaches as kubectl apply would get them: new ones, and changed ones as a whole. Can be repeated."`
	Drain       []string `placeholder:"CLUSTER" help:"Set stopPolicy Drain on an InferenceCluster. Can be repeated."`
	Abandon     []string `placeholder:"CLUSTER" help:"Set stopPolicy Abandon on an InferenceCluster. Can be repeated."`
	Lose        []string `placeholder:"CLUSTER" help:"Take an InferenceCluster out of reach, for longer than any failoverAfterSeconds. Can be repeated."`
	Delete      []string `placeholder:"NAME" help:"Delete the InferenceService NAMESPACE/NAME, or the InferenceCluster or XInferenceService NAME. Can be repeated."`
	Input       []string `placeholder:"FILE" sep:"none" xor:"input" help:"File with the Input of services and ModelCaches, the ClusterInput of clusters, or both. Can be repeated, with one of each."`
	Composition []string `placeholder:"FILE" sep:"none" xor:"input" help:"File with the Composition of services, of clusters or of ModelCaches. Can be repeated, with one of each kind."`

	All              bool   `help:"Show services that stay as they are, too."`
	DetailedExitcode bool   `name:"detailed-exitcode" help:"Exit with 0 if no service moves or changes its pods, 2 if some do, and 3 if one can no longer be placed completely, a new one cannot, or the change leaves a cluster with less than what is reserved there. 1 is an error, or a service or a cluster that is refused. Build the command for that: go run exits with 1 in place of 2 and 3."`
	Strict           bool   `help:"Exit with 1 if a field of --change is unknown, as kubectl apply does. Without it, that is a warning."`
	Format           string `enum:"yaml,json,summary" default:"summary" help:"summary, yaml or json. A summary is for people."`
}

// errStrict refuses files by --strict.
var errStrict = errors.New("--strict refuses the files because of the unknown fields above")

// Exit codes of --detailed-exitcode.
const (
	errRefused   exitCodeError = 1
	errMoves     exitCodeError = 2
	errNotPlaced exitCodeError = 3
)

// Run plans. It writes to standard output only if everything succeeds.
func (p *Plan) Run(ctx context.Context, fn Runner, streams Streams) error {
	streams.Err = forPeople{streams.Err}
	f := &files{stdin: streams.In, err: streams.Err}
	fleet, err := f.fleet(fromFleet, p.Fleet)
	if err != nil {
		return err
	}
	changes, err := f.fleet("--change", p.Change)
	if err != nil {
		return err
	}
	unread, err := changeable(changes)
	if err != nil {
		return err
	}
	var nulls []string
	for _, o := range changes {
		for _, n := range dropNulls(o) {
			nulls = append(nulls, "--change: "+described(o)+": "+n)
		}
	}
	s := newSimulation(fn, latestTime(fleet))
	without, err := p.inputs(f, s, append(slices.Clone(fleet), changes...))
	if err != nil {
		return err
	}
	unknown := unknownFields("--change", changes)
	orphans := append(rolesOfNothing(fromFleet, fleet, fleet, changes), rolesOfNothing("--change", changes, fleet, changes)...)
	streams.warn(slices.Concat(without, unread, unknownFields(fromFleet, fleet), unknown, nulls, orphans))
	c, err := p.simulate(ctx, s, fleet, changes, streams)
	if p.Strict && len(unknown) > 0 {
		err = errors.Join(err, errStrict) // Whoever mends the files sees what else is wrong with them.
	}
	if err != nil {
		return err
	}
	b := &bytes.Buffer{}
	if err := c.write(b, p.Format, p.All); err != nil {
		return err
	}
	if _, err := b.WriteTo(streams.Out); err != nil {
		return err
	}
	if p.DetailedExitcode {
		return c.exit()
	}
	return nil
}

// simulate compares the fleet before and after the change. It warns of what cannot be taken over or done, even if it fails.
func (p *Plan) simulate(ctx context.Context, s *simulation, fleet, changes []object, streams Streams) (comparison, error) {
	warnings, err := loadFleet(ctx, s, fleet)
	streams.warn(warnings)
	if err != nil {
		return comparison{}, err
	}
	before := s.settledFleet()
	more, err := p.change(ctx, s, changes, warnings)
	streams.warn(more)
	if err != nil {
		return comparison{}, err
	}
	return compare(before, s.settledFleet()), nil
}

// fromFleet is what messages call the files of the fleet.
const fromFleet = "fleet"

// fleet reads the objects of a fleet. Each may be there once.
func (f *files) fleet(from string, paths []string) ([]object, error) {
	read, err := f.all(paths)
	if err != nil {
		return nil, err
	}
	all := make([]object, 0, len(read))
	seen := map[identity]string{}
	for _, o := range read {
		if err := ofFleet(from, o); err != nil {
			return nil, err
		}
		id := identityOf(o.object)
		switch first, there := seen[id]; {
		case there && first == o.file:
			return nil, fmt.Errorf("cannot use %s: %s %s is there twice in %q", from, id.kind, id.nice(), first)
		case there:
			return nil, fmt.Errorf("cannot use %s: %s %s is there twice, in %q and in %q", from, id.kind, id.nice(), first, o.file)
		}
		seen[id] = o.file
		all = append(all, o.object)
	}
	return all, nil
}

// ofFleet refuses an object that is not for a fleet. One without a namespace gets the default.
func ofFleet(from string, o fileObject) error {
	if flag := settingsFlag(o.object); flag != "" && (from == fromFleet || flag == "--input") { // changeable says more of a changed Composition.
		return fmt.Errorf("cannot use the %s in %q of %s: pass it with %s", o.GetKind(), o.file, from, flag)
	}
	if o.GetName() == "" {
		return fmt.Errorf("cannot use an object of kind %s in %q of %s: it has no metadata.name", o.GetKind(), o.file, from)
	}
	inDefault(o.object)
	if err := noClaim(o.object); err != nil {
		return fmt.Errorf("cannot use %s: %w", from, err)
	}
	return nil
}

// noClaim refuses a claim of the package: Crossplane notes its composite resource in it, which composes what the claim asks for.
func noClaim(o object) error {
	ref, _, _ := unstructured.NestedString(o.Object, "spec", "resourceRef", "kind")
	if o.GetAPIVersion() != v1alpha1.APIVersion || ref != "X"+o.GetKind() {
		return nil
	}
	return fmt.Errorf("%s is a claim. Use its composite resource, of kind %s", described(o), ref)
}

// leastPatience is how long nothing may happen until a fleet counts as settled.
const leastPatience = time.Hour

// patience is how long to wait for what depends on the time, which is twice as long as any
// service waits before it fails over.
func patience(all []object) time.Duration {
	longest := leastPatience
	for _, o := range all {
		n, _ := number(o.Object, "spec", "placement", "failoverAfterSeconds")
		longest = max(longest, 2*time.Duration(n)*time.Second)
	}
	return longest
}

// conditionOf returns the status of a condition, or an empty string.
func conditionOf(o object, kind string) string {
	for _, c := range conditionsOf(o) {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// keyOf is the key of a composed resource, or an empty string.
func keyOf(o object) string { return o.GetAnnotations()[composite.AnnotationResourceName] }

func controlledBy(o, xr object) bool {
	c := metav1.GetControllerOf(&o)
	return c != nil && c.UID == xr.GetUID()
}

var errNoChange = errors.New("nothing to plan: say what changes with --change, --drain, --abandon, --lose or --delete")
