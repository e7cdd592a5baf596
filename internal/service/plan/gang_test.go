package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// story4 is prefill on 2 nodes and two decode replicas on 4, 8 GPUs each.
const story4 = `
roles:
- name: prefill
  componentType: prefiller
  replicas: 1
  multinode: {nodeCount: 2}
  template: {spec: {containers: [{name: vllm, image: i, args: [--model, m], resources: {limits: {nvidia.com/gpu: "8"}}}]}}
- name: decode
  componentType: decoder
  replicas: 2
  multinode: {nodeCount: 4}
  template: {spec: {containers: [{name: vllm, image: i, args: [--model, m], resources: {limits: {nvidia.com/gpu: "8"}}}]}}
`

// build plans a spec with an input, both as YAML.
func build(t *testing.T, spec, input string) (*Plan, error) {
	t.Helper()
	s, in := &v1alpha1.InferenceServiceSpec{}, &inputv1alpha1.Input{}
	if err := yaml.UnmarshalStrict([]byte(spec), s); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(input), in); err != nil {
		t.Fatal(err)
	}
	v1alpha1.Default(s)
	inputv1alpha1.Default(in)
	p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", Grouped: s.Replicas != nil}, s, in, scheduling.Snapshot{}, nil)
	return p, errs.ToAggregate()
}

