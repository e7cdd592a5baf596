package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// simulatedKinds are the kinds of XRs that take part in a simulation.
var simulatedKinds = []string{
	v1alpha1.KindInferenceService, v1alpha1.KindClaimedService, v1alpha1.KindInferenceCluster, v1alpha1.KindModelCache, v1alpha1.KindClaimedCache,
}

// xrOf returns an XR of a kind, with nothing in it.
func xrOf(kind string) object {
	o := object{Object: map[string]any{}}
	o.SetKind(kind)
	return o
}

// An inputFile is an Input of the function, and the file that has it.
type inputFile struct {
	input object
	path  string
}

// inputs reads the function's inputs, for each kind of XR. It returns which XRs have none although others have, for people.
func (p *Plan) inputs(f *files, s *simulation, all []object) ([]string, error) {
	given := map[string]inputFile{}
	for _, path := range p.Input {
		if err := f.planInputs(path, given); err != nil {
			return nil, err
		}
	}
	for _, path := range p.Composition {
		if err := f.planComposition(path, given); err != nil {
			return nil, err
		}
	}
	var warnings []string
	if len(p.Composition) > 0 {
		warnings = withoutComposition(given, all)
	}
	if err := sameNamespace(given); err != nil {
		return nil, err
	}
	for kind, in := range given {
		s.inputs[kind] = withAllKinds(&in.input, all)
	}
	s.shareNamespace()
	return warnings, nil
}

// sameNamespace refuses Inputs that say different things of where clusters write what services read: services would
// find no cluster.
func sameNamespace(given map[string]inputFile) error {
	var first *inputFile
	for _, kind := range simulatedKinds {
		in, exists := given[kind]
		switch {
		case !exists:
		case first == nil:
			first = &in
		case namespaceOf(&in.input) != namespaceOf(&first.input):
			return fmt.Errorf("cannot use %q: %s is %q, and in %q %s is %q. Write the same namespace into both, because services read there what clusters write",
				in.path, namespacePath(&in.input), namespaceOf(&in.input), first.path, namespacePath(&first.input), namespaceOf(&first.input))
		}
	}
	return nil
}

// shareNamespace makes the Inputs that are not given, if one that is given has another namespace than the default. Otherwise
// services would not look where clusters write.
func (s *simulation) shareNamespace() {
	namespace := inputv1alpha1.DefaultNamespace
	for _, in := range s.inputs {
		if in != nil {
			namespace = namespaceOf(in)
		}
	}
	for _, kind := range simulatedKinds {
		if s.inputs[kind] == nil && namespace != inputv1alpha1.DefaultNamespace {
			in := object{Object: map[string]any{"fleet": map[string]any{"namespace": namespace}}}
			if inputKind(xrOf(kind)) == inputv1alpha1.KindClusterInput {
				in = object{Object: map[string]any{"namespace": namespace}}
			}
			in.SetAPIVersion(inputv1alpha1.APIVersion)
			in.SetKind(inputKind(xrOf(kind)))
			s.inputs[kind], s.made[kind] = &in, true
		}
	}
}

// namespaceFields are where an Input says in which namespace the profiles of the clusters are.
func namespaceFields(in *object) []string {
	if in.GetKind() == inputv1alpha1.KindClusterInput {
		return []string{"namespace"}
	}
	return []string{"fleet", "namespace"}
}

func namespacePath(in *object) string {
	return strings.Join(namespaceFields(in), ".") + " of the " + in.GetKind()
}

// namespaceOf is where an Input says that the profiles of the clusters are.
func namespaceOf(in *object) string {
	namespace, _, _ := unstructured.NestedString(in.Object, namespaceFields(in)...)
	return cmp.Or(namespace, inputv1alpha1.DefaultNamespace)
}

// planInputs reads the Inputs of a file. That of services is for those of claims, and for ModelCaches, too.
func (f *files) planInputs(path string, given map[string]inputFile) error {
	objects, err := f.objects(path)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetAPIVersion() != inputv1alpha1.APIVersion || (o.GetKind() != inputv1alpha1.KindInput && o.GetKind() != inputv1alpha1.KindClusterInput) {
			return fmt.Errorf("cannot read %q: it is of kind %s in %s, not %s or %s in %s", o.file, o.GetKind(), o.GetAPIVersion(), inputv1alpha1.KindInput, inputv1alpha1.KindClusterInput, inputv1alpha1.APIVersion)
		}
		for _, kind := range simulatedKinds {
			if !isInput(o.object, xrOf(kind)) {
				continue
			}
			if first, exists := given[kind]; exists {
				return fmt.Errorf("cannot use --input: %q has a second %s, and %q has the first. Pass one %s", o.file, o.GetKind(), first.path, o.GetKind())
			}
			given[kind] = inputFile{o.object, o.file}
		}
	}
	return nil
}

// planComposition reads the Input of a Composition, which is for the kind that it composes.
func (f *files) planComposition(path string, given map[string]inputFile) error {
	c, kind, err := f.compositionOf(path)
	if err != nil {
		return err
	}
	if !slices.Contains(simulatedKinds, kind) {
		return fmt.Errorf("cannot use --composition: %q composes %q, which a plan does not run. Pass Compositions of %s only", path, kind, strings.Join(simulatedKinds, ", "))
	}
	if first, exists := given[kind]; exists {
		return fmt.Errorf("cannot use --composition: %q composes %s, as %q does. Pass one Composition of a kind", path, kind, first.path)
	}
	in, err := compositionInput(path, c, xrOf(kind))
	if err != nil {
		return err
	}
	given[kind] = inputFile{*in, path}
	return nil
}

// withoutComposition names the kinds of services and caches that the files have, and no Composition composes.
func withoutComposition(given map[string]inputFile, all []object) []string {
	var warnings []string
	for _, kind := range simulatedKinds {
		has := slices.ContainsFunc(all, func(o object) bool {
			return o.GetAPIVersion() == v1alpha1.APIVersion && !ofCluster(o) && o.GetKind() == kind
		})
		if _, composed := given[kind]; has && !composed {
			warnings = append(warnings, fmt.Sprintf("--composition: none composes %s, so those are planned without an Input. Pass their Composition, too", kind))
		}
	}
	return warnings
}
