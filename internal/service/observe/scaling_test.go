package observe

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestScalingLost shows which number of replicas a role has whose InferenceRole is missing.
func TestScalingLost(t *testing.T) {
	const inFleet = "{clusters: [{name: east}, {name: west}], components: {w: {desiredReplicas: 6"
	type want struct {
		Requested, Replicas int32
		Reason              string
	}
	cases := map[string]struct {
		reason string
		placed bool
		status string
		// running is how many replicas exist.
		running int
		want    want
	}{
		"Placed":        {reason: "A part of the replicas may still wait for capacity.", placed: true, status: inFleet + ", scaling: {requestedReplicas: 7}}}}", running: 4, want: want{Requested: 7, Replicas: 7}},
		"Sleeps":        {reason: "A role that nobody uses stays asleep.", placed: true, status: inFleet + ", scaling: {requestedReplicas: 0}}}}", want: want{}},
		"Replicated":    {reason: "Each cluster runs the number, and the status has the sum.", placed: true, status: inFleet + ", scaling: {requestedReplicas: 3}}}}", running: 3, want: want{Requested: 3, Replicas: 3}},
		"Older":         {reason: "A status may be older than what runs, and what runs may serve.", placed: true, status: inFleet + ", scaling: {requestedReplicas: 0}}}}", running: 2, want: want{Requested: 2, Replicas: 2}},
		"LeftFleet":     {reason: "The status is from the time in the fleet.", status: inFleet + ", scaling: {requestedReplicas: 3}}}}", running: 2, want: want{Requested: 3, Replicas: 3}},
		"Sum":           {reason: "A role that had no scaling has a sum, which is for no cluster.", placed: true, status: inFleet + "}}}", running: 2, want: want{Requested: 2, Replicas: 2}},
		"NoStatus":      {reason: "Nothing is known, so it does not sleep.", placed: true, status: "{}", want: want{Requested: 1, Replicas: 1}},
		"Nonsense":      {reason: "That is no number of replicas.", placed: true, status: inFleet + ", scaling: {requestedReplicas: -1}}}}", running: 2, want: want{Requested: 2, Replicas: 2}},
		"Above":         {reason: "Limits hold.", placed: true, status: inFleet + ", scaling: {requestedReplicas: 99}}}}", want: want{Requested: 8, Replicas: 8}},
		"Here":          {reason: "Without a placement it is the same.", status: "{components: {w: {desiredReplicas: 5, scaling: {requestedReplicas: 5}}}}", running: 4, want: want{Requested: 5, Replicas: 5}},
		"HereNoScaling": {reason: "It had replicas, of which one is just being made anew.", status: "{components: {w: {desiredReplicas: 5}}}", running: 4, want: want{Requested: 5, Replicas: 5}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{{Name: "w", Scaling: &v1alpha1.RoleScaling{MinReplicas: ptr.To[int32](0), MaxReplicas: ptr.To[int32](8)}}}}
			cluster := ""
			if tc.placed {
				spec.Placement, cluster = &v1alpha1.Placement{}, "cluster/east/"
			}
			raw := &fnv1.RunFunctionRequest{Observed: &fnv1.State{
				Composite: &fnv1.Resource{Resource: fixture.YAML(t, "{status: "+tc.status+"}")}, Resources: map[string]*fnv1.Resource{},
			}}
			for i := range tc.running {
				raw.Observed.Resources[fmt.Sprintf("%sleaderworkerset/w/%d", cluster, i)] = &fnv1.Resource{Resource: &structpb.Struct{}}
			}
			s := Scaling(incoming.Of(raw), spec)["w"]
			if diff := cmp.Diff(tc.want, want{s.Requested, s.Replicas, s.Reason}); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if s.Written == nil || *s.Written != s.Requested {
				t.Errorf("the InferenceRole gets %v, and the role has %d", s.Written, s.Requested)
			}
		})
	}
}

// maxPerRole is how many bytes reading the scaling of a service may allocate for each role and for each object.
const maxPerRole = 4000

// TestScalingAllocates shows that a service with very many roles and replicas is read in proportion to both. It is
// refused, but only after that.
func TestScalingAllocates(t *testing.T) {
	const roles, objects = 1000, 800
	raw := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{}}, Resources: map[string]*fnv1.Resource{}}}
	for i := range objects {
		raw.Observed.Resources[fmt.Sprintf("leaderworkerset/r0/%d", i)] = &fnv1.Resource{Resource: &structpb.Struct{}}
	}
	scaled, static := &v1alpha1.InferenceServiceSpec{}, &v1alpha1.InferenceServiceSpec{}
	var unnumbered []int
	for i := range roles {
		name := fmt.Sprintf("r%d", i)
		scaled.Roles = append(scaled.Roles, v1alpha1.Role{Name: name, Scaling: &v1alpha1.RoleScaling{}})
		static.Roles = append(static.Roles, v1alpha1.Role{Name: name})
		raw.Observed.Resources["inferencerole/"+name] = &fnv1.Resource{Resource: &structpb.Struct{Fields: map[string]*structpb.Value{"kind": structpb.NewStringValue("InferenceRole")}}}
		unnumbered = append(unnumbered, i)
	}
	req := incoming.Of(raw)
	for name, f := range map[string]func() int{
		"Scaling":     func() int { return int(Scaling(req, scaled)["r0"].Running) },
		"ScalingEnds": func() int { return len(ScalingEnds(req, static, unnumbered)) },
	} {
		t.Run(name, func(t *testing.T) {
			f() // What is allocated once does not count.
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n := f()
			runtime.ReadMemStats(&after)
			if want := map[string]int{"Scaling": objects, "ScalingEnds": roles}[name]; n != want {
				t.Errorf("it found %d, want %d", n, want)
			}
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(maxPerRole*(2*roles+objects)); got > most {
				t.Errorf("it allocated %d bytes, and may allocate %d", got, most)
			}
		})
	}
}