func TestGang(t *testing.T) {
	type gang struct {
		Name      string
		MinMember int32
		Tasks     map[string]int32
		SubGroups []SubGroup
		GPUs      string
		Queue     string
		Priority  string
	}
	ignored := func(names ...string) (all []Warning) {
		for _, n := range names {
			all = append(all, Warning{Path: "spec.schedulingStrategy." + n, Message: "has no effect: the service has no gang"})
		}
		return all
	}
	cases := map[string]struct {
		reason string
		spec   string
		input  string
		want   []gang
		warns  []Warning
	}{
		"Story4": {
			reason: "the seeds' manifest, to the letter",
			spec:   story4,
			want:   []gang{{Name: "svc", MinMember: 10, Tasks: map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 4}, GPUs: "80"}},
		},
		"Story4MinimumFirst": {
			reason: "one group's minimum: 1 prefill and 1 decode, whose subgroups are whole replicas",
			spec:   story4 + "schedulingStrategy: {gang: {mode: MinimumFirst}}",
			want:   []gang{{Name: "svc", MinMember: 6, SubGroups: []SubGroup{{"prefill", 2, 1}, {"decode", 4, 1}}, GPUs: "48"}},
		},
		"MinRoleReplicas": {
			reason: "keys 0..k-1 of the listed roles",
			spec:   story4 + "schedulingStrategy: {gang: {minRoleReplicas: {prefill: 1, decode: 1}}}",
			want:   []gang{{Name: "svc", MinMember: 6, Tasks: map[string]int32{"prefill-0": 2, "decode-0": 4}, GPUs: "48"}},
			warns:  []Warning{{Path: "spec.schedulingStrategy.gang.minRoleReplicas", Message: "leaves out replicas of role decode, which have 4 nodes each: with mode AllOrNothing, a part of such a replica may start and hold its nodes while the rest waits. Set mode: MinimumFirst"}},
		},
		"MinRoleReplicasUnlisted": {
			reason: "a role that is not listed has no minimum, and a number above the replicas is clamped",
			spec:   story4 + "schedulingStrategy: {gang: {minRoleReplicas: {decode: 9}}}",
			want:   []gang{{Name: "svc", MinMember: 8, Tasks: map[string]int32{"decode-0": 4, "decode-1": 4}, GPUs: "64"}},
			warns:  []Warning{{Path: "spec.schedulingStrategy.gang.minRoleReplicas", Message: "leaves out replicas of role prefill, which have 2 nodes each: with mode AllOrNothing, a part of such a replica may start and hold its nodes while the rest waits. Set mode: MinimumFirst"}},
		},
		"MinRoleReplicasUnlistedMinimumFirst": {
			reason: "the same for subgroups",
			spec:   story4 + "schedulingStrategy: {gang: {mode: MinimumFirst, minRoleReplicas: {decode: 2}}}",
			want:   []gang{{Name: "svc", MinMember: 8, SubGroups: []SubGroup{{"prefill", 2, 0}, {"decode", 4, 2}}, GPUs: "64"}},
		},
		"Groups": {
			reason: "a PodGroup for each group, and no multiplication by the number of groups",
			spec:   story4 + "replicas: 2",
			want: []gang{
				{Name: "svc-0", MinMember: 10, Tasks: map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 4}, GPUs: "80"},
				{Name: "svc-1", MinMember: 10, Tasks: map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 4}, GPUs: "80"},
			},
		},
		"None": {
			reason: "mode None makes no PodGroup",
			spec:   story4 + "schedulingStrategy: {gang: {mode: None}, schedulerName: kueue}",
		},
		"PlatformDefaults": {
			reason: "the platform team's settings apply where the service has none",
			spec:   story4,
			input:  "defaults: {schedulingStrategy: {queueName: gpus, gang: {mode: MinimumFirst, priorityClassName: low}}}",
			want:   []gang{{Name: "svc", MinMember: 6, SubGroups: []SubGroup{{"prefill", 2, 1}, {"decode", 4, 1}}, GPUs: "48", Queue: "gpus", Priority: "low"}},
		},
		"ServiceWinsOverPlatform": {
			reason: "the service's own settings win",
			spec:   story4 + "schedulingStrategy: {queueName: mine, gang: {mode: AllOrNothing, priorityClassName: top}}",
			input:  "{defaults: {schedulingStrategy: {queueName: gpus, gang: {mode: None, priorityClassName: low}}}, allowedQueues: [mine], allowedPriorityClassNames: [top]}",
			want:   []gang{{Name: "svc", MinMember: 10, Tasks: map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 4}, GPUs: "80", Queue: "mine", Priority: "top"}},
		},
		"SingleNodePD": {
			reason: "prefill and decode on single nodes start together too",
			spec:   strings.NewReplacer("nodeCount: 2", "nodeCount: 1", "nodeCount: 4", "nodeCount: 1").Replace(story4),
			want:   []gang{{Name: "svc", MinMember: 3, Tasks: map[string]int32{"prefill-0": 1, "decode-0": 1, "decode-1": 1}, GPUs: "24"}},
		},
		"SingleNodeWorkers": {
			reason: "single-node workers need no gang",
			spec:   "roles: [{name: w, componentType: worker, replicas: 3, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
		},
		"QueueWithoutGang": {
			reason: "a queue that nothing is put into causes a warning",
			spec:   "schedulingStrategy: {queueName: mine}\nroles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
			input:  "allowedQueues: [mine]",
			warns:  ignored("queueName"),
		},
		"FieldsWithoutGang": {
			reason: "one node and no pair need no gang, so nothing of it has an effect",
			spec:   "schedulingStrategy: {gang: {mode: MinimumFirst, minRoleReplicas: {w: 1}, networkTopology: {mode: soft}, priorityClassName: top}}\nroles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
			input:  "allowedPriorityClassNames: [top]",
			warns:  ignored("gang.mode", "gang.minRoleReplicas", "gang.networkTopology", "gang.priorityClassName"),
		},
		"FieldsOfModeNone": {
			reason: "a user who wants no gang may say so, but nothing else of it",
			spec:   story4 + "schedulingStrategy: {gang: {mode: None, minRoleReplicas: {prefill: 1}, networkTopology: {mode: soft}, priorityClassName: top}}",
			input:  "allowedPriorityClassNames: [top]",
			warns:  ignored("gang.minRoleReplicas", "gang.networkTopology", "gang.priorityClassName"),
		},
		"ModeNoneWithoutGang": {
			reason: "that is what it gets",
			spec:   "schedulingStrategy: {gang: {mode: None, minRoleReplicas: {}}}\nroles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
		},
		"PlatformGangOfNone": {
			reason: "the user has named nothing",
			spec:   "roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
			input:  "defaults: {schedulingStrategy: {gang: {mode: MinimumFirst, priorityClassName: low}}}",
		},
		"ScaledToZero": {
			reason: "no replicas, no PodGroup",
			spec:   "roles: [{name: w, componentType: worker, replicas: 0, multinode: {nodeCount: 2}, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
		},
		"RoleScaledToZero": {
			reason: "a role without replicas has no keys",
			spec:   strings.Replace(story4, "replicas: 1", "replicas: 0", 1),
			want:   []gang{{Name: "svc", MinMember: 8, Tasks: map[string]int32{"decode-0": 4, "decode-1": 4}, GPUs: "64"}},
		},
		"WorkerInPD": {
			reason: "a worker role in a prefill/decode service is part of the gang",
			spec:   story4 + "- {name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}",
			want:   []gang{{Name: "svc", MinMember: 11, Tasks: map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 4, "w-0": 1}, GPUs: "80"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, tc.input)
			if err != nil {
				t.Fatal(err)
			}
			var got []gang
			for _, g := range p.Clusters[0].Groups {
				for _, r := range g.Replicas {
					inGang := r.PodGroup != "" && g.PodGroup != nil && r.PodGroup == g.PodGroup.Name && r.Role.Scheduler == SchedulerVolcano
					if (g.PodGroup != nil) != inGang {
						t.Errorf("%s: replica %s: PodGroup %q, scheduler %q", tc.reason, r.Name, r.PodGroup, r.Role.Scheduler)
					}
				}
				if g.PodGroup == nil {
					continue
				}
				gpus := g.PodGroup.MinResources["nvidia.com/gpu"]
				got = append(got, gang{
					Name: g.PodGroup.Name, MinMember: g.PodGroup.MinMember, Tasks: g.PodGroup.MinTaskMember,
					SubGroups: g.PodGroup.SubGroups, GPUs: gpus.String(), Queue: g.PodGroup.Queue, Priority: g.PodGroup.PriorityClassName,
				})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			ofGang := slices.DeleteFunc(slices.Clone(p.Warnings), func(w Warning) bool { return !strings.HasPrefix(w.Path, "spec.schedulingStrategy.") })
			if diff := cmp.Diff(tc.warns, ofGang, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: warnings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGangOfHeld shows what the PodGroup says of resources while replicas keep the pods of a former template.
func TestGangOfHeld(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		held   []string
		want   string
	}{
		"None":             {reason: "All pods have the requests of the newest template.", spec: story4, want: "80"},
		"Held":             {reason: "What the pods of a former template request is not known, and may be less.", spec: story4, held: []string{"decode-1"}},
		"HeldMinimumFirst": {reason: "The same for subgroups.", spec: story4 + "schedulingStrategy: {gang: {mode: MinimumFirst}}", held: []string{"prefill-0"}},
		"HeldNotCounted":   {reason: "One beyond the minimum counts in neither number.", spec: story4 + "schedulingStrategy: {gang: {minRoleReplicas: {prefill: 1, decode: 1}}}", held: []string{"decode-1"}, want: "48"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, "")
			if err != nil {
				t.Fatal(err)
			}
			c := &p.Clusters[0]
			g := &c.Groups[0]
			for i := range g.Replicas {
				g.Replicas[i].Held = slices.Contains(tc.held, g.Replicas[i].Task)
			}
			c.addGang(p, g, p.gang)
			got := ""
			if gpus, has := g.PodGroup.MinResources["nvidia.com/gpu"]; has {
				got = gpus.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if len(tc.held) > 0 && tc.want == "" && g.PodGroup.MinResources != nil {
				t.Errorf("%s got %v", tc.reason, g.PodGroup.MinResources)
			}
		})
	}
}

func TestScheduler(t *testing.T) {
	worker := "roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]\n"
	cases := map[string]struct {
		reason  string
		spec    string
		input   string
		want    string
		refused string
	}{
		"Gang":             {reason: "a gang is Volcano's", spec: story4, want: "volcano"},
		"GangVolcano":      {reason: "and may say so", spec: story4 + "schedulingStrategy: {schedulerName: volcano}", want: "volcano"},
		"GangOther":        {reason: "another scheduler would not see the PodGroup", spec: story4 + "schedulingStrategy: {schedulerName: kueue}", refused: `spec.schedulingStrategy.schedulerName: Invalid value: "kueue"`},
		"GangTemplate":     {reason: "nor would one in a template", spec: strings.Replace(story4, "{spec: {", "{spec: {schedulerName: x, ", 1), refused: `spec.roles[0].template.spec.schedulerName: Invalid value: "x"`},
		"GangPlatform":     {reason: "the platform's default is for pods in no gang", spec: story4, input: "defaults: {schedulingStrategy: {schedulerName: kueue}}", want: "volcano"},
		"NoGang":           {reason: "nothing to gang: the service's own", spec: worker + "schedulingStrategy: {schedulerName: kueue}", want: "kueue"},
		"NoGangPlatform":   {reason: "nothing to gang: the platform's", spec: worker, input: "defaults: {schedulingStrategy: {schedulerName: kueue}}", want: "kueue"},
		"NoGangDefault":    {reason: "nothing to gang: the cluster's", spec: worker, want: ""},
		"NoGangTemplate":   {reason: "a template's own scheduler stays", spec: strings.Replace(worker, "{spec: {", "{spec: {schedulerName: x, ", 1), input: "defaults: {schedulingStrategy: {schedulerName: kueue}}", want: ""},
		"ModeNoneAnyOther": {reason: "mode None takes any scheduler", spec: story4 + "schedulingStrategy: {schedulerName: kueue, gang: {mode: None}}", want: "kueue"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, tc.input)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("%s: want error with %q, got %v", tc.reason, tc.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range p.Roles {
				if r.Scheduler != tc.want {
					t.Errorf("%s: role %s: want scheduler %q, got %q", tc.reason, r.Name, tc.want, r.Scheduler)
				}
			}
		})
	}
}

