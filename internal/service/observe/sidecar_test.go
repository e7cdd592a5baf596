package observe

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestSidecarAccountsAreReadBack proves that the service accounts of sidecars are read of the RoleBinding, or
// of its Object's manifest.
func TestSidecarAccountsAreReadBack(t *testing.T) {
	binding := func(subjects string) string { return `{"kind": "RoleBinding", "subjects": ` + subjects + `}` }
	const two = `[{"kind": "ServiceAccount", "name": "two", "namespace": "team"}, {"kind": "ServiceAccount", "name": "one", "namespace": "team"}, {"kind": "ServiceAccount", "name": "two"}]`
	cases := map[string]struct {
		observed string
		want     []string
	}{
		"Here":    {binding(two), []string{"two", "one"}},
		"There":   {fmt.Sprintf(`{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"forProvider": {"manifest": %s}}}`, binding(two)), []string{"two", "one"}},
		"Others":  {binding(`[{"kind": "User", "name": "ann"}, {"kind": "Group", "name": "all"}, {"kind": "ServiceAccount"}]`), nil},
		"Garbled": {binding(`{"kind": "ServiceAccount", "name": "one"}`), nil},
		"None":    {`{"kind": "RoleBinding"}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(tc.observed)); err != nil {
				t.Fatal(err)
			}
			c := &plan.ClusterPlan{}
			k := c.SidecarKey(key.RoleBinding)
			state := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{k.String(): {Resource: s}}}}), &plan.Plan{})
			if diff := cmp.Diff(tc.want, state.SidecarAccounts(k)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
