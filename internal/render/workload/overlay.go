package workload

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

const (
	sharedMemoryName = "shared-memory"
	sidecarName      = "routing-sidecar"
)

// overlay returns the user's template with what the plan adds to it. The
// document is never read into a type, so fields that are not known here stay as
// they are.
func overlay(r *plan.Role, t *plan.PodTemplate, leader bool) kube.Document {
	doc := clone(t.Document)
	spec := child(doc, "spec")
	if r.Scheduler != "" {
		spec["schedulerName"] = r.Scheduler
	}
	containers := elements(spec, "containers")
	if t.Engine >= len(containers) {
		return doc
	}
	engine, ok := containers[t.Engine].(kube.Document)
	if !ok {
		return doc
	}
	run(engine, t)
	switch {
	case t.Headless:
		silence(engine, r)
	case leader && r.Sidecar != nil:
		movePort(engine, r.Port, r.EnginePort)
		spec["initContainers"] = append(elements(spec, "initContainers"), sidecar(r, spec))
	}
	if leader && r.RayPort != 0 {
		openPort(engine, r.RayPort)
	}
	if t.SharedMemory {
		shareMemory(spec, engine)
	}
	return doc
}

// run sets what the engine's container runs.
func run(engine kube.Document, t *plan.PodTemplate) {
	for _, e := range t.Env {
		engine["env"] = append(elements(engine, "env"), e)
	}
	if t.Command == nil && t.Args == nil {
		return
	}
	for field, words := range map[string][]string{"command": t.Command, "args": t.Args} {
		if len(words) == 0 {
			delete(engine, field)
			continue
		}
		engine[field] = words
	}
}

// shareMemory mounts memory at /dev/shm, where engines on several GPUs meet. A
// container has 64 MiB of it otherwise. What is used counts as the container's
// memory, so it needs no limit of its own.
func shareMemory(spec, engine kube.Document) {
	name := freeName(sharedMemoryName, elements(spec, "volumes"))
	spec["volumes"] = append(elements(spec, "volumes"), apply.Volume().
		WithName(name).
		WithEmptyDir(apply.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory)))
	engine["volumeMounts"] = append(elements(engine, "volumeMounts"), apply.VolumeMount().
		WithName(name).
		WithMountPath("/dev/shm"))
}

// sidecar is the routing sidecar of decode pods, as an init container that keeps
// running: it is there before the engine, and gone after it.
func sidecar(r *plan.Role, spec kube.Document) *apply.ContainerApplyConfiguration {
	s := apply.Container().
		WithName(freeName(sidecarName, slices.Concat(elements(spec, "containers"), elements(spec, "initContainers")))).
		WithImage(r.Sidecar.Image).
		WithArgs(
			"--port="+strconv.Itoa(int(r.Port)),
			"--model-server-port="+strconv.Itoa(int(r.EnginePort)),
			"--kv-connector="+r.Sidecar.Connector,
			"--secure-proxy=false",
		).
		WithPorts(apply.ContainerPort().WithContainerPort(r.Port)).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithSecurityContext(apply.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(apply.Capabilities().WithDrop("ALL")))
	if res := r.Sidecar.Resources; res != nil {
		all := apply.ResourceRequirements()
		if len(res.Limits) > 0 {
			all.WithLimits(res.Limits)
		}
		if len(res.Requests) > 0 {
			all.WithRequests(res.Requests)
		}
		s.WithResources(all)
	}
	return s
}

// freeName returns a name that none of the elements has.
func freeName(want string, elements []any) string {
	name := want
	for i := 2; slices.ContainsFunc(elements, func(e any) bool {
		d, _ := e.(kube.Document)
		return d["name"] == name
	}); i++ {
		name = want + "-" + strconv.Itoa(i)
	}
	return name
}
