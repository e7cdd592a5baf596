package capacity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

// TestTaintsOf proves which taints of a node keep pods from it.
func TestTaintsOf(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	added := taint("dedicated", "b", corev1.TaintEffectNoSchedule)
	added.TimeAdded = &metav1.Time{}
	cases := map[string]struct {
		reason string
		taints []corev1.Taint
		want   []corev1.Taint
	}{
		"None":    {reason: "Most nodes have none."},
		"Prefers": {reason: "Such a taint keeps no pod away.", taints: []corev1.Taint{taint("slow", "", corev1.TaintEffectPreferNoSchedule)}},
		"Resource": {
			reason: "It keeps away pods that request none of it.", taints: []corev1.Taint{taint("nvidia.com/gpu", "present", corev1.TaintEffectNoSchedule)},
			want: []corev1.Taint{taint("nvidia.com/gpu", "present", corev1.TaintEffectNoSchedule)},
		},
		"Temporary": {
			reason: "The autoscaler is about to delete the node.", taints: []corev1.Taint{taint("ToBeDeletedByClusterAutoscaler", "1", corev1.TaintEffectNoSchedule)},
			want: []corev1.Taint{taint("ToBeDeletedByClusterAutoscaler", "1", corev1.TaintEffectNoSchedule)},
		},
		"Sorted": {
			reason: "Nodes with the same taints are one class, in whatever order and whenever they got them.",
			taints: []corev1.Taint{taint("dedicated", "b", corev1.TaintEffectNoExecute), taint("z", "", corev1.TaintEffectNoSchedule), added, taint("dedicated", "a", corev1.TaintEffectNoSchedule), taint("z", "", corev1.TaintEffectNoSchedule)},
			want:   []corev1.Taint{taint("dedicated", "a", corev1.TaintEffectNoSchedule), taint("dedicated", "b", corev1.TaintEffectNoExecute), taint("dedicated", "b", corev1.TaintEffectNoSchedule), taint("z", "", corev1.TaintEffectNoSchedule)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, capacity.TaintsOf(tc.taints)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTolerationsOf proves which tolerations of a pod count.
func TestTolerationsOf(t *testing.T) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	team := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "b"}
	cases := map[string]struct {
		reason string
		of     []corev1.Toleration
		want   []corev1.Toleration
	}{
		"None":     {reason: "Most pods have none."},
		"Prefers":  {reason: "Such taints do not count either.", of: []corev1.Toleration{{Key: "slow", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}}},
		"Operator": {reason: "Equal is the default.", of: []corev1.Toleration{{Key: "dedicated", Value: "b"}}, want: []corev1.Toleration{team}},
		"Seconds":  {reason: "How long it stays does not say where it goes.", of: []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}}, want: []corev1.Toleration{all}},
		"Sorted":   {reason: "Neither order nor repetition says anything.", of: []corev1.Toleration{team, all, team}, want: []corev1.Toleration{all, team}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, capacity.TolerationsOf(tc.of)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTolerates proves which pods fit onto a node with some taints, by Kubernetes' own rules.
func TestTolerates(t *testing.T) {
	cases := map[string]struct {
		reason     string
		taint      corev1.Taint
		toleration corev1.Toleration
		want       bool
	}{
		"Equal":       {reason: "Key, value and effect are the same.", taint: corev1.Taint{Key: "k", Value: "v", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Equal", Value: "v", Effect: "NoSchedule"}, want: true},
		"OtherValue":  {reason: "It is for another team.", taint: corev1.Taint{Key: "k", Value: "v", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Equal", Value: "w"}},
		"AnyValue":    {reason: "Exists is for all values.", taint: corev1.Taint{Key: "k", Value: "v", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Exists"}, want: true},
		"OtherEffect": {reason: "NoExecute keeps pods away, too.", taint: corev1.Taint{Key: "k", Effect: "NoExecute"}, toleration: corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoSchedule"}},
		"All":         {reason: "Without a key, it is for all taints.", taint: corev1.Taint{Key: "k", Value: "v", Effect: "NoExecute"}, toleration: corev1.Toleration{Operator: "Exists"}, want: true},
		"Less":        {reason: "A cluster that lets pods compare has the gate on.", taint: corev1.Taint{Key: "k", Value: "5", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Gt", Value: "3"}, want: true},
		"NoNumber":    {reason: "There is nothing to compare.", taint: corev1.Taint{Key: "k", Value: "v", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Gt", Value: "3"}},
		"Device":      {reason: "Kubernetes has pods tolerate the names of their devices.", taint: corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Exists"}, want: true},
		"OtherDevice": {reason: "The pod requests none of it.", taint: corev1.Taint{Key: "amd.com/gpu", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Exists"}},
		"CPU":         {reason: "All pods request it, so nothing has them tolerate it.", taint: corev1.Taint{Key: "cpu", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "Exists"}},
		"Evicts":      {reason: "What Kubernetes adds has the effect NoSchedule alone.", taint: corev1.Taint{Key: "nvidia.com/gpu", Effect: "NoExecute"}, toleration: corev1.Toleration{Key: "k", Operator: "Exists"}},
		"Nonsense":    {reason: "Whoever may write a request may write anything.", taint: corev1.Taint{Key: "k", Value: "v", Effect: "NoSchedule"}, toleration: corev1.Toleration{Key: "k", Operator: "x", Value: "v"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := capacitytest.Nodes(1, 8, 64)
			nodes.Taints = []corev1.Taint{tc.taint}
			free := capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", nodes)}}
			pod := capacitytest.Requirements(1, 1)
			pod.Tolerations = []corev1.Toleration{tc.toleration}
			if got, why := free.Allocate([]capacity.PodSet{{Requirements: pod, Count: 1}}); got != tc.want {
				t.Errorf("%s\nwant %t, got %t: %s", tc.reason, tc.want, got, why)
			}
		})
	}
}

// TestCovers proves which pods take the place of others.
func TestCovers(t *testing.T) {
	pod := func(gpus int64, teams ...string) *capacity.PodRequirements {
		return capacitytest.Tolerating(capacitytest.Requirements(gpus, 1), teams...)
	}
	cases := map[string]struct {
		reason   string
		of, with *capacity.PodRequirements
		want     bool
	}{
		"Same":     {reason: "They are alike.", of: pod(4, "x"), with: pod(4, "x"), want: true},
		"Less":     {reason: "It requests less.", of: pod(4), with: pod(2), want: true},
		"More":     {reason: "It requests more.", of: pod(4), with: pod(8)},
		"Selects":  {reason: "It is for other nodes.", of: pod(4), with: capacitytest.Requirements(4, 1, "a")},
		"Tolerant": {reason: "It fits wherever the other does, and elsewhere.", of: pod(4, "x"), with: pod(4, "x", "y"), want: true},
		"Former":   {reason: "A grant of an earlier version has no tolerations.", of: pod(4), with: pod(4, "x"), want: true},
		"Removed":  {reason: "It does not fit onto the nodes of x any more.", of: pod(4, "x"), with: pod(4)},
		"Another":  {reason: "Nor does this one.", of: pod(4, "x"), with: pod(4, "y")},
		"NoDevice": {reason: "It does not tolerate the name of the device any more.", of: pod(4), with: pod(0)},
		"NoneHad":  {reason: "Neither did the other.", of: capacitytest.Requirements(0, 2), with: pod(0), want: true},
		"FewerOf": {
			reason: "It still requests a device, and few nodes have taints of another one's name.", want: true,
			of: &capacity.PodRequirements{Requests: capacity.Resources{capacitytest.GPU: 4000, "rdma/hca": 1000}}, with: &capacity.PodRequirements{Requests: capacity.Resources{capacitytest.GPU: 4000}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.Covers(tc.with); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestKeyOfFormerVersions holds the text of pods without tolerations. Hashes of it are on what runs, and other ones would
// have every replica granted anew.
func TestKeyOfFormerVersions(t *testing.T) {
	pod := capacitytest.Requirements(8, 1, "a")
	if diff := cmp.Diff("3:cpu=1000,14:nvidia.com/gpu=8000,/4:pool1:a", pod.Key()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	texts := map[string]string{}
	for name, r := range map[string]*capacity.PodRequirements{
		"none": pod, "x": capacitytest.Tolerating(pod, "x"), "y": capacitytest.Tolerating(pod, "y"), "both": capacitytest.Tolerating(pod, "x", "y"),
	} {
		if other, taken := texts[r.Key()]; taken {
			t.Errorf("%s and %s have the same key", name, other)
		}
		texts[r.Key()] = name
	}
}

// TestByTaints proves that the nodes of a pool are estimated by their taints.
func TestByTaints(t *testing.T) {
	pool := capacitytest.Pool("a", capacitytest.Nodes(2, 8, 64), capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "x"))
	free := capacity.Free{Pools: []capacity.Pool{pool}}
	free.ForceAllocate([]capacity.PodSet{{Requirements: capacitytest.Requirements(4, 32), Count: 1}})
	got := map[string]capacity.Estimate{}
	for _, part := range free.Pools[0].ByTaints() {
		got[part.Name] = part.Estimate()
		if diff := cmp.Diff(pool.Node(), part.Node()); diff != "" {
			t.Errorf("the node of %s is not that of the pool: -want +got:\n%s", part.Name, diff)
		}
	}
	if diff := cmp.Diff(map[string]capacity.Estimate{"a": {1, 3, 6, 12}, "a dedicated=x:NoSchedule": {1, 2, 4, 8}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Nodes for others are no measure of what is free here.
	unequal := capacitytest.Pool("a", capacitytest.Nodes(1, 0, 64), capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "x"))
	if diff := cmp.Diff(capacity.Estimate{1, 2, 4, 8}, unequal.ByTaints()[0].Estimate()); diff != "" {
		t.Errorf("nodes without devices beside nodes with taints: -want +got:\n%s", diff)
	}
	empty := capacitytest.Pool("a")
	if diff := cmp.Diff([]capacity.Pool{empty}, empty.ByTaints()); diff != "" {
		t.Errorf("a pool without nodes: -want +got:\n%s", diff)
	}
	var all []capacity.NodeClass
	for i := range 100 {
		all = append(all, capacitytest.Tainted(capacitytest.Nodes(int64(1+i%2), 8, 64), string(rune('A'+i))))
	}
	many := capacitytest.Pool("a", all...)
	if got := len(many.ByTaints()); got != 16 {
		t.Errorf("there are %d parts, want 16", got)
	}
}
