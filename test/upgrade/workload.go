/*
Package upgrade makes sure that an upgrade of the function restarts nothing. For
each release it keeps what the examples were and which pods they became; the
function of today has to make the same pods of the same files. What has to differ
is named in CHANGELOG.md.

	test/upgrade/v0.1.0/<case>/xr.yaml, input.yaml, ...   what was rendered
	test/upgrade/v0.1.0/<case>/pods.yaml                  what came out, as far as it decides about pods
*/
package upgrade

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const annotationResourceName = "crossplane.io/composition-resource-name"

// A Workload has what decides whether the pods of a LeaderWorkerSet or a Deployment are replaced:
// the identity of the object, and the fields that its controller compares. Replica counts are
// not among them.
type Workload struct {
	// Key identifies the composed resource. Crossplane replaces an object whose key changes.
	Key string `json:"key"`
	// Object is the object with the key: {kind} {namespace}/{name}.
	Object string `json:"object"`
	// Pods is what the controller derives its revision from.
	Pods map[string]any `json:"pods"`
}

// revisioned are the fields of the spec of a kind that its controller replaces pods
// for. LeaderWorkerSets: getPatch in pkg/utils/revision of sigs.k8s.io/lws v0.9.0.
var revisioned = map[string][]string{
	"LeaderWorkerSet": {"leaderWorkerTemplate", "networkConfig"},
	"Deployment":      {"template", "selector"},
	"StatefulSet":     {"template", "selector", "serviceName", "volumeClaimTemplates"},
}

// Workloads returns the workloads in the output of a render, here and in other clusters.
func Workloads(documents string) ([]Workload, error) {
	var all []Workload
	d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(documents), 4096)
	for {
		o := unstructured.Unstructured{}
		switch err := d.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("cannot parse what was rendered: %w", err)
		}
		key := o.GetAnnotations()[annotationResourceName]
		if m, carried, err := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest"); err == nil && carried {
			o.Object = m
		}
		fields := revisioned[o.GetKind()]
		if len(fields) == 0 {
			continue
		}
		w := Workload{Key: key, Object: o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName(), Pods: map[string]any{}}
		spec, _, err := unstructured.NestedMap(o.Object, "spec")
		if err != nil {
			return nil, fmt.Errorf("cannot read the spec of %s: %w", w.Object, err)
		}
		for _, f := range fields {
			if v, ok := spec[f]; ok {
				w.Pods[f] = v
			}
		}
		all = append(all, w)
	}
}

// encode writes workloads in the form in which they are kept and compared.
func encode(ws []Workload) ([]byte, error) {
	b, err := yaml.Marshal(ws)
	if err != nil {
		return nil, fmt.Errorf("cannot write workloads as YAML: %w", err)
	}
	return b, nil
}
