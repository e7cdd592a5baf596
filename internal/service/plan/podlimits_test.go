package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestPodLimits proves what a template may not have in the fleet or in a gang.
func TestPodLimits(t *testing.T) {
	const (
		node    = `{"spec":{"nodeName":"gpu-1","containers":[{"name":"vllm","image":"i"}]}}`
		claims  = `{"spec":{"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"gpus"}],"initContainers":[{"name":"init","image":"i","resources":{"claims":[{"name":"gpu"}]}}],"containers":[{"name":"vllm","image":"i","resources":{"claims":[{"name":"gpu"}]}}]}}`
		named   = "spec.roles[0].template.spec.nodeName: Forbidden: must be left out in a cluster of the fleet, where pods run only on reserved capacity: select a pool with nodeSelector"
		inGang  = "spec.roles[0].template.spec.nodeName: Forbidden: must be left out in a gang: the scheduler never sees such a pod, so it starts without the others. Select nodes with nodeSelector, or set schedulingStrategy.gang.mode: None"
		counted = ": Forbidden: must be left out in a cluster of the fleet, which cannot count the devices of a claim: request them as resources that its pools list, such as nvidia.com/gpu"
	)
	var labels []string
	for i := range 120 {
		labels = append(labels, fmt.Sprintf(`"label-%03d":%q`, i, strings.Repeat("v", 63)))
	}
	fleetOf := &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, FailoverAfterSeconds: ptr.To[int32](300), Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}}
	leaving := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
	leaving.Request, leaving.States["east"] = schedulingtest.RequestedAs("east", "east"), schedulingtest.Existing("worker/0")
	cases := map[string]struct {
		reason    string
		template  string
		leader    string
		placement *v1alpha1.Placement
		gang      v1alpha1.GangMode
		snapshot  scheduling.Snapshot
		want      []string
	}{
		"Node":    {reason: "It would take capacity that is reserved for others on that node.", template: node, placement: fleetOf, gang: v1alpha1.GangNone, want: []string{named}},
		"Leaving": {reason: "A service that leaves the fleet is still in it.", template: node, gang: v1alpha1.GangNone, snapshot: leaving, want: []string{named}},
		"Gang":    {reason: "It would not wait for the others of the gang.", template: node, gang: v1alpha1.GangAllOrNothing, want: []string{inGang}},
		"Alone":   {reason: "Outside of both it is allowed.", template: node, gang: v1alpha1.GangNone},
		"Leader":  {reason: "The leaders' template is checked, too.", template: `{"spec":{"containers":[{"name":"vllm","image":"i"}]}}`, leader: node, placement: fleetOf, gang: v1alpha1.GangNone, want: []string{"spec.roles[0].leaderTemplate" + named[len("spec.roles[0].template"):]}},
		"Claims":  {reason: "A ledger does not count them.", template: claims, placement: fleetOf, gang: v1alpha1.GangNone, want: []string{"spec.roles[0].template.spec.resourceClaims" + counted, "spec.roles[0].template.spec.initContainers[0].resources.claims" + counted, "spec.roles[0].template.spec.containers[0].resources.claims" + counted}},
		"Grace":   {reason: "Its capacity is reserved for others while it may go on for years.", template: `{"spec":{"terminationGracePeriodSeconds":315360000,"containers":[{"name":"vllm","image":"i"}]}}`, placement: fleetOf, gang: v1alpha1.GangNone, want: []string{"spec.roles[0].template.spec.terminationGracePeriodSeconds: Invalid value: 315360000: must be at most 3600 in a cluster of the fleet, which reserves the capacity for others once the replica is deleted"}},
		"Hour":    {reason: "An hour lets long answers end.", template: `{"spec":{"terminationGracePeriodSeconds":3600,"containers":[{"name":"vllm","image":"i"}]}}`, placement: fleetOf, gang: v1alpha1.GangNone},
		"Affinity": {
			reason:   "One pool has the reservation, and the pod would run in another one.",
			template: `{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gpu","operator":"In","values":["h100"]}]}]}}},"containers":[{"name":"vllm","image":"i"}]}}`, placement: fleetOf, gang: v1alpha1.GangNone,
			want: []string{"spec.roles[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: Forbidden: must be left out in a cluster of the fleet, where capacity is reserved per pool: select a pool with nodeSelector"},
		},
		"Tolerations": {
			reason:   "A cluster reads a limited number of them.",
			template: `{"spec":{"tolerations":[` + strings.TrimSuffix(strings.Repeat(`{"key":"k","operator":"Exists"},`, 65), ",") + `],"containers":[{"name":"vllm","image":"i"}]}}`, placement: fleetOf, gang: v1alpha1.GangNone,
			want: []string{"spec.roles[0].template.spec.tolerations: Too many: 65: must have at most 64 items"},
		},
		"Labels": {
			reason: "A cluster reads no request with more.", placement: fleetOf, gang: v1alpha1.GangNone,
			template: `{"spec":{"nodeSelector":{` + numbered(257, `"l#":""`) + `},"containers":[{"name":"vllm","image":"i"}]}}`,
			want:     []string{"spec.roles[0].template.spec.nodeSelector: Too many: 257: must have at most 256 items"},
		},
		"LongTexts": {
			reason: "A cluster does not read such long texts.", placement: fleetOf, gang: v1alpha1.GangNone,
			template: `{"spec":{"nodeSelector":{` + strings.Join(labels, ",") + `},"containers":[{"name":"vllm","image":"i"}]}}`,
			want:     []string{`spec.roles[0].template.spec: Invalid value: "9241 bytes of nodeSelector, tolerations and resources": must be at most 8192 in a cluster of the fleet, which counts its capacity by them`},
		},
		"OwnClaims": {reason: "Outside of the fleet, no capacity is counted.", template: claims, gang: v1alpha1.GangAllOrNothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](1), Template: document(t, tc.template)}
			if tc.gang == v1alpha1.GangAllOrNothing || tc.leader != "" {
				role.Multinode = &v1alpha1.Multinode{NodeCount: ptr.To[int32](2), Launcher: v1alpha1.LauncherNone}
			}
			if tc.leader != "" {
				role.LeaderTemplate = document(t, tc.leader)
			}
			spec := &v1alpha1.InferenceServiceSpec{
				Placement: tc.placement, Roles: []v1alpha1.Role{role},
				SchedulingStrategy: &v1alpha1.SchedulingStrategy{Gang: &v1alpha1.Gang{Mode: tc.gang}},
			}
			_, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, spec, defaultInput(), tc.snapshot, nil)
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInvalidAmounts proves that amounts which no API server would take are not counted
// as less than they are.
func TestInvalidAmounts(t *testing.T) {
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	gpus := func(n string) corev1.ResourceList { return resources("nvidia.com/gpu", n) }
	cases := map[string]struct {
		reason string
		spec   corev1.PodSpec
		want   map[string]string
	}{
		"Limit":          {"A device cannot be overcommitted.", corev1.PodSpec{Containers: []corev1.Container{container(gpus("0"), gpus("8"))}}, map[string]string{"nvidia.com/gpu": "8"}},
		"HugePages":      {"Nor can huge pages be overcommitted.", corev1.PodSpec{Containers: []corev1.Container{container(resources("hugepages-2Mi", "2Mi"), resources("hugepages-2Mi", "1Gi"))}}, map[string]string{"hugepages-2Mi": "1Gi"}},
		"CPU":            {"CPU can be overcommitted.", corev1.PodSpec{Containers: []corev1.Container{container(resources("cpu", "1"), resources("cpu", "4"))}}, map[string]string{"cpu": "1"}},
		"Negative":       {"A negative amount of one container does not reduce the sum.", corev1.PodSpec{Containers: []corev1.Container{container(nil, gpus("8")), container(nil, gpus("-8")), container(gpus("-8"), nil)}}, map[string]string{"nvidia.com/gpu": "8"}},
		"Fraction":       {"Half a device counts as a whole one.", corev1.PodSpec{Containers: []corev1.Container{container(nil, gpus("1500m"))}}, map[string]string{"nvidia.com/gpu": "2"}},
		"Overhead":       {"Nor does a negative overhead.", corev1.PodSpec{Containers: []corev1.Container{container(nil, gpus("8"))}, Overhead: gpus("-8")}, map[string]string{"nvidia.com/gpu": "8"}},
		"PodLevel":       {"Devices are counted by container, whatever the pod as a whole requests.", corev1.PodSpec{Containers: []corev1.Container{container(nil, gpus("8"))}, Resources: &corev1.ResourceRequirements{Requests: gpus("0"), Limits: gpus("1")}}, map[string]string{"nvidia.com/gpu": "8"}},
		"InitContainers": {"The larger of init containers and containers counts.", corev1.PodSpec{InitContainers: []corev1.Container{container(nil, gpus("8"))}, Containers: []corev1.Container{container(nil, gpus("1"))}}, map[string]string{"nvidia.com/gpu": "8"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, written(minResources(tc.spec))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnnamedResources proves that a cluster has nothing of a resource that none of its pools
// names, except those that every node has. That includes huge pages and devices of another
// name, such as those of a DeviceClass.
func TestUnnamedResources(t *testing.T) {
	for name, fits := range map[string]bool{
		"cpu": true, "memory": true, "ephemeral-storage": true, "pods": true, "nvidia.com/gpu": true,
		"hugepages-2Mi": false, "nvidia.com/mig-1g.5gb": false, "deviceclass.resource.kubernetes.io/gpu": false, "attachable-volumes-csi": false,
	} {
		free := capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{capacitytest.Nodes(4, 8, 64)})}}
		shape := capacity.PodRequirements{Requests: capacity.ResourcesOf(resources(name, "1"))}
		if ok, why := free.Allocate([]capacity.PodSet{{Requirements: &shape, Count: 1}}); ok != fits {
			t.Errorf("a pod with one %s fits: %t (%s)", name, ok, why)
		}
	}
}
