package fleet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// TestCapacityOfTheFleet shows that no template starts more GPUs in a cluster than it has. It makes
// templates at random from all fields that concern resources. It counts their GPUs by its own
// rules: those of the scheduler, and the larger number where these leave a choice.
func TestCapacityOfTheFleet(t *testing.T) {
	const capacity = 8
	// The service starts once the cluster has reserved capacity for it.
	cluster := fmt.Sprintf("apiVersion: fusioninfer.io/v1alpha1\nkind: InferenceCluster\nmetadata: {name: c}\nspec: {providerConfigRef: {name: c}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: %d}}]}\n", capacity)
	fn := function.Start(t)
	started, refused, waited := 0, 0, 0
	for seed := range 240 {
		random := rand.New(rand.NewPCG(uint64(seed), 320))
		xr := randomService(t, random)
		out, err := fn.RenderFleet(t, xr, cluster, "yaml")
		if err != nil {
			refused++
			continue
		}
		got, replicas := gpusOf(t, out)
		switch {
		case got > capacity:
			t.Fatalf("%d GPUs in a cluster that has %d:\n%s", got, capacity, xr)
		case replicas == 0:
			waited++
		default:
			started++
		}
	}
	t.Logf("%d services started, %d waited and %d were refused", started, waited, refused)
	if started < 20 || waited < 20 || refused < 20 {
		t.Errorf("%d services started, %d waited and %d were refused: want many of each", started, waited, refused)
	}
}

// gpusOf counts the LeaderWorkerSets for other clusters, and their GPUs.
func gpusOf(t *testing.T, rendered string) (gpus, replicas int64) {
	t.Helper()
	type workload struct {
		Kind string `json:"kind"`
		Spec struct {
			Replicas             int64 `json:"replicas"`
			LeaderWorkerTemplate struct {
				Size           int64                  `json:"size"`
				LeaderTemplate corev1.PodTemplateSpec `json:"leaderTemplate"`
				WorkerTemplate corev1.PodTemplateSpec `json:"workerTemplate"`
			} `json:"leaderWorkerTemplate"`
		} `json:"spec"`
	}
	for _, text := range strings.Split(rendered, "\n---\n") {
		o := struct {
			Spec struct {
				ForProvider struct {
					Manifest workload `json:"manifest"`
				} `json:"forProvider"`
			} `json:"spec"`
		}{}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		m := o.Spec.ForProvider.Manifest
		if m.Kind != "LeaderWorkerSet" {
			continue
		}
		replicas++
		l := m.Spec.LeaderWorkerTemplate
		if l.LeaderTemplate.Spec.Containers == nil {
			l.LeaderTemplate = l.WorkerTemplate
		}
		for _, pod := range []corev1.PodSpec{l.LeaderTemplate.Spec, l.WorkerTemplate.Spec} {
			if pod.NodeName != "" || len(pod.ResourceClaims) > 0 {
				t.Errorf("a pod names its node or claims devices: %v", pod)
			}
		}
		gpus += m.Spec.Replicas * (gpusOfPod(l.LeaderTemplate.Spec) + (l.Size-1)*gpusOfPod(l.WorkerTemplate.Spec))
	}
	return gpus, replicas
}

// gpusOfPod returns the GPUs that a scheduler needs for a pod: the larger of two numbers. One is that
// of all containers and sidecars. The other is that of an init container and the sidecars before it.
func gpusOfPod(pod corev1.PodSpec) int64 {
	of := func(c *corev1.Container) int64 {
		request, limit := c.Resources.Requests[gpu], c.Resources.Limits[gpu]
		return max(request.Value(), limit.Value(), 0)
	}
	var stay, first, all int64
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			stay += of(c)
			first = max(first, stay)
			continue
		}
		first = max(first, stay+of(c))
	}
	all = stay
	for i := range pod.Containers {
		all += of(&pod.Containers[i])
	}
	return max(all, first)
}

// randomService returns a service whose templates request resources in valid and invalid ways.
func randomService(t *testing.T, random *rand.Rand) string {
	t.Helper()
	one := func(all ...any) any { return all[random.IntN(len(all))] }
	amount := func() any {
		if random.IntN(12) == 0 {
			return one("-8", "500m", "9223372036854775807")
		}
		return one("1", "1", 2, 4, "8", "320", "0", "1k", "2e0")
	}
	resources := func() map[string]any {
		limits, requests := map[string]any{}, map[string]any{}
		for _, name := range []string{"nvidia.com/gpu", "cpu", "hugepages-2Mi", "requests.nvidia.com/gpu"} {
			if !(name == "nvidia.com/gpu" || name == "cpu") && random.IntN(12) > 0 || random.IntN(3) == 0 {
				continue
			}
			limits[name] = amount()
			switch random.IntN(12) {
			case 0:
				requests[name] = amount()
			case 1:
				delete(limits, name)
				requests[name] = amount()
			case 2, 3, 4:
				requests[name] = limits[name]
			}
		}
		m := map[string]any{"limits": limits, "requests": requests}
		if random.IntN(20) == 0 {
			m["claims"] = []any{map[string]any{"name": "gpu"}}
		}
		return m
	}
	container := func(name string) map[string]any {
		return map[string]any{"name": name, "image": "i", "resources": resources()}
	}
	template := func() map[string]any {
		spec := map[string]any{"containers": []any{container("vllm")}}
		if random.IntN(3) == 0 {
			spec["containers"] = []any{container("vllm"), container("beside")}
		}
		if random.IntN(3) == 0 {
			init := container("init")
			if random.IntN(2) == 0 {
				init["restartPolicy"] = "Always"
			}
			spec["initContainers"] = []any{init, container("then")}
		}
		for _, f := range []struct {
			name  string
			value any
		}{
			{"nodeName", "gpu-1"}, {"resources", resources()}, {"overhead", map[string]any{"nvidia.com/gpu": amount()}},
			{"resourceClaims", []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "gpus"}}},
			{"schedulerName", "default-scheduler"}, {"ephemeralContainers", []any{container("ephemeral")}},
		} {
			if random.IntN(30) == 0 {
				spec[f.name] = f.value
			}
		}
		return map[string]any{"spec": spec}
	}
	role := map[string]any{"name": "w", "componentType": "worker", "replicas": one(1, 1, 2, 5, 12), "template": template()}
	if random.IntN(3) == 0 {
		role["multinode"] = map[string]any{"nodeCount": one(2, 3, 40), "launcher": "None"}
		if random.IntN(2) == 0 {
			role["leaderTemplate"] = template()
		}
	}
	roles := []any{role}
	if random.IntN(6) == 0 {
		roles = append(roles, map[string]any{"name": "router", "componentType": "router", "replicas": one(1, 40), "endpointPicker": map[string]any{"resources": resources()}})
	}
	spec := map[string]any{
		"roles":              roles,
		"schedulingStrategy": map[string]any{"gang": map[string]any{"mode": one("AllOrNothing", "MinimumFirst", "None")}},
		"placement":          map[string]any{"policy": one("Replicate", "Spread", "Failover"), "clusterSelector": map[string]any{}},
	}
	if random.IntN(4) == 0 {
		spec["replicas"] = one(1, 2, 7)
	}
	b, err := json.Marshal(map[string]any{
		"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceService",
		"metadata": map[string]any{"name": "s", "namespace": "team", "uid": "u", "creationTimestamp": "2026-03-01T12:00:00Z"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
