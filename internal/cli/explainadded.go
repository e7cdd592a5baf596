package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// explainAdded writes the values of pods that neither the service nor its profile has: those that the
// function adds by itself, or by the Input. Without a LeaderWorkerSet, it says that there are none yet.
func explainAdded(w io.Writer, spec *structpb.Struct, composed []object) error {
	sets := workloads(composed)
	for i, v := range spec.GetFields()["roles"].GetListValue().GetValues() {
		role, at := v.GetStructValue(), fmt.Sprintf("spec.roles[%d].template", i)
		set, ok := sets[role.GetFields()["name"].GetStringValue()]
		if !ok {
			if template := role.GetFields()["template"]; template != nil {
				if _, err := fmt.Fprintf(w, "%s: no pods are rendered, so what the function adds to them is not known: --format summary says what they wait for\n", at); err != nil {
					return err
				}
			}
			continue
		}
		given, leads := role.GetFields()["template"].AsInterface(), role.GetFields()["leaderTemplate"]
		worker, _, _ := unstructured.NestedMap(set.Object, "spec", "leaderWorkerTemplate", "workerTemplate")
		workers := added(at, worker, given)
		leaders := workers
		// Without a template of its own, a leader has that of the workers.
		if leader, apart, _ := unstructured.NestedMap(set.Object, "spec", "leaderWorkerTemplate", "leaderTemplate"); apart {
			if leads != nil {
				given = leads.AsInterface()
			}
			leaders = added(at, leader, given)
		}
		if err := writeAdded(w, leaders, workers); err != nil {
			return err
		}
	}
	return nil
}

// writeAdded writes what leaders have, and then what only workers have.
func writeAdded(w io.Writer, leaders, workers []string) error {
	lines := make([]string, 0, len(leaders))
	for _, l := range leaders {
		if slices.Contains(workers, l) {
			lines = append(lines, l+" (function)")
		} else {
			lines = append(lines, l+" (function, leader)")
		}
	}
	for _, l := range workers {
		if !slices.Contains(leaders, l) {
			lines = append(lines, l+" (function, workers)")
		}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}

// workloads returns a LeaderWorkerSet of each role, by the role's name.
func workloads(composed []object) map[string]object {
	all := map[string]object{}
	for _, o := range composed {
		if isObject(o) {
			manifest, _, _ := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
			o = object{Object: manifest}
		}
		if o.GetKind() != "LeaderWorkerSet" {
			continue
		}
		if role := o.GetLabels()[naming.LabelRoleName]; all[role].Object == nil {
			all[role] = o
		}
	}
	return all
}

// added returns each value of a pod that is not given, as a line without its origin.
func added(at string, pod, given any) []string {
	var all []string
	switch pod := pod.(type) {
	case map[string]any:
		m, _ := given.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(pod)) {
			all = append(all, added(at+servingprofile.Step(name), pod[name], m[name])...)
		}
	case []any:
		l, _ := given.([]any)
		rest := slices.Clone(l)
		for i, e := range pod {
			var same any
			if j := slices.IndexFunc(rest, func(o any) bool { return elementKey(o) == elementKey(e) }); j >= 0 {
				same = rest[j]
				rest = slices.Delete(rest, j, j+1)
			}
			all = append(all, added(fmt.Sprintf("%s[%d]", at, i), e, same)...)
		}
	default:
		if given == nil || jsonOf(given) != jsonOf(pod) {
			all = append(all, fmt.Sprintf("%s: %s", at, jsonOf(pod)))
		}
	}
	return all
}

// elementKey is by what an element of a list is told from the others: its name, or what else Kubernetes merges
// such lists by. Other elements are told apart by their values.
func elementKey(element any) string {
	m, ok := element.(map[string]any)
	if !ok {
		return jsonOf(element)
	}
	for _, key := range []string{"containerPort", "mountPath", "topologyKey", "name", "key"} {
		if v, ok := m[key]; ok {
			return key + "=" + jsonOf(v)
		}
	}
	return jsonOf(element)
}

// jsonOf returns a value as JSON on one line.
func jsonOf(v any) string {
	b := &strings.Builder{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?" // What was read from YAML, or from protobuf, can be written.
	}
	return strings.TrimSuffix(b.String(), "\n")
}
