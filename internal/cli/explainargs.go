package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// anArg matches the path of an argument, in its parts: the role, the template, the list with the container's
// index, and the argument's index.
var anArg = regexp.MustCompile(`^spec\.roles\[(\d+)\]\.(template|leaderTemplate)\.spec\.(containers|initContainers)\[(\d+)\]\.args\[(\d+)\]$`)

// numberAsRendered gives arguments the index that they have in the pods, as those that the function adds have it:
// spec.model comes first. An argument that is not in the pods as it is, because it is in a launcher's script, says so.
func numberAsRendered(origins []servingprofile.Origin, spec *structpb.Struct, composed []object) {
	sets, taken := workloads(composed), map[string][]int{}
	for i := range origins {
		o := &origins[i]
		m := anArg.FindStringSubmatch(o.Path)
		if m == nil {
			continue
		}
		role, _ := kube.Find(spec.GetFields()["roles"], "["+m[1]+"]")
		set, exists := sets[role.GetStructValue().GetFields()["name"].GetStringValue()]
		if !exists {
			continue
		}
		container, _ := kube.Find(role, fmt.Sprintf(".%s.spec.%s[%s].name", m[2], m[3], m[4]))
		list := fmt.Sprintf("spec.roles[%s].%s.spec.%s[%s].args", m[1], m[2], m[3], m[4])
		at := -1
		for j, v := range renderedArgs(set, m[2], m[3], container.GetStringValue(), o.Value) {
			if at < 0 && v == o.Value && !slices.Contains(taken[list], j) {
				at = j
			}
		}
		if at < 0 {
			o.Path = fmt.Sprintf("%s, in the command of the launcher", list)
			continue
		}
		taken[list] = append(taken[list], at)
		o.Path = list + "[" + strconv.Itoa(at) + "]"
	}
}

// renderedArgs returns the arguments of a container as JSON: those of the leader, or of the workers if the leader has
// no such value or a template of its own.
func renderedArgs(set object, template, list, container, value string) []string {
	var args []string
	for _, of := range []string{"workerTemplate", "leaderTemplate"} {
		for _, m := range containersOf(set, of, list) {
			if m["name"] != container {
				continue
			}
			var all []string
			words, _ := m["args"].([]any)
			for _, w := range words {
				all = append(all, jsonOf(w))
			}
			if template == "leaderTemplate" || args == nil || slices.Contains(all, value) {
				args = all
			}
		}
	}
	return args
}

// containersOf returns the containers of a LeaderWorkerSet's leader or workers, in a list of their template.
func containersOf(set object, template, list string) []map[string]any {
	containers, _, _ := unstructured.NestedSlice(set.Object, "spec", "leaderWorkerTemplate", template, "spec", list)
	all := make([]map[string]any, 0, len(containers))
	for _, c := range containers {
		m, _ := c.(map[string]any)
		all = append(all, m)
	}
	return all
}
