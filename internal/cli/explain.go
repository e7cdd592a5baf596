package cli

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// explain writes where each value of the roles of a service comes from, a line for each, and then what the
// function adds to them. The function has accepted the service before, and has answered what is composed.
func explain(w io.Writer, g *snapshot, composed []object) error {
	if ofCache(g.xr) {
		return errors.New("--explain is for InferenceServices: a ModelCache has no roles")
	}
	if ofCluster(g.xr) || ofModel(g.xr) {
		return fmt.Errorf("--explain is for InferenceServices: an %s has no roles", g.xr.GetKind())
	}
	xr, err := asStruct(g.xr)
	if err != nil {
		return err
	}
	var in *structpb.Struct
	if g.input != nil {
		if in, err = asStruct(*g.input); err != nil {
			return err
		}
	}
	settings, errs := composite.Input(in)
	spec, applied, more := servingprofile.Apply(kube.Lookup(xr, "spec").GetStructValue(), settings.Profiles)
	if errs = append(errs, more...); len(errs) > 0 {
		return errs.ToAggregate()
	}
	origins := servingprofile.Origins(spec, applied)
	numberAsRendered(origins, spec, composed)
	for _, o := range origins {
		from := "spec"
		if o.Profile != "" {
			from = "profile " + o.Profile
		}
		if _, err := fmt.Fprintf(w, "%s: %s (%s)\n", o.Path, o.Value, from); err != nil {
			return err
		}
	}
	return explainAdded(w, spec, composed)
}
