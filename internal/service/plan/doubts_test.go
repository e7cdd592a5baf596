package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// doubted returns the warnings about some path of a spec.
func doubted(t *testing.T, spec, about string) []Warning {
	t.Helper()
	p, err := build(t, spec, "routes: {allowedParentRefs: [{namespace: gw}], allowedHostnames: ['*']}")
	if err != nil {
		t.Fatal(err)
	}
	var all []Warning
	for _, w := range p.Warnings {
		if strings.Contains(w.Path, about) || w.Path == about {
			all = append(all, w)
		}
	}
	return all
}

const (
	anEngine = `template: {spec: {containers: [{name: engine, image: x, command: [vllm, serve, /m, --kv-transfer-config, x]}]}}`
	aPrefill = `{name: prefill, componentType: prefiller, ` + anEngine + `}`
	aDecode  = `{name: decode, componentType: decoder, ` + anEngine + `}`
	aWorker  = `{name: w, componentType: worker, ` + anEngine + `}`
)

// TestWarnOfTLS proves that engines with TLS are told where a routing sidecar or a gateway would send them plain HTTP.
func TestWarnOfTLS(t *testing.T) {
	const sidecars = "the routing sidecars of decode send"
	const router = `{name: r, componentType: router, strategy: pd-disaggregation, httproute: {parentRefs: [{name: g, namespace: gw}], hostnames: [a.b]}}, `
	tls := strings.NewReplacer("vllm, serve, /m", "vllm, serve, /m, --ssl-certfile, c, --ssl-keyfile, k")
	warning := func(who string, roles ...string) (all []Warning) {
		for _, r := range roles {
			all = append(all, Warning{r, who + " plain HTTP to this engine, which serves TLS, so requests fail: leave --ssl-certfile out"})
		}
		return all
	}
	cases := map[string]struct {
		reason, roles string
		want          []Warning
	}{
		"Plain":   {"HTTP is what sidecars speak.", router + aPrefill + ", " + aDecode, nil},
		"Decode":  {"The sidecar's own engine.", router + aPrefill + ", " + tls.Replace(aDecode), warning(sidecars, "spec.roles[2]")},
		"Both":    {"Prefill is sent requests by it, too.", router + tls.Replace(aPrefill) + ", " + tls.Replace(aDecode), warning(sidecars, "spec.roles[1]", "spec.roles[2]")},
		"Workers": {"They have no sidecar, and get requests from the gateway.", router + tls.Replace(aWorker), warning("gateways send", "spec.roles[1]")},
		"Alone":   {"Clients of the Service may speak TLS.", tls.Replace(aWorker), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Warning
			for _, w := range doubted(t, "roles: ["+tc.roles+"]", "spec.roles") {
				if strings.Contains(w.Message, "--ssl-certfile") {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfTLSWithoutEngine shows that a role without containers is refused, and that nothing looks at its engine.
func TestWarnOfTLSWithoutEngine(t *testing.T) {
	_, err := build(t, "roles: [{name: r, componentType: router, strategy: pd-disaggregation}, {name: p, componentType: prefiller, template: {spec: {containers: []}}}, "+aDecode+"]", "{}")
	if err == nil || !strings.Contains(err.Error(), "spec.roles[1].template.spec.containers") {
		t.Errorf("got %v, want what is wrong with the containers", err)
	}
}

func TestWarnWithoutRouter(t *testing.T) {
	warning := func(names string) []Warning {
		return []Warning{{"spec.roles", "no requests reach " + names + ": add a role of componentType router, unless you send requests to the pods yourself"}}
	}
	cases := map[string]struct {
		roles []string
		want  []Warning
	}{
		"Workers":     {[]string{aWorker}, nil},
		"Router":      {[]string{aPrefill, aDecode, `{name: r, componentType: router}`}, nil},
		"NoRouter":    {[]string{aPrefill, aDecode}, warning("prefill, decode")},
		"WithWorkers": {[]string{aPrefill, aWorker}, warning("prefill")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Warning
			for _, w := range doubted(t, "roles: ["+strings.Join(tc.roles, ", ")+"]", "spec.roles") {
				if w.Path == "spec.roles" {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestWarnOfName shows which services have a Service with which vLLM does not start.
func TestWarnOfName(t *testing.T) {
	const router = `, {name: r, componentType: router}`
	with := func(pod, container string) string {
		return strings.Replace(strings.Replace(aWorker, "spec: {", "spec: {"+pod, 1), "image: x, ", "image: x, "+container, 1)
	}
	warning := func(name, variable, engine string) []Warning {
		return []Warning{{"metadata.name", "Kubernetes tells all pods of the namespace of the Service " + name + " by the variable " + variable + ", with which " + engine + " may not start: use another name, add a router, or set enableServiceLinks: false in the templates"}}
	}
	vllm := warning("vllm", "VLLM_PORT", "vLLM")
	cases := map[string]struct {
		reason, name, roles string
		want                []Warning
	}{
		"VLLM":    {"The Service has the name.", "vllm", aWorker, vllm},
		"Others":  {"Other services of the namespace may run vLLM.", "vllm", strings.Replace(aWorker, "vllm, serve, /m", "sglang, serve, --model-path, /m", 1), vllm},
		"SGLang":  {"That engine has such a variable, too.", "sglang", aWorker, warning("sglang", "SGLANG_PORT", "SGLang")},
		"Other":   {"The variable is VLLM_CHAT_PORT.", "vllm-chat", aWorker, nil},
		"Router":  {"There is no such Service.", "vllm", aWorker + router, nil},
		"NoLinks": {"The pods get no variables of Services.", "vllm", with("enableServiceLinks: false, ", ""), nil},
		"Own":     {"The user's value counts.", "vllm", with("", "env: [{name: VLLM_PORT, value: '9000'}], "), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.InferenceServiceSpec{}
			if err := yaml.UnmarshalStrict([]byte("roles: ["+tc.roles+"]"), s); err != nil {
				t.Fatal(err)
			}
			v1alpha1.Default(s)
			p, errs := place(naming.Identity{Name: tc.name, Namespace: "ns"}, s, defaultInput(), scheduling.Snapshot{}, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []Warning
			for _, w := range p.Warnings {
				if w.Path == "metadata.name" {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfPorts shows that workers without a router which answer on several ports are told which of them get requests.
func TestWarnOfPorts(t *testing.T) {
	worker := func(name, port string) string {
		return "{name: " + name + ", componentType: worker, template: {spec: {containers: [{name: engine, image: x, command: [vllm, serve, /m], args: [--port, '" + port + "']}]}}}"
	}
	warning := func(role int, port string) Warning {
		return Warning{fmt.Sprintf("spec.roles[%d]", role), "answers on port " + port + ", and role a on 8000, so role a alone gets requests: have all workers answer on port 8000, or make this role a service of its own, unless you send requests to the pods yourself"}
	}
	cases := map[string]struct {
		reason string
		roles  []string
		want   []Warning
	}{
		"SamePort":   {"Both get requests.", []string{worker("a", "8000"), worker("b", "8000")}, nil},
		"OtherPort":  {"A Service sends requests to one port of its pods.", []string{worker("a", "8000"), worker("b", "9000")}, []Warning{warning(1, "9000")}},
		"OtherPorts": {"The Service leaves all of them out.", []string{worker("a", "8000"), worker("b", "9000"), worker("c", "8000"), worker("d", "9001")}, []Warning{warning(1, "9000"), warning(3, "9001")}},
		"Prefill":    {"Another warning tells that it gets none.", []string{strings.Replace(aPrefill, "x]", "x, --port, '9000']", 1), worker("a", "8000")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Warning
			for _, w := range doubted(t, "roles: ["+strings.Join(tc.roles, ", ")+"]", "spec.roles") {
				if strings.Contains(w.Message, "gets requests") {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWarnOfPartition(t *testing.T) {
	warning := func(units int) []Warning {
		return []Warning{{"spec.rollout.partition", fmt.Sprintf("keeps all %d units as they are, so that no change reaches any: must be at most %d, or use paused", units, units-1)}}
	}
	const (
		workers = "roles: [{name: a, componentType: worker, replicas: 2, " + anEngine + "}, {name: b, componentType: worker, replicas: 4, " + anEngine + "}]\n"
		pairs   = "roles: [{name: p, componentType: prefiller, replicas: 2, " + anEngine + "}, {name: d, componentType: decoder, replicas: 6, " + anEngine + "}]\n"
		scaled  = "roles: [{name: a, componentType: worker, scaling: {minReplicas: 1, maxReplicas: 8}, " + anEngine + "}]\n"
		none    = "roles: [{name: a, componentType: worker, replicas: 0, " + anEngine + "}]\n"
	)
	cases := map[string]struct {
		spec      string
		partition int
		want      []Warning
	}{
		"None":             {workers, 0, nil},
		"LastReplica":      {workers, 3, nil},
		"AllReplicas":      {workers, 4, warning(4)},
		"LastPair":         {pairs, 5, nil},
		"AllPairs":         {pairs, 6, warning(6)},
		"LastGroup":        {"replicas: 3\n" + workers, 2, nil},
		"AllGroups":        {"replicas: 3\n" + workers, 3, warning(3)},
		"NothingRuns":      {none, 1, nil},
		"NoGroupRuns":      {"replicas: 0\n" + workers, 1, nil},
		"LastScaled":       {scaled, 7, nil},
		"AllScaled":        {scaled, 8, warning(8)},
		"NothingPartition": {none, 0, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := doubted(t, fmt.Sprintf("%srollout: {partition: %d}", tc.spec, tc.partition), "partition")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWarnOfPlacement(t *testing.T) {
	of := func(policy v1alpha1.PlacementPolicy, after, timeout *int32, weights ...int32) *v1alpha1.Placement {
		p := &v1alpha1.Placement{Policy: policy, FailoverAfterSeconds: after, StartTimeoutSeconds: timeout}
		for i := range weights {
			p.Clusters = append(p.Clusters, v1alpha1.PlacementCluster{Weight: &weights[i]})
		}
		return p
	}
	loads := func(seconds ...int32) (all []*Role) {
		for i, n := range seconds {
			all = append(all, &Role{Name: fmt.Sprintf("role-%d", i), Leader: PodTemplate{Readiness: &Probe{StartupSeconds: n}}})
		}
		return all
	}
	timeout := []string{"spec.placement.startTimeoutSeconds"}
	ten, hour, long := ptr.To[int32](10), ptr.To[int32](3600), ptr.To[int32](7200)
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		roles     []*Role
		want      []string
	}{
		"None":            {reason: "The service runs where its XR is."},
		"Replicate":       {reason: "Nothing moves.", placement: of(v1alpha1.PlacementReplicate, ten, ten), want: []string{"spec.placement.failoverAfterSeconds", "spec.placement.startTimeoutSeconds"}},
		"Failover":        {reason: "It moves.", placement: of(v1alpha1.PlacementFailover, ten, ten, 1, 1)},
		"Weights":         {reason: "A user may think that weight 0 keeps a cluster empty.", placement: of(v1alpha1.PlacementFailover, nil, nil, 1, 0, 2), want: []string{"spec.placement.clusters[1].weight", "spec.placement.clusters[2].weight"}},
		"Spread":          {reason: "It uses all of them.", placement: of(v1alpha1.PlacementSpread, ten, ten, 1, 0, 2)},
		"StartupLonger":   {reason: "An engine that may still load would be left.", placement: of(v1alpha1.PlacementFailover, nil, nil, 1, 1), roles: loads(900, 7200), want: timeout},
		"StartupAsLong":   {reason: "Nodes and images count too.", placement: of(v1alpha1.PlacementSpread, nil, long, 1, 1), roles: loads(7200), want: timeout},
		"TimeoutShorter":  {reason: "An engine may load for an hour by default.", placement: of(v1alpha1.PlacementFailover, nil, ten, 1, 1), roles: loads(3600), want: timeout},
		"StartupSelected": {reason: "A selector may select several clusters.", placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, ClusterSelector: &metav1.LabelSelector{}}, roles: loads(7200), want: timeout},
		"StartupShorter":  {reason: "The engine fails first.", placement: of(v1alpha1.PlacementFailover, nil, ptr.To[int32](7201), 1, 1), roles: loads(7200)},
		"StartupDefault":  {reason: "To write a default down changes nothing.", placement: of(v1alpha1.PlacementFailover, nil, hour, 1, 1), roles: loads(3600)},
		"StartupAnyTime":  {reason: "0 leaves nothing.", placement: of(v1alpha1.PlacementFailover, nil, ptr.To[int32](0), 1, 1), roles: loads(7200)},
		"StartupOneOnly":  {reason: "There is no other cluster.", placement: of(v1alpha1.PlacementFailover, nil, ten, 1), roles: loads(7200)},
		"StartupOwn":      {reason: "The template has a probe of its own.", placement: of(v1alpha1.PlacementFailover, nil, ten, 1, 1), roles: append(loads(0), &Role{})},
		"StartupEach":     {reason: "Nothing moves.", placement: of(v1alpha1.PlacementReplicate, nil, nil, 1, 1), roles: loads(7200)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range warnOfPlacement(&v1alpha1.InferenceServiceSpec{Placement: tc.placement}, tc.roles) {
				got = append(got, w.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfStartTimeout shows what is said of a start time-out that is over before an engine may have loaded.
func TestWarnOfStartTimeout(t *testing.T) {
	got := doubted(t, "placement: {policy: Failover, startTimeoutSeconds: 600, clusterSelector: {}}\nroles: ["+aWorker+"]", "spec.placement")
	want := []Warning{{
		"spec.placement.startTimeoutSeconds",
		"is over after 600 seconds, and an engine of role w may load for 3600 (lifecycle.startupSeconds): if another cluster has room, the service is started there, and an engine that still loads is stopped. " +
			"Set more than 3600, because waiting for nodes and images counts too, or 0 to wait however long",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWarnOfSpread shows which services have nothing that Spread could split, and cannot get it later.
func TestWarnOfSpread(t *testing.T) {
	const (
		two  = "clusters: [{name: a, inferenceClusterRef: {name: a}}, {name: b, inferenceClusterRef: {name: b}}]"
		pair = aPrefill + ", " + aDecode
	)
	warning := []Warning{{
		"spec.placement.policy",
		"splits nothing: a service with prefill or decode and without spec.replicas is one group, which runs in one cluster. Use Failover, or create the service anew with spec.replicas, which cannot be added later",
	}}
	cases := map[string]struct {
		reason, replicas, placement, roles string
		want                               []Warning
	}{
		"Selected": {"It may select several clusters.", "", "policy: Spread, clusterSelector: {}", pair, warning},
		"Listed":   {"One of them runs nothing.", "", "policy: Spread, " + two, pair, warning},
		"Decode":   {"It is not split either.", "", "policy: Spread, " + two, aDecode + ", " + aWorker, warning},
		"One":      {"There is nothing to spread over.", "", "policy: Spread, clusters: [{name: a, inferenceClusterRef: {name: a}}]", pair, nil},
		"Replicas": {"Groups are split, and more of them can be added.", "replicas: 1\n", "policy: Spread, " + two, pair, nil},
		"Workers":  {"Each replica is a group.", "", "policy: Spread, " + two, aWorker, nil},
		"Failover": {"The service runs in one cluster, as it says.", "", "policy: Failover, " + two, pair, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := doubted(t, tc.replicas+"placement: {"+tc.placement+"}\nroles: ["+tc.roles+"]", "spec.placement.policy")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWarnOfStrategy(t *testing.T) {
	const config = `endpointPickerConfig: "{apiVersion: inference.networking.x-k8s.io/v1alpha1, kind: EndpointPickerConfig, plugins: [{type: queue-scorer}, {type: max-score-picker}], schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}]}"`
	router := func(more string) string { return "{name: r, componentType: router" + more + "}" }
	warning := []Warning{{"spec.roles[1].strategy", "has no effect beside endpointPickerConfig, which replaces what a strategy makes: leave one of them out"}}
	cases := map[string]struct {
		reason string
		roles  []string
		want   []Warning
	}{
		"Strategy":   {"A strategy alone has an effect.", []string{aWorker, router(", strategy: queue-size")}, nil},
		"Config":     {"So has a configuration.", []string{aWorker, router(", " + config)}, nil},
		"Both":       {"The configuration wins.", []string{aWorker, router(", strategy: queue-size, " + config)}, warning},
		"BothWithPD": {"The strategy decides which endpoint picker reads the configuration.", []string{aPrefill, router(", strategy: queue-size, " + config), aDecode}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Warning
			for _, w := range doubted(t, "roles: ["+strings.Join(tc.roles, ", ")+"]", "strategy") {
				if strings.Contains(w.Message, "has no effect") {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWarnOfLifecycle(t *testing.T) {
	const (
		known    = "command: [vllm, serve, /m]"
		all      = "lifecycle: {startupSeconds: 60, drainSeconds: 10, shutdownSeconds: 20}, "
		hook     = "lifecycle: {preStop: {exec: {command: [wait]}}}"
		grace    = "terminationGracePeriodSeconds: 50, "
		two      = "multinode: {nodeCount: 2, launcher: None}, "
		overrule = "has no effect, because the template has a preStop hook and terminationGracePeriodSeconds: leave it out"
	)
	startup := func(message string) Warning { return Warning{"spec.roles[0].lifecycle.startupSeconds", message} }
	both := []Warning{{"spec.roles[0].lifecycle.drainSeconds", overrule}, {"spec.roles[0].lifecycle.shutdownSeconds", overrule}}
	cases := map[string]struct {
		reason                            string
		role, pod, container, leaderAlone string
		want                              []Warning
	}{
		"Known":     {reason: "All of them are used.", role: all, container: known},
		"Unset":     {reason: "Nothing is set that could be overruled.", pod: grace, container: known + ", startupProbe: {exec: {command: [a]}}, " + hook},
		"Readiness": {reason: "No startup probe is added beside a readiness probe.", role: all, container: known + ", readinessProbe: {exec: {command: [a]}}", want: []Warning{startup("has no effect, because the template has a readinessProbe: leave it out, and write a startupProbe")}},
		"Startup":   {reason: "The template's startup probe stays.", role: all, container: known + ", startupProbe: {exec: {command: [a]}}", want: []Warning{startup("has no effect, because the template has a startupProbe: leave one of them out")}},
		"Unknown":   {reason: "An engine that is not known gets no probe.", role: all, container: "command: [serve]", want: []Warning{startup("has no effect, because the engine is not known: leave it out, and write a readinessProbe and a startupProbe")}},
		"Hook":      {reason: "The grace period is still the sum of both.", role: all, container: known + ", " + hook},
		"Grace":     {reason: "The wait is still the grace period less shutdownSeconds.", role: all, pod: grace, container: known},
		"HookAndGrace": {
			reason: "Both are the template's.", role: all, pod: grace, container: known + ", " + hook, want: both,
		},
		"WorkersToo": {
			reason: "Leader and workers have one template.", role: two + all, pod: grace, container: known + ", " + hook, want: both,
		},
		"LeaderAlone": {
			reason: "Workers still go by the role.", role: two + all, container: known,
			leaderAlone: ", leaderTemplate: {spec: {" + grace + "containers: [{name: engine, image: x, " + known + ", " + hook + "}]}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := doubted(t, "roles: [{name: w, componentType: worker, "+tc.role+"template: {spec: {"+tc.pod+"containers: [{name: engine, image: x, "+tc.container+"}]}}"+tc.leaderAlone+"}]", ".lifecycle.")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfNoDrain proves which grace periods are named because they leave no time to drain.
func TestWarnOfNoDrain(t *testing.T) {
	warning := []Warning{{
		"spec.roles[0].template.spec.terminationGracePeriodSeconds",
		"leaves no time to drain, so requests fail whenever a pod ends: must be more than the 30 seconds of lifecycle.shutdownSeconds, such as 60, or leave it out",
	}}
	cases := map[string]struct {
		reason, role, grace, container string
		want                           []Warning
	}{
		"Short":  {"It is the default of Kubernetes, written out.", "", "30", "", warning},
		"Long":   {"Some of it is left.", "", "31", "", nil},
		"Hook":   {"The template has a wait of its own.", "", "30", ", lifecycle: {preStop: {exec: {command: [wait]}}}", nil},
		"Wanted": {"The role wants none.", "lifecycle: {drainSeconds: 0}, ", "30", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := doubted(t, "roles: [{name: w, componentType: worker, "+tc.role+"template: {spec: {terminationGracePeriodSeconds: "+tc.grace+", containers: [{name: engine, image: x, command: [vllm, serve, /m]"+tc.container+"}]}}}]", "terminationGrace")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfNixlOnNodes proves that a release of vLLM is named whose NIXL connector does not start on several nodes.
func TestWarnOfNixlOnNodes(t *testing.T) {
	const old = "before vLLM v0.12.0, NixlConnector does not start on several nodes: use a newer image, or one node"
	cases := map[string]struct {
		reason, image, connector string
		nodes                    int
		want                     bool
	}{
		"Nodes":   {reason: "Ranks on other nodes listen at the leader's address.", image: "vllm/vllm-openai:v0.11.2", connector: "NixlConnector", nodes: 2, want: true},
		"OneNode": {reason: "All ranks have that address.", image: "vllm/vllm-openai:v0.11.2", connector: "NixlConnector", nodes: 1},
		"Newer":   {reason: "Later, only the scheduler listens.", image: "vllm/vllm-openai:v0.12.0", connector: "NixlConnector", nodes: 2},
		"Other":   {reason: "Nothing is known of other connectors.", image: "vllm/vllm-openai:v0.11.2", connector: "LMCacheConnectorV1", nodes: 2},
		"Unknown": {reason: "The version is not known.", image: "example.com/mine:v0.1.0", connector: "NixlConnector", nodes: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := doubted(t, fmt.Sprintf(`roles: [{name: w, componentType: worker, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: %q, args: [--model=m, --kv-transfer-config, '{"kv_connector":%q,"kv_role":"kv_both"}']}]}}}]`, tc.nodes, tc.image, tc.connector), ".args[2]")
			var want []Warning
			if tc.want {
				want = []Warning{{"spec.roles[0].template.spec.containers[0].args[2]", old}}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWarnOfConnectors(t *testing.T) {
	const path = "spec.roles[0].template.spec.containers[0]"
	nccl := func(at string) []Warning {
		return []Warning{{path + at, `vLLM has no PyNcclConnector from v0.10.1 on: use NixlConnector with "kv_role":"kv_both"`}}
	}
	args := func(connector string) string {
		return `args: [--model=m, --kv-transfer-config, '{"kv_connector":"` + connector + `","kv_role":"kv_both"}']`
	}
	cases := map[string]struct {
		reason, image, container string
		want                     []Warning
	}{
		"Gone":        {"The connector is gone.", "vllm/vllm-openai:v0.11.0", args("PyNcclConnector"), nccl(".args[2]")},
		"Mirror":      {"A mirror has the tags of the original.", "mirror.example.com:5000/vllm/vllm-openai:v0.11.0-cu128@sha256:00", args("PyNcclConnector"), nccl(".args[2]")},
		"FirstGone":   {"This is the first version without it.", "vllm/vllm-openai:v0.10.1", args("PyNcclConnector"), nccl(".args[2]")},
		"Before":      {"An older version has it.", "vllm/vllm-openai:v0.10.0", args("PyNcclConnector"), nil},
		"Nixl":        {"This one is there.", "vllm/vllm-openai:v0.11.0", args("NixlConnector"), nil},
		"P2pBefore":   {"This one was there for longer.", "vllm/vllm-openai:v0.23.1", args("P2pNcclConnector"), nil},
		"P2p":         {"It is gone since.", "vllm/vllm-openai:v0.24.0", args("P2pNcclConnector"), []Warning{{path + ".args[2]", `vLLM has no P2pNcclConnector from v0.24.0 on: use NixlConnector with "kv_role":"kv_both"`}}},
		"LMCache":     {"It has another name.", "vllm/vllm-openai:v0.11.0", args("LMCacheConnector"), []Warning{{path + ".args[2]", "vLLM has no LMCacheConnector from v0.10.1 on: use LMCacheConnectorV1"}}},
		"LMCacheV1":   {"A name that starts like another one.", "vllm/vllm-openai:v0.11.0", args("LMCacheConnectorV1"), nil},
		"Shared":      {"It has another name.", "vllm/vllm-openai:v0.13.0", args("SharedStorageConnector"), []Warning{{path + ".args[2]", "vLLM has no SharedStorageConnector from v0.13.0 on: use ExampleConnector, which is for tests"}}},
		"Latest":      {"A tag without a version says nothing.", "vllm/vllm-openai:latest", args("PyNcclConnector"), nil},
		"NoTag":       {"Nor does no tag.", "mirror.example.com:5000/vllm-openai", args("PyNcclConnector"), nil},
		"OwnImage":    {"The tag of another image is not vLLM's version.", "example.com/my-vllm:v1.0.0", args("PyNcclConnector"), nil},
		"Script":      {"A shell script is read, too.", "vllm/vllm-openai:v0.11.0", `command: [sh, -c, "exec vllm serve m --kv-transfer-config '{\"kv_connector\": \"PyNcclConnector\"}'"]`, nccl(".command[2]")},
		"OwnModule":   {"A module of the user's own may have one of any name.", "vllm/vllm-openai:v0.11.0", `args: [--kv-transfer-config, '{"kv_connector":"PyNcclConnector","kv_connector_module_path":"mine"}']`, nil},
		"Twice":       {"It is named once.", "vllm/vllm-openai:v0.11.0", `args: ['--kv-transfer-config={"kv_connector":"PyNcclConnector"}', '--kv-transfer-config={"kv_connector":"PyNcclConnector"}']`, nccl(".args[0]")},
		"NoConnector": {"Nothing is named.", "vllm/vllm-openai:v0.11.0", "args: [--model=m]", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Warning
			for _, w := range doubted(t, "roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: engine, image: '"+tc.image+"', "+tc.container+"}]}}}]", "containers[0]") {
				if strings.Contains(w.Message, "vLLM has no") {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
