package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestCheckLists(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		want   []string
	}{
		"Good": {reason: "what apply takes", doc: `{spec: {containers: [{name: a, env: [{name: A}, {name: B}], ports: [{containerPort: 1}, {containerPort: 1, protocol: UDP}], args: [x, x]}, {name: b}]}}`},
		"Null": {reason: "a null element fails the apply", doc: `{spec: {containers: [null, {name: a, args: [x, null]}]}}`, want: []string{
			`t.spec.containers[0]: Required value: must not be null: it is an element of a list`,
			`t.spec.containers[1].args[1]: Required value: must not be null: it is an element of a list`,
		}},
		"NoKey": {reason: "so does one without its key", doc: `{spec: {containers: [{image: i}], volumes: [{name: ""}]}}`, want: []string{
			`t.spec.containers[0].name: Required value: must be set: it identifies the elements of this list`,
			`t.spec.volumes[0].name: Required value: must be set: it identifies the elements of this list`,
		}},
		"Twice": {reason: "and one that comes twice, which a plain Pod would take", doc: `{spec: {containers: [{name: a, env: [{name: A}, {name: A}], ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]}}`, want: []string{
			`t.spec.containers[0].env[1]: Duplicate value: "A"`,
			`t.spec.containers[0].ports[1]: Duplicate value: "1/TCP"`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range checkLists(structpb.NewStructValue(document(t, tc.doc)), field.NewPath("t")) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
