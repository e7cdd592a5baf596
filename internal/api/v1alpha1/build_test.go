package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// Roles with no more than the required fields.
const (
	worker    = `{name: w, componentType: worker, template: {}}`
	prefiller = `{name: p, componentType: prefiller, template: {}}`
	decoder   = `{name: d, componentType: decoder, template: {}}`
	anyRouter = `{name: r, componentType: router}`
)

// service returns a service with a spec.
func service(spec string) string {
	return `{metadata: {name: svc, namespace: default}, spec: ` + spec + `}`
}

// roles returns a service with these roles.
func roles(list ...string) string { return service(`{roles: [` + strings.Join(list, ", ") + `]}`) }

// workers returns n workers with different names.
func workers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{name: w%d, componentType: worker, template: {}}`, i)
	}
	return list
}

// router returns a service whose role 1 is a router with these fields.
func router(fields string) string {
	return roles(worker, `{name: r, componentType: router, `+fields+`}`)
}

// models returns a service whose role 1 is a router with these served models.
func models(list string) string { return router(`servedModels: [` + list + `]`) }

// scheduling returns a service with prefiller, decoder and router, and a schedulingStrategy.
func scheduling(strategy string) string {
	return service(`{roles: [` + strings.Join([]string{prefiller, decoder, anyRouter}, ", ") + `], schedulingStrategy: ` + strategy + `}`)
}

// gang returns a service with prefiller, decoder and router, and a gang.
func gang(fields string) string { return scheduling(`{gang: ` + fields + `}`) }

// clusters returns a service with a placement in these clusters.
func clusters(list ...string) string {
	return service(`{roles: [` + worker + `], placement: {clusters: [` + strings.Join(list, ", ") + `]}}`)
}

// problems decodes an InferenceService in YAML, sets its defaults and validates it as the
// function does for a request, and returns the errors.
func problems(t *testing.T, doc string) []string {
	t.Helper()
	xr, errs := decode(t, []byte(doc))
	v1alpha1.Default(&xr.Spec)
	errs = append(errs, composite.WithoutConsequences(v1alpha1.Validate(xr, v1alpha1.ClaimReference{}), slices.Clone(errs))...)
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func decode(t *testing.T, doc []byte) (*v1alpha1.InferenceService, field.ErrorList) {
	t.Helper()
	b, err := yaml.YAMLToJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	xr := &v1alpha1.InferenceService{}
	return xr, kube.Decode(s, nil, xr)
}

// paths returns the paths of errors, sorted and without duplicates.
func paths(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Field)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// seeds returns the examples of the design documents by their file names.
func seeds(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../testdata/seeds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("want the examples of the design documents, got %d files (%v)", len(files), err)
	}
	docs := map[string][]byte{}
	for _, f := range files {
		if docs[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return docs
}
