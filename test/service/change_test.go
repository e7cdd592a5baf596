package service

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestScaling shows that a change of the number of replicas changes no existing replica.
func TestScaling(t *testing.T) {
	fn := function.Start(t)
	opts := proto.MarshalOptions{Deterministic: true}
	bytes := func(replicas int) map[string]string {
		out := map[string]string{}
		rsp := fn.Run(t, fixture.Request(t, fixture.Service(strings.Replace(fixture.TwoNodes, "replicas: 2", fmt.Sprintf("replicas: %d", replicas), 1)), ""))
		for key, r := range rsp.GetDesired().GetResources() {
			b, err := opts.Marshal(r.GetResource())
			if err != nil {
				t.Fatal(err)
			}
			out[key] = string(b)
		}
		return out
	}
	two, three := bytes(2), bytes(3)
	for key, was := range two {
		changes := key == "podgroup" || key == "poddisruptionbudget/role/w"
		if is := three[key]; (is == was) == changes {
			t.Errorf("%s: want only the PodGroup and the PodDisruptionBudget to change with the number of replicas", key)
		}
	}
	if three["leaderworkerset/w/2"] == "" || two["leaderworkerset/w/2"] != "" {
		t.Error("want a third replica only with three")
	}
}

func TestRegrouped(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
	fixture.Observe(req, fn.Run(t, req))
	req.Observed.Composite.Resource = fixture.YAML(t, fixture.Service(fixture.TwoNodes+"replicas: 1"))
	if got := fixture.Fatals(fn.Run(t, req)); !strings.Contains(got, "spec.replicas: Forbidden") {
		t.Errorf("want a Fatal, because setting spec.replicas would rename everything, got %q", got)
	}
}

// TestClusterCannotMove shows that an entry of a placement cannot become another cluster or
// namespace. The Objects would keep their names, and the old objects would run on unowned.
func TestClusterCannotMove(t *testing.T) {
	fn := function.Start(t)
	in := func(namespace, config string) string {
		return fixture.Service(fixture.TwoNodes + "placement: {clusters: [{name: east, namespace: " + namespace + ", providerConfigRef: {name: " + config + "}}]}")
	}
	req := fixture.Request(t, in("a", "one"), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: one, namespaces: ["*"]}, {name: two, namespaces: ["*"]}]}`)
	req.RequiredResources = map[string]*fnv1.Resources{require.Configs: {}}
	fixture.Observe(req, fn.Run(t, req))
	if got := fixture.Fatals(fn.Run(t, req)); got != "" {
		t.Fatalf("the placement is unchanged: want no Fatal, got %s", got)
	}
	for _, moved := range []string{in("b", "one"), in("a", "two")} {
		req.Observed.Composite.Resource = fixture.YAML(t, moved)
		rsp := fn.Run(t, req)
		if got := fixture.Fatals(rsp); !strings.Contains(got, `spec.placement.clusters[east]: Invalid value: "east": runs with another namespace or providerConfigRef`) {
			t.Errorf("want a Fatal, got %q", got)
		}
		if got := fixture.Condition(rsp, "Accepted"); got != "FALSE InvalidSpec" {
			t.Errorf("the spec is invalid: want Accepted FALSE InvalidSpec, got %s", got)
		}
	}
}
