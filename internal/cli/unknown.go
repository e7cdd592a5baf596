package cli

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

// unknownFields says where a document has fields that its type does not have. A
// document whose values are of the wrong type is the function's to judge, with
// paths and all at once.
func unknownFields(file, why string, o object, into any) []string {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true)
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil
	}
	var all []string
	for _, e := range strict.Errors() {
		path := strings.Trim(strings.TrimPrefix(e.Error(), "unknown field "), `"`)
		all = append(all, fmt.Sprintf("%s: unknown field %s: %s", file, path, why))
	}
	return all
}

func unknownInput(file string, in object) []string {
	return unknownFields(file, "the function does not know it", in, &v1beta1.Input{})
}

// withoutMachinery leaves out the fields of Crossplane's that every XR has in its
// spec and status.
func withoutMachinery(xr object) object {
	o := map[string]any{"apiVersion": xr.GetAPIVersion(), "kind": xr.GetKind()}
	spec, ok := xr.Object["spec"].(map[string]any)
	if !ok {
		return object{Object: o}
	}
	spec = maps.Clone(spec)
	for _, f := range machinery(xr) {
		delete(spec, f)
	}
	o["spec"] = spec
	return object{Object: o}
}

func machinery(xr object) []string {
	if !legacy(xr) {
		return []string{"crossplane"}
	}
	return []string{
		"claimRef", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
		"compositionUpdatePolicy", "environmentConfigRefs", "publishConnectionDetailsTo", "resourceRefs", "writeConnectionSecretToRef",
	}
}
