package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A pair is a number of prefill replicas and one of decode replicas.
type pair struct{ p, d int32 }

// A scaledPair is a service whose prefill and decode scale together.
type scaledPair struct {
	ratio, least, most pair
	tolerance          int32
}

// run returns what runs of the replicas that are asked for.
func (s scaledPair) run(asked pair) pair {
	role := func(name string, of v1alpha1.ComponentType, least, most int32) v1alpha1.Role {
		return v1alpha1.Role{Name: name, ComponentType: of, Scaling: &v1alpha1.RoleScaling{MinReplicas: &least, MaxReplicas: &most}}
	}
	spec := &v1alpha1.InferenceServiceSpec{
		Roles: []v1alpha1.Role{
			role("p", v1alpha1.ComponentTypePrefiller, s.least.p, s.most.p),
			role("d", v1alpha1.ComponentTypeDecoder, s.least.d, s.most.d),
		},
		Scaling: &v1alpha1.ServiceScaling{Ratio: &v1alpha1.ReplicaRatio{Prefill: &s.ratio.p, Decode: &s.ratio.d, TolerancePercent: &s.tolerance}},
	}
	all := ScaleRoles(spec, map[string]ScaleView{"p": {Replicas: &asked.p}, "d": {Replicas: &asked.d}})
	return pair{all["p"].Replicas, all["d"].Replicas}
}

// each calls f with every pair that is asked for, within the limits of both roles.
func (s scaledPair) each(f func(asked pair)) {
	for p := s.least.p; p <= s.most.p; p++ {
		for d := s.least.d; d <= s.most.d; d++ {
			f(pair{p, d})
		}
	}
}

// eachPair calls f with services of many ratios and limits.
func eachPair(f func(scaledPair)) {
	for _, ratio := range []pair{{1, 1}, {1, 2}, {2, 1}, {1, 4}, {4, 1}, {2, 3}, {3, 2}, {3, 4}} {
		for _, tolerance := range []int32{0, 25, 50, 99} {
			for _, most := range []pair{{1, 8}, {3, 8}, {8, 8}, {8, 3}, {8, 1}} {
				for _, least := range []pair{{0, 0}, {1, 1}, {0, 1}, {1, 0}, {1, most.d}, {most.p, 1}} {
					f(scaledPair{ratio: ratio, tolerance: tolerance, most: most, least: least})
				}
			}
		}
	}
}

// TestBalanceSettles shows that what balance gives is what it gives again, also where only one of the roles is asked
// for what it has. So a lost InferenceRole comes back with what runs.
func TestBalanceSettles(t *testing.T) {
	eachPair(func(s scaledPair) {
		s.each(func(asked pair) {
			got := s.run(asked)
			for _, again := range []pair{got, {got.p, asked.d}, {asked.p, got.d}} {
				if then := s.run(again); then != got {
					t.Fatalf("%+v: asked for %v it runs %v, and asked for %v then it runs %v", s, asked, got, again, then)
				}
			}
		})
	})
}

// TestBalanceGrows shows that who asks for more gets no less of either role.
func TestBalanceGrows(t *testing.T) {
	eachPair(func(s scaledPair) {
		s.each(func(asked pair) {
			got := s.run(asked)
			for _, more := range []pair{{min(asked.p+1, s.most.p), asked.d}, {asked.p, min(asked.d+1, s.most.d)}} {
				if then := s.run(more); then.p < got.p || then.d < got.d {
					t.Fatalf("%+v: asked for %v it runs %v, and asked for %v it runs %v", s, asked, got, more, then)
				}
			}
		})
	})
}

// TestBalanceStaysWithin shows that a role keeps its limits, and serves where the other one does.
func TestBalanceStaysWithin(t *testing.T) {
	eachPair(func(s scaledPair) {
		s.each(func(asked pair) {
			got := s.run(asked)
			if got.p < s.least.p || got.d < s.least.d || got.p > s.most.p || got.d > s.most.d {
				t.Fatalf("%+v: asked for %v it runs %v, which is beyond its limits", s, asked, got)
			}
			if (got.p == 0) != (got.d == 0) || (got == pair{}) != (asked == pair{}) {
				t.Fatalf("%+v: asked for %v it runs %v, of which one role has nothing", s, asked, got)
			}
		})
	})
}

// TestScaleWritten shows which number the service writes on an InferenceRole.
func TestScaleWritten(t *testing.T) {
	const lowest, highest = 2, 4
	type want struct {
		Written             *int32
		Requested, Replicas int32
		Reason              string
	}
	written := func(n int32) want { return want{Written: &n, Requested: n, Replicas: n} }
	cases := map[string]struct {
		reason string
		view   ScaleView
		want   want
	}{
		"Within":       {reason: "The number stays.", view: ScaleView{Replicas: ptr.To[int32](3), Untouched: true}, want: written(3)},
		"Lowered":      {reason: "Nobody has asked for more than is allowed now.", view: ScaleView{Replicas: ptr.To[int32](6), Untouched: true}, want: written(highest)},
		"Raised":       {reason: "Nor for less.", view: ScaleView{Replicas: ptr.To[int32](1), Untouched: true}, want: written(lowest)},
		"Lost":         {reason: "What runs may be more.", view: ScaleView{Running: 6}, want: written(highest)},
		"LostDesired":  {reason: "What was wanted last may be, too.", view: ScaleView{Desired: ptr.To[int32](6), Running: 1}, want: written(highest)},
		"LostOlder":    {reason: "The status may be older than what runs.", view: ScaleView{Desired: ptr.To[int32](2), Running: 3}, want: written(3)},
		"Others":       {reason: "A number that somebody has set stays, and is allowed again later.", view: ScaleView{Replicas: ptr.To[int32](6)}, want: want{Requested: 6, Replicas: highest, Reason: v1alpha1.ScaledMaximum}},
		"OthersLowest": {reason: "The same goes for a lower one.", view: ScaleView{Replicas: ptr.To[int32](1)}, want: want{Requested: 1, Replicas: lowest, Reason: v1alpha1.ScaledMinimum}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{{Name: "w", Scaling: &v1alpha1.RoleScaling{MinReplicas: ptr.To[int32](lowest), MaxReplicas: ptr.To[int32](highest)}}}}
			s := ScaleRoles(spec, map[string]ScaleView{"w": tc.view})["w"]
			if diff := cmp.Diff(tc.want, want{s.Written, s.Requested, s.Replicas, s.Reason}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
