package cli

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
)

// addProfiles adds what services read of each InferenceCluster, by its status. What the files have
// of that stays as it is.
func (g *given) addProfiles() error {
	exists := map[identity]bool{}
	for _, o := range g.cluster {
		exists[identityOf(o)] = true
	}
	for _, c := range g.cluster {
		if !ofCluster(c) {
			continue
		}
		told, err := profile.Offline(g.profileNamespace(), c.Object)
		if err != nil {
			return err
		}
		for _, t := range told {
			if o := (object{Object: t}); !exists[identityOf(o)] {
				g.cluster = append(g.cluster, o)
			}
		}
	}
	return nil
}

// profileNamespace is where the Input says that the profiles are.
func (g *given) profileNamespace() string {
	namespace := ""
	if g.input != nil {
		path := []string{"fleet", "namespace"}
		if ofCluster(g.xr) {
			path = path[1:]
		}
		namespace, _, _ = unstructured.NestedString(g.input.Object, path...)
	}
	return cmp.Or(namespace, inputv1alpha1.DefaultNamespace)
}
