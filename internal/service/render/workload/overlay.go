package workload

import (
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

const sharedMemoryName = "shared-memory"

// overlay returns the user's template with what the plan adds. It never decodes the template
// into a type, so unknown fields stay.
func overlay(r *plan.Role, t *plan.PodTemplate, leader bool) (*structpb.Struct, error) {
	doc := kube.Copy(kube.WithoutNulls(t.Document))
	spec := kube.CopyChild(doc, "spec")
	if r.Scheduler != "" {
		spec.Fields["schedulerName"] = structpb.NewStringValue(r.Scheduler)
	}
	containers := slices.Clone(kube.Elements(spec, "containers"))
	container := objectAt(containers, t.Engine)
	if container == nil {
		return doc, nil
	}
	engine := kube.Copy(container)
	containers[t.Engine] = structpb.NewStructValue(engine)
	for _, i := range t.Proxies {
		proxy := kube.Copy(objectAt(containers, i))
		containers[i] = structpb.NewStructValue(proxy)
		if err := setPreStop(proxy, t.DrainSeconds); err != nil {
			return nil, err
		}
	}
	kube.SetList(spec, "containers", containers)

	if err := setCommand(engine, t); err != nil {
		return nil, err
	}
	switch {
	case t.Headless:
		removeHTTP(engine, r)
	case leader && r.Sidecar != nil:
		movePort(engine, r.Port, r.EnginePort)
		if err := addSidecar(r.Sidecar, r, spec); err != nil {
			return nil, err
		}
	}
	if leader && r.RayPort != 0 {
		openPort(engine, r.RayPort)
	}
	if err := setLifecycle(spec, engine, t); err != nil {
		return nil, err
	}
	if t.SharedMemory {
		return doc, shareMemory(spec, engine)
	}
	return doc, nil
}

// setCommand sets the command, the arguments and the environment of the engine's container.
func setCommand(engine *structpb.Struct, t *plan.PodTemplate) error {
	for i := range t.Env {
		if err := kube.Append(engine, "env", &t.Env[i]); err != nil {
			return err
		}
	}
	if t.Command != nil || t.Args != nil {
		kube.SetTexts(engine, "command", t.Command)
		kube.SetTexts(engine, "args", t.Args)
	}
	return nil
}

// shareMemory mounts memory at /dev/shm, by which an engine's processes communicate. Without
// it, a container has 64 MiB there. The memory counts against the container's limit, so the
// volume sets none.
func shareMemory(spec, engine *structpb.Struct) error {
	name := kube.FreeName(sharedMemoryName, kube.Elements(spec, "volumes"))
	if err := kube.Append(spec, "volumes", apply.Volume().
		WithName(name).
		WithEmptyDir(apply.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory))); err != nil {
		return err
	}
	return kube.Append(engine, "volumeMounts", apply.VolumeMount().
		WithName(name).
		WithMountPath("/dev/shm"))
}

// setLifecycle sets how a pod tells that it serves, and how it stops.
func setLifecycle(spec, engine *structpb.Struct, t *plan.PodTemplate) error {
	if t.GraceSeconds > 0 {
		spec.Fields["terminationGracePeriodSeconds"] = number(t.GraceSeconds)
	}
	if t.DrainSeconds > 0 {
		if err := setPreStop(engine, t.DrainSeconds); err != nil {
			return err
		}
	}
	if t.Readiness == nil {
		return nil
	}
	ready, start := probe(t.Readiness).WithPeriodSeconds(t.Readiness.PeriodSeconds), probe(t.Readiness).WithPeriodSeconds(startupPeriod)
	for name, p := range map[string]*apply.ProbeApplyConfiguration{
		"readinessProbe": ready,
		"startupProbe":   start.WithFailureThreshold((t.Readiness.StartupSeconds + startupPeriod - 1) / startupPeriod),
	} {
		if name == "startupProbe" && t.Readiness.StartupSeconds == 0 {
			continue
		}
		encoded, err := kube.Encode(p)
		if err != nil {
			return err
		}
		engine.Fields[name] = structpb.NewStructValue(encoded)
	}
	return nil
}

// setPreStop makes a container go on for some seconds once its pod is deleted.
func setPreStop(container *structpb.Struct, seconds int32) error {
	sleep, err := kube.Encode(apply.LifecycleHandler().WithSleep(apply.SleepAction().WithSeconds(int64(seconds))))
	if err != nil {
		return err
	}
	lifecycle := kube.Copy(kube.CopyChild(container, "lifecycle"))
	lifecycle.Fields["preStop"] = structpb.NewStructValue(sleep)
	container.Fields["lifecycle"] = structpb.NewStructValue(lifecycle)
	return nil
}

// startupPeriod is the number of seconds between two startup probes.
const startupPeriod = 10

func probe(p *plan.Probe) *apply.ProbeApplyConfiguration {
	get := apply.HTTPGetAction().WithPath("/health").WithPort(intstr.FromInt32(p.Port))
	if p.HTTPS {
		get.WithScheme(corev1.URISchemeHTTPS)
	}
	return apply.Probe().WithHTTPGet(get).WithTimeoutSeconds(p.TimeoutSeconds)
}