func TestDeferForGang(t *testing.T) {
	p, err := build(t, story4, "")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 4}
	cases := map[string]struct {
		reason   string
		view     PodGroupView
		observed []string
		want     []string
	}{
		"FirstCreation":  {reason: "everything comes at once"},
		"Grown":          {reason: "what the PodGroup does not count waits", view: PodGroupView{Observed: true, MinTaskMember: map[string]int32{"prefill-0": 2, "decode-0": 4}}, observed: []string{"prefill/0", "decode/0"}, want: []string{"leaderworkerset/decode/1"}},
		"Counted":        {reason: "what it counts comes", view: PodGroupView{Observed: true, MinTaskMember: all}},
		"NeverTakenAway": {reason: "what exists stays, counted or not", view: PodGroupView{Observed: true}, observed: []string{"prefill/0", "decode/0", "decode/1"}},
		"OtherSize":      {reason: "a new replica waits for its own size", view: PodGroupView{Observed: true, MinTaskMember: map[string]int32{"prefill-0": 2, "decode-0": 4, "decode-1": 2}}, observed: []string{"prefill/0", "decode/0"}, want: []string{"leaderworkerset/decode/1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deferred := p.DeferForGang(func(key.Key) PodGroupView { return tc.view }, func(k key.Key) bool {
				for _, o := range tc.observed {
					if k.String() == "leaderworkerset/"+o {
						return true
					}
				}
				return false
			})
			var got []string
			for _, d := range deferred {
				got = append(got, d.Key.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGangWaitsForCapacity proves that a gang without any reserved replicas is missing, and not absent because the service has none.
func TestGangWaitsForCapacity(t *testing.T) {
	const placed = story4 + "placement: {policy: Failover, clusterSelector: {matchLabels: {region: us}}}\n"
	cases := map[string]struct {
		reason   string
		spec     string
		clusters []*v1alpha1.InferenceCluster
		// runs are the replicas that run in cluster east.
		runs []key.ReplicaID
		want map[string]string
	}{
		"Requested":  {reason: "The capacity is asked for.", spec: placed, clusters: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")}, want: map[string]string{"cluster/east/podgroup": DeferredForCapacity}},
		"NoCluster":  {reason: "No cluster takes it.", spec: placed, want: map[string]string{"podgroup": DeferredForCluster}},
		"Groups":     {reason: "Each group is a gang.", spec: placed + "replicas: 2\n", clusters: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")}, want: map[string]string{"cluster/east/podgroup/0": DeferredForCapacity, "cluster/east/podgroup/1": DeferredForCapacity}},
		"Runs":       {reason: "Its PodGroup is rendered.", spec: placed, clusters: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")}, runs: []key.ReplicaID{"prefill/0", "decode/0", "decode/1"}},
		"RunsInPart": {reason: "What waits joins the gang that runs.", spec: placed, clusters: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")}, runs: []key.ReplicaID{"prefill/0", "decode/0"}},
		"NoGang":     {reason: "Pods that start alone have no PodGroup.", spec: placed + "schedulingStrategy: {gang: {mode: None}}\n", clusters: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, in := &v1alpha1.InferenceServiceSpec{}, &inputv1alpha1.Input{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), s); err != nil {
				t.Fatal(err)
			}
			v1alpha1.Default(s)
			inputv1alpha1.Default(in)
			snapshot := schedulingtest.Snapshot(tc.clusters...)
			if len(tc.runs) > 0 {
				snapshot.States["east"] = schedulingtest.Existing(tc.runs...)
				snapshot.Request = schedulingtest.RequestedAs("east", "east")
			}
			p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid", Grouped: s.Replicas != nil}, s, in, snapshot, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got map[string]string
			for _, d := range p.Deferred {
				if d.Key.Kind != key.PodGroup {
					continue
				}
				if got == nil {
					got = map[string]string{}
				}
				got[d.Key.String()] = d.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGangOfOthersStays proves that the PodGroup of replicas that run is not deferred. A rollout's extra replica may run where those that
// are wanted wait.
func TestGangOfOthersStays(t *testing.T) {
	at := key.New("east", key.PodGroup)
	waits := Replica{Key: key.New("east", key.LeaderWorkerSet, "worker/0")}
	cases := map[string]struct {
		reason string
		groups []Group
		want   []Deferred
	}{
		"NoneRuns":  {reason: "Nothing is in the gang so far.", want: []Deferred{{Key: at, Reason: DeferredForCapacity, Message: "full"}}},
		"ExtraRuns": {reason: "Pods name the PodGroup, which would be deleted.", groups: []Group{{PodGroup: &PodGroup{Key: at}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := []Deferred{{Key: waits.Key, Reason: DeferredForCapacity, Message: "full"}}
			p := &Plan{
				gang:     gangPolicy{mode: v1alpha1.GangAllOrNothing},
				Clusters: []ClusterPlan{{Target: scheduling.Target{Cluster: "east"}, Groups: tc.groups, Pending: []Replica{waits}}},
			}
			p.deferPending(&p.Clusters[0], DeferredForCapacity, "full")
			if diff := cmp.Diff(append(first, tc.want...), p.Deferred); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeferForSubGroup(t *testing.T) {
	p, err := build(t, story4+"schedulingStrategy: {gang: {mode: MinimumFirst}}", "")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		view   PodGroupView
		want   int
	}{
		"FirstCreation": {reason: "everything comes at once"},
		"Counted":       {reason: "a role that the PodGroup has a policy for grows freely", view: PodGroupView{Observed: true, SubGroupSizes: map[string]int32{"prefill": 2, "decode": 4}}},
		"NewRole":       {reason: "a role without a policy waits", view: PodGroupView{Observed: true, SubGroupSizes: map[string]int32{"prefill": 2}}, want: 2},
		"OtherSize":     {reason: "and one whose policy has another size", view: PodGroupView{Observed: true, SubGroupSizes: map[string]int32{"prefill": 1, "decode": 4}}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deferred := p.DeferForGang(func(key.Key) PodGroupView { return tc.view }, func(key.Key) bool { return false })
			if len(deferred) != tc.want {
				t.Errorf("%s: want %d deferred, got %v", tc.reason, tc.want, deferred)
			}
		})
	}
}

func TestDeferForGangLeavesTheRestAlone(t *testing.T) {
	for name, spec := range map[string]string{
		"BeyondMinimum": story4 + "schedulingStrategy: {gang: {minRoleReplicas: {prefill: 1, decode: 1}}}",
		"NoGang":        "roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, spec, "")
			if err != nil {
				t.Fatal(err)
			}
			view := PodGroupView{Observed: true, MinTaskMember: map[string]int32{"prefill-0": 2, "decode-0": 4}}
			if deferred := p.DeferForGang(func(key.Key) PodGroupView { return view }, func(key.Key) bool { return false }); len(deferred) > 0 {
				t.Errorf("only what the PodGroup has to count waits for it: %v", deferred)
			}
		})
	}
}

func TestNames(t *testing.T) {
	service := func(grouped bool) naming.Identity {
		return naming.Identity{Name: "a", Namespace: "team", Grouped: grouped}
	}
	worker := "roles: [{name: b-c, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]\n"
	cases := map[string]struct {
		reason string
		s      naming.Identity
		t      scheduling.Target
		want   string
	}{
		"Own":     {reason: "in the tenant's namespace names are the seeds'", s: service(false), t: scheduling.Target{Namespace: "team"}, want: "a-b-c-1"},
		"Grouped": {reason: "with the group in front", s: service(true), t: scheduling.Target{Namespace: "team"}, want: "a-0-b-c-1"},
		"Shared":  {reason: "in a shared namespace tenants stay apart", s: service(false), t: scheduling.Target{Cluster: "x", Namespace: "shared"}, want: "a-814f390df3-b-c-1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := workloadName(baseName(tc.s, tc.t), tc.s, 0, "b-c", 1)
			if got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
	p, err := build(t, worker+"replicas: 2", "")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, g := range p.Clusters[0].Groups {
		for _, r := range g.Replicas {
			keys = append(keys, r.Key.String()+" "+r.Name)
		}
	}
	want := []string{
		"leaderworkerset/0/b-c/0 svc-0-b-c-0", "leaderworkerset/0/b-c/1 svc-0-b-c-1",
		"leaderworkerset/1/b-c/0 svc-1-b-c-0", "leaderworkerset/1/b-c/1 svc-1-b-c-1",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys and names of groups: -want, +got:\n%s", diff)
	}
}
