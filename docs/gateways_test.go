package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestThreeGateways proves that the YAML about the gateways of a fleet is that of an example, which
// is rendered, and that the gateways in it are those that the settings name.
func TestThreeGateways(t *testing.T) {
	t.Chdir("..")
	const dir = "example/fleet-three-gateways/"
	shown := strings.Builder{}
	for _, block := range blocks(read(t, "docs/placement.md"), "yaml") {
		if strings.Contains(block, "kind: Gateway\n") {
			shown.WriteString(block)
		}
	}
	var gateways []string
	got := map[string][]map[string]any{}
	for _, doc := range strings.Split(shown.String(), "\n---\n") {
		m := parse(t, doc)
		kind, _ := m["kind"].(string)
		if kind == "Gateway" {
			g := &gateway.Gateway{}
			if err := yaml.UnmarshalStrict([]byte(doc), g); err != nil {
				t.Errorf("%v\n%s", err, doc)
			}
			gateways = append(gateways, g.Namespace+"/"+g.Name)
			continue
		}
		got[kind] = append(got[kind], m)
	}
	want := map[string][]map[string]any{}
	for _, file := range []string{"xr.yaml", "input.yaml", "required.yaml"} {
		for _, doc := range strings.Split(read(t, dir+file), "\n---\n") {
			m := parse(t, doc)
			delete(m, "status") // What clusters report.
			if metadata, is := m["metadata"].(map[string]any); is {
				delete(metadata, "uid")
				delete(metadata, "creationTimestamp")
			}
			kind, _ := m["kind"].(string)
			want[kind] = append(want[kind], m)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/placement.md differs from %s: -example, +shown:\n%s", dir, diff)
	}

	in, cluster := &inputv1alpha1.Input{}, &v1alpha1.InferenceCluster{}
	for file, into := range map[string]any{"input.yaml": in, "required.yaml": cluster} {
		first, _, _ := strings.Cut(read(t, dir+file), "\n---\n")
		if err := yaml.UnmarshalStrict([]byte(first), into); err != nil {
			t.Fatal(err)
		}
	}
	fleet, entrypoint := in.Fleet.ParentRefs[0], cluster.Spec.Entrypoint.GatewayRef
	if diff := cmp.Diff([]string{fleet.Namespace + "/" + fleet.Name, entrypoint.Namespace + "/" + entrypoint.Name}, gateways); diff != "" {
		t.Errorf("the gateways: -named, +shown:\n%s", diff)
	}
}
