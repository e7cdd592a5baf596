package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestStopFirst shows what is advised for each kind of role, as long as there is a trace of its scaling.
func TestStopFirst(t *testing.T) {
	const static, scaled = "set replicas to 0 first", "set replicas to 0 first, in place of scaling"
	cases := map[string]struct {
		reason string
		roles  []string
		target bool
		status string
		want   string
	}{
		"Static":         {reason: "The user sets the number.", roles: []string{"static"}, want: static},
		"Scaled":         {reason: "The InferenceRole has it.", roles: []string{"w"}, want: scaled},
		"Any":            {reason: "One of several is enough.", roles: []string{"static", "w"}, want: scaled},
		"None":           {reason: "There is nothing to say of no role.", want: static},
		"Removed":        {reason: "It had no scaling.", roles: []string{"removed"}, status: "{components: {removed: {desiredReplicas: 1}}}", want: static},
		"RemovedScaled":  {reason: "Its InferenceRole is still there.", roles: []string{"removed"}, target: true, want: scaled},
		"RemovedBoth":    {reason: "Somebody has deleted that.", roles: []string{"removed"}, status: "{components: {removed: {scaling: {}}}}", want: scaled},
		"ScaledNoLonger": {reason: "The edit takes scaling away, and sets a number.", roles: []string{"static"}, status: "{components: {static: {scaling: {}}}}", want: static},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{}}, Resources: map[string]*fnv1.Resource{}}
			if tc.status != "" {
				observed.Composite.Resource = fixture.YAML(t, "{status: "+tc.status+"}")
			}
			if tc.target {
				observed.Resources[key.ScaleTarget("removed").String()] = &fnv1.Resource{Resource: fixture.YAML(t, "{kind: InferenceRole}")}
			}
			p := &plan.Plan{Roles: []*plan.Role{{Name: "static"}, {Name: "w", Type: "worker"}}, Scales: map[string]*plan.Scale{"w": {}}}
			r := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: observed}), p)
			if diff := cmp.Diff(tc.want, r.stopFirst("replicas", tc.roles...)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
