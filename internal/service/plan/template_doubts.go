package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// judgeUnknown refuses fields that a type does not have where one is misspelt, and warns of the others: the cluster may have a
// later version. why says what does not have the fields.
//
// Crossplane applies on the server's side, and an API server refuses an object with a field that its schema does not have ("field
// not declared in schema", sigs.k8s.io/structured-merge-diff). Crossplane then applies nothing more of the service, and writes no
// status. So nobody would see a warning in the status.
func judgeUnknown(fields []kube.UnknownField, why string) ([]Warning, field.ErrorList) {
	var warnings []Warning
	var errs field.ErrorList
	for _, u := range fields {
		if near := u.NearName(); near != "" {
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: u.Path, Detail: "unknown field" + text.DidYouMean("%q", near) + ": " + why})
			continue
		}
		warnings = append(warnings, Warning{Path: u.Path, Message: "unknown field: " + why + ", and an API server that does not have it either applies nothing of the service"})
	}
	return warnings, errs
}

// withoutMisplaced refuses fields of containers that stand elsewhere in a template, and fields of pods. It returns the other unknown fields. Such a
// field is refused even if a later version of Kubernetes has one of that name, because far more users indent it wrongly.
func withoutMisplaced(fields []kube.UnknownField, at *field.Path) ([]kube.UnknownField, field.ErrorList) {
	var errs field.ErrorList
	others := slices.DeleteFunc(fields, func(u kube.UnknownField) bool {
		place := placeOf(u, at)
		if place != "" {
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: u.Path, Detail: "unknown field" + text.DidYouMean("%s", place) + ": " + podspec.UnknownField})
		}
		return place != ""
	})
	return others, errs
}

// placeOf returns where the pods or the containers of a template at a path have the field, or nothing.
func placeOf(u kube.UnknownField, at *field.Path) string {
	beside := func(name string) bool { return slices.Contains(u.Known, name) }
	inTemplate, inPod, inContainer := u.Path == at.Child(u.Name).String(), beside("containers"), beside("imagePullPolicy")
	place := podspec.PlaceOf(u.Name)
	if u.Name == "name" || place == "" || !inTemplate && !inPod && !inContainer {
		return ""
	}
	return at.String() + "." + place
}

// warnOfProbes warns of probes at a port that their container does not name. Such a probe fails,
// so the pod is never ready, or it is restarted again and again.
func warnOfProbes(spec *corev1.PodSpec, at *field.Path) []Warning {
	var warnings []Warning
	for i := range spec.InitContainers {
		// Other init containers have no probes.
		if p := spec.InitContainers[i].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			warnings = append(warnings, warnOfProbesOf(&spec.InitContainers[i], at.Child("initContainers").Index(i))...)
		}
	}
	for i := range spec.Containers {
		warnings = append(warnings, warnOfProbesOf(&spec.Containers[i], at.Child("containers").Index(i))...)
	}
	return warnings
}

func warnOfProbesOf(c *corev1.Container, at *field.Path) []Warning {
	var warnings []Warning
	for _, probe := range []struct {
		name string
		*corev1.Probe
	}{{"readinessProbe", c.ReadinessProbe}, {"livenessProbe", c.LivenessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.Probe == nil {
			continue
		}
		check := func(handler string, port intstr.IntOrString) {
			if port.Type != intstr.String || slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal }) {
				return
			}
			warnings = append(warnings, warningAt(at.Child(probe.name, handler, "port"), "no port of this container is named %q", text.Value(port.StrVal)))
		}
		if h := probe.HTTPGet; h != nil {
			check("httpGet", h.Port)
		}
		if h := probe.TCPSocket; h != nil {
			check("tcpSocket", h.Port)
		}
	}
	return warnings
}

// warnOfResources warns of names that are nearly those of known devices. A request of a device has to have a limit, so limits have all
// names.
func warnOfResources(containers []corev1.Container, at *field.Path) []Warning {
	var warnings []Warning
	for i := range containers {
		limits := containers[i].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			if meant := meantGPU(name); meant != "" && meant != string(name) {
				warnings = append(warnings, warningAt(at.Index(i).Child("resources", "limits").Key(text.Value(string(name))),
					"no known device plugin has this resource%s: pods stay Pending until a node has it", text.DidYouMean("%q", text.Value(meant))))
			}
		}
	}
	return warnings
}
