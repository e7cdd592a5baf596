package plan

import (
	stdcmp "cmp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// TestSidecar proves that a client's header leads the sidecar to pods of the service only,
// and that whoever runs it may see which those are.
func TestSidecar(t *testing.T) {
	const image = inputv1alpha1.DefaultSidecarImage
	cases := map[string]struct {
		reason   string
		spec     string
		in       inputv1alpha1.SidecarSettings
		want     Sidecar
		accounts []string
	}{
		"Default": {
			reason: "Protected, with the account that pods have by default.",
			spec:   `containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "default"}, accounts: []string{"default"},
		},
		"Account": {
			reason: "With the pods' own account.",
			spec:   `serviceAccountName: models, containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "models"}, accounts: []string{"models"},
		},
		"OldAccount": {
			reason: "Also where it has the name that the field had once.",
			spec:   `serviceAccount: models, containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "models"}, accounts: []string{"models"},
		},
		"Root": {
			reason: "Where containers are root, the sidecar is not.",
			spec:   `securityContext: {runAsUser: 0}, containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "default", AsRoot: true}, accounts: []string{"default"},
		},
		"Disabled": {
			reason: "The platform team may have an image that cannot do it; nobody needs rights then.",
			spec:   `containers: [{name: vllm, image: x}]`,
			in:     inputv1alpha1.SidecarSettings{SSRFProtection: inputv1alpha1.Disabled},
			want:   Sidecar{Image: image, Connector: "nixlv2", ServiceAccount: "default"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{Sidecar: tc.in}
			inputv1alpha1.Default(in)
			role := v1alpha1.Role{Name: "d", ComponentType: decoder, Template: document(t, "spec: {"+tc.spec+"}")}
			got, _, errs := planRole(1, role, loads{}, in, true)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(&tc.want, got.Sidecar); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			p := &Plan{Roles: []*Role{{Name: "p"}, got, got}}
			if diff := cmp.Diff(tc.accounts, p.SidecarAccounts(&ClusterPlan{})); diff != "" {
				t.Errorf("%s\naccounts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFormerAccounts proves that sidecars of pods that may have a former template go on reading the pool,
// and that only those of the newest one do otherwise.
func TestFormerAccounts(t *testing.T) {
	serves := rollout.State{Exists: true, Revision: "new", Serving: true}
	cases := map[string]struct {
		reason string
		state  rollout.State
		held   bool
		before []string
		want   []string
	}{
		"Serves":    {reason: "Its pods are of the newest template.", state: serves, before: []string{"one", "new"}, want: []string{"new"}},
		"Held":      {reason: "Its pods are of a former template.", state: rollout.State{Exists: true, Revision: "old", Serving: true}, held: true, before: []string{"one"}, want: []string{"one", "new"}},
		"BeingMade": {reason: "Its pods are being replaced.", state: rollout.State{Exists: true, Revision: "new"}, before: []string{"one", "new"}, want: []string{"one", "new"}},
		"PutBack":   {reason: "The order stays: the oldest come first.", state: rollout.State{Exists: true, Revision: "new"}, before: []string{"new", "one", "two"}, want: []string{"new", "one", "two"}},
		"Absent":    {reason: "It starts with the newest template.", before: []string{"one"}, want: []string{"new"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := &Role{Name: "d", Type: decoder, Sidecar: &Sidecar{PoolOnly: true, ServiceAccount: "new"}}
			r := Replica{Role: role, Held: tc.held, Updated: tc.state.Exists && !tc.held}
			p := &Plan{Roles: []*Role{role}, Clusters: []ClusterPlan{{Groups: []Group{{Replicas: []Replica{r}}}}}}
			p.keepAccounts(&RunningView{
				Replica:         func(key.Key) rollout.State { return tc.state },
				SidecarAccounts: func(key.Key) []string { return tc.before },
			})
			if diff := cmp.Diff(tc.want, p.SidecarAccounts(&p.Clusters[0])); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConnector proves that a service may name the connector that its engines speak.
func TestConnector(t *testing.T) {
	const path = "spec.roles[0].endpointPicker.kvConnector"
	cases := map[string]struct {
		reason    string
		connector string
		serving   []*Role
		want      []string
		warnings  []Warning
	}{
		"None":      {reason: "The platform team's stays.", serving: []*Role{{Sidecar: &Sidecar{Connector: "nixlv2"}}}, want: []string{"nixlv2"}},
		"Named":     {reason: "The service's wins, in each pod with a sidecar.", connector: "mooncake", serving: []*Role{{}, {Sidecar: &Sidecar{Connector: "nixlv2"}}, {Sidecar: &Sidecar{}}}, want: []string{"mooncake", "mooncake"}},
		"NoSidecar": {reason: "Nobody would notice that it has no effect.", connector: "mooncake", serving: []*Role{{}}, warnings: []Warning{{Path: path, Message: "has no effect: no pod of the service has a routing sidecar added"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			warnings := planConnector(rolePath(0), tc.connector, tc.serving)
			var got []string
			for _, r := range tc.serving {
				if r.Sidecar != nil {
					got = append(got, r.Sidecar.Connector)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nconnectors: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBootstrapPort proves that the routing sidecars name the port at which prefill offers its KV cache.
func TestBootstrapPort(t *testing.T) {
	const flag = ", --disaggregation-bootstrap-port"
	differ := func(path, here, there string) []Warning {
		return []Warning{{Path: "spec.roles[1].template.spec.containers[0]." + path, Message: "prefill offers its KV cache at port " + here + " here and at port " + there +
			" in the role p, and the routing sidecars tell decode one port for both: set the same --disaggregation-bootstrap-port in both"}}
	}
	cases := map[string]struct {
		reason       string
		first, other string
		connector    string
		want         int32
		warnings     []Warning
	}{
		"None":     {reason: "Both have the same default."},
		"Default":  {reason: "No pod changes for it.", first: flag + ", '8998'", other: flag + "=8998"},
		"Own":      {reason: "Decode would ask at another port.", first: flag + ", '9000'", other: flag + "=9000", want: 9000},
		"Last":     {reason: "The engine takes the last one.", first: flag + "=8999" + flag + "=9000", other: flag + "=9000", want: 9000},
		"Differ":   {reason: "One of the two cannot be right.", first: flag + "=9000", other: flag + "=9001", want: 9000, warnings: differ("command[4]", "9001", "9000")},
		"OneOwn":   {reason: "The other one has the default.", first: flag + "=9000", want: 9000, warnings: differ("args", "8998", "9000")},
		"OtherOwn": {reason: "The order of the roles does not matter.", other: flag + "=9000", warnings: differ("command[4]", "9000", "8998")},
		"Variable": {reason: "Nobody knows it before the engine starts.", first: flag + ", $(PORT)", other: flag + ", $(PORT)"},
		"File":     {reason: "The file may have it.", first: flag + "=9000", other: ", --config=/c.yaml", want: 9000},
		"NoPort":   {reason: "The engine refuses it.", first: flag + "=70000", other: flag + "=70000"},
		"Protocol": {reason: "Only this protocol has the port.", first: flag + "=9000", other: flag + "=9000", connector: "kvConnector: nixlv2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := func(name, kind, flags string) string {
				return `{name: ` + name + `, componentType: ` + kind + `, template: {spec: {containers: [{name: main, image: x, readinessProbe: {exec: {command: [ok]}}, command: [python3, -m, sglang.launch_server, --model-path=m` + flags + `]}]}}}`
			}
			p, err := build(t, `{roles: [`+role("p", "prefiller", tc.first)+`, `+role("q", "prefiller", tc.other)+`, `+role("d", "decoder", "")+`, {name: r, componentType: router, endpointPicker: {`+tc.connector+`}}]}`, `{}`)
			checkBootstrap(t, tc.reason, p, err, tc.want, tc.warnings)
		})
	}
}

// TestMooncakePort proves the same of vLLM's MooncakeConnector, which has its port from a variable.
func TestMooncakePort(t *testing.T) {
	const variable = "VLLM_MOONCAKE_BOOTSTRAP_PORT"
	set := func(value string) string { return "env: [{name: " + variable + ", value: " + value + "}], " }
	cases := map[string]struct {
		reason       string
		first, other string
		connector    string
		want         int32
		warnings     []Warning
	}{
		"None":    {reason: "Both have the same default."},
		"Default": {reason: "No pod changes for it.", first: set("'8998'"), other: set("'8998'")},
		"Own":     {reason: "The sidecar would ask at another port, and answer 502.", first: set("'9000'"), other: set("'9000'"), want: 9000},
		"Differ": {reason: "One of the two cannot be right.", first: set("'9000'"), want: 9000, warnings: []Warning{{Path: "spec.roles[1].template.spec.containers[0].env", Message: "prefill offers its KV cache at port 8998 here and at port 9000 in the role p, " +
			"and the routing sidecars tell decode one port for both: set the same " + variable + " in both"}}},
		"Unknown":  {reason: "Nobody knows it before the engine starts.", first: set("$(PORT)"), other: "envFrom: [{configMapRef: {name: c}}], "},
		"Protocol": {reason: "Only this protocol has the port.", first: set("'9000'"), connector: "nixlv2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := func(name, kind, env string) string {
				return `{name: ` + name + `, componentType: ` + kind + `, template: {spec: {containers: [{name: main, image: x, ` + env + `command: [vllm, serve, m, --kv-transfer-config.kv_connector=MooncakeConnector]}]}}}`
			}
			p, err := build(t, `{roles: [`+role("p", "prefiller", tc.first)+`, `+role("q", "prefiller", tc.other)+`, `+role("d", "decoder", "")+`, {name: r, componentType: router, endpointPicker: {kvConnector: `+stdcmp.Or(tc.connector, "mooncake")+`}}]}`, `{}`)
			checkBootstrap(t, tc.reason, p, err, tc.want, tc.warnings)
		})
	}
}

// checkBootstrap checks the port that the routing sidecar of the third role has, and what is said of the ports at which prefill offers its KV
// cache.
func checkBootstrap(t *testing.T, reason string, p *Plan, err error, want int32, warnings []Warning) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.Roles[2].Sidecar.BootstrapPort); diff != "" {
		t.Errorf("%s\n-want +got:\n%s", reason, diff)
	}
	var got []Warning
	for _, w := range p.Warnings {
		if strings.Contains(w.Message, "KV cache at port") {
			got = append(got, w)
		}
	}
	if diff := cmp.Diff(warnings, got); diff != "" {
		t.Errorf("%s\nwarnings: -want +got:\n%s", reason, diff)
	}
}
