package observe

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

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
