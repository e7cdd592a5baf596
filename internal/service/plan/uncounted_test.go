package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestWarnOfUncounted proves which rules of a template are warned of in the fleet, because no cluster counts them.
func TestWarnOfUncounted(t *testing.T) {
	const (
		container = `containers: [{name: vllm, image: vllm-openai, args: [m]}]`
		spread    = `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}], ` + container + `}`
		apart     = `[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {fusioninfer.io/service: svc}}}]`
		exclusive = `metadata: {annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: rack}}, spec: {` + container + `}`
	)
	const role = "spec.roles[0].template."
	inFleet := &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, FailoverAfterSeconds: ptr.To[int32](300), Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}}
	leaving := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
	leaving.Request, leaving.States["east"] = schedulingtest.RequestedAs("east", "east"), schedulingtest.Existing("worker/0")
	cases := map[string]struct {
		reason           string
		template, leader string
		nodes            int32
		outside, leaving bool
		want             []Warning
	}{
		"None": {reason: "Preferences keep no pod from a node.", template: `spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]}},
			containers: [{name: vllm, image: vllm-openai, args: [m], ports: [{containerPort: 8000}]}]}`},
		"AntiAffinity": {
			reason: "The ledger puts two small pods onto one node.", template: `spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ` + apart + `}}, ` + container + `}`,
			want: []Warning{{Path: role + "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", Message: notCounted + "use preferredDuringSchedulingIgnoredDuringExecution. Pods that take a whole node each need no such rule"}},
		},
		"Spread": {
			reason: "It may count on a node that is one too many.", template: spread,
			want: []Warning{{Path: role + "spec.topologySpreadConstraints[1].whenUnsatisfiable", Message: notCounted + "set it to ScheduleAnyway. Pods that take a whole node each need no such rule"}},
		},
		"HostPort": {
			reason: "A node has each port once.", template: `spec: {containers: [{name: vllm, image: vllm-openai, args: [m], ports: [{containerPort: 8000}, {containerPort: 9000, hostPort: 9000}]}]}`,
			want: []Warning{{Path: role + "spec.containers[0].ports[1].hostPort", Message: notCounted + "leave it out, since requests reach pods at their own addresses"}},
		},
		"HostPortOfSidecar": {
			reason: "Init containers have ports, too.", template: `spec: {initContainers: [{name: side, image: x, restartPolicy: Always, ports: [{containerPort: 9000, hostPort: 9000}]}], ` + container + `}`,
			want: []Warning{{Path: role + "spec.initContainers[0].ports[0].hostPort", Message: notCounted + "leave it out, since requests reach pods at their own addresses"}},
		},
		"Exclusive": {
			reason: "LeaderWorkerSet has each replica in a rack of its own.", template: exclusive,
			want: []Warning{{Path: role + "metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]", Message: notCounted + "leave it out, and choose nodes by nodeSelector"}},
		},
		"Workers":   {reason: "LeaderWorkerSet reads it of the leader alone, and another warning says so.", template: exclusive, leader: `spec: {` + container + `}`, nodes: 2},
		"Leaders":   {reason: "Leaders have a template of their own.", template: `spec: {` + container + `}`, leader: exclusive, nodes: 2, want: []Warning{{Path: "spec.roles[0].leaderTemplate.metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]", Message: notCounted + "leave it out, and choose nodes by nodeSelector"}}},
		"Subgroups": {reason: "It has no effect, and another warning says so.", template: strings.Replace(exclusive, "exclusive", "subgroup-exclusive", 1)},
		"Leaving":   {reason: "A service that leaves the fleet is still in it.", template: spread, outside: true, leaving: true, want: []Warning{{Path: role + "spec.topologySpreadConstraints[1].whenUnsatisfiable", Message: notCounted + "set it to ScheduleAnyway. Pods that take a whole node each need no such rule"}}},
		"Outside":   {reason: "Outside of the fleet nothing is reserved.", template: spread, outside: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := v1alpha1.Role{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](1), Template: document(t, "{"+tc.template+"}")}
			if tc.leader != "" {
				r.Multinode, r.LeaderTemplate = multinode(tc.nodes, v1alpha1.LauncherVLLM), document(t, "{"+tc.leader+"}")
			}
			spec := &v1alpha1.InferenceServiceSpec{Placement: inFleet, Roles: []v1alpha1.Role{r}, SchedulingStrategy: &v1alpha1.SchedulingStrategy{Gang: &v1alpha1.Gang{Mode: v1alpha1.GangNone}}}
			if tc.outside {
				spec.Placement = nil
			}
			snapshot := schedulingtest.Snapshot()
			if tc.leaving {
				snapshot = leaving
			}
			in := defaultInput()
			in.PodSecurity = &inputv1alpha1.PodSecurity{Enforce: "privileged"} // Other standards refuse a hostPort.
			inputv1alpha1.Default(in)
			p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, spec, in, snapshot, nil)
			if len(errs) > 0 {
				t.Fatalf("%s\nit is refused: %v", tc.reason, errs)
			}
			var got []Warning
			for _, w := range p.Warnings {
				if strings.HasPrefix(w.Message, notCounted) {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
