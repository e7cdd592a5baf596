package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A roleScaling is what the spec of a role says of its scaling.
type roleScaling struct {
	role, autoscaler string
	least, most      int64
}

// scalingOf returns what the spec of a service says of the scaling of its roles.
func scalingOf(xr object) []roleScaling {
	var all []roleScaling
	roles, _ := specOf(xr)["roles"].([]any)
	scaled := scaledRoles(xr)
	for _, r := range roles {
		role, _ := r.(map[string]any)
		name, _ := role["name"].(string)
		scaling, is := role["scaling"].(map[string]any)
		if !is || !slices.Contains(scaled, name) {
			continue
		}
		s := roleScaling{role: name, autoscaler: autoscalerText(scaling), least: 1}
		if n, set := number(scaling, "minReplicas"); set {
			s.least = n
		}
		s.most, _ = number(scaling, "maxReplicas") // The function refuses a role without it.
		all = append(all, s)
	}
	return all
}

// autoscalerText says by what the service scales a role. Without an autoscaler it is a dash.
func autoscalerText(scaling map[string]any) string {
	var parts []string
	target, _ := scaling["target"].(map[string]any)
	for _, metric := range slices.Sorted(maps.Keys(target)) {
		value, err := json.Marshal(target[metric])
		if err != nil {
			continue // What was read from YAML can be written.
		}
		parts = append(parts, fmt.Sprintf("target %s %s", metric, value))
	}
	for _, list := range []struct{ field, one string }{{"metrics", "metric"}, {"triggers", "trigger"}} {
		entries, _ := scaling[list.field].([]any)
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			kind, _ := entry["type"].(string)
			parts = append(parts, list.one+" "+kind)
		}
	}
	return dash(strings.Join(parts, ", "))
}

// writeScaling writes the limits of the roles with scaling, what their InferenceRoles ask for, and what scales them.
func writeScaling(b *strings.Builder, xr object, all []roleScaling) {
	for i, s := range all {
		if i == 0 {
			fmt.Fprintln(b, "\nScaling")
			fmt.Fprintln(b, "  ROLE\tMIN\tMAX\tASKED\tAUTOSCALER")
		}
		asked := ""
		if n, said := componentNumber(xr, s.role, "scaling", "requestedReplicas"); said {
			asked = strconv.FormatInt(n, 10)
		}
		fmt.Fprintf(b, "  %s\t%d\t%d\t%s\t%s\n", s.role, s.least, s.most, dash(asked), s.autoscaler)
	}
}
