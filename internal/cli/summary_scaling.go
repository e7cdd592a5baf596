package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// autoscalerText says by what the service scales a role. Without an autoscaler it is a dash.
func autoscalerText(s *v1alpha1.RoleScaling) string {
	var parts []string
	if s.Target != nil {
		for _, f := range s.Target.Set() {
			parts = append(parts, fmt.Sprintf("target %s %d", f.Name, *f.Value))
		}
	}
	for _, m := range s.Metrics {
		parts = append(parts, "metric "+m.GetFields()["type"].GetStringValue())
	}
	for i := range s.Triggers {
		parts = append(parts, "trigger "+s.Triggers[i].Type)
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// writeScaling writes the limits of the roles with scaling, what their InferenceRoles ask for, and what scales them.
func writeScaling(b *strings.Builder, xr object, spec *v1alpha1.InferenceServiceSpec) {
	title := "\nScaling\n  ROLE\tMIN\tMAX\tASKED\tAUTOSCALER\n"
	for _, role := range scaledRoles(spec) {
		asked := ""
		if n, said := componentNumber(xr, role.Name, "scaling", "requestedReplicas"); said {
			asked = strconv.FormatInt(n, 10)
		}
		fmt.Fprintf(b, "%s  %s\t%d\t%d\t%s\t%s\n", title, role.Name, role.Scaling.Min(), role.Scaling.Max(), cmp.Or(asked, "-"), autoscalerText(role.Scaling))
		title = ""
	}
}
