package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestBackendsOfFleet proves which clusters have a Service and an EndpointSlice, and which of these the
// route names.
func TestBackendsOfFleet(t *testing.T) {
	both := &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "b", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}}}}
	serves := func(w scheduling.Snapshot, cluster string) scheduling.Snapshot {
		w.States[cluster] = schedulingtest.Existing("worker/0", "worker/1")
		w.States[cluster].RouterWasReady, w.States[cluster].RouterReady = true, true
		return w
	}
	restarts := func(w scheduling.Snapshot, cluster string, replicas ...key.ReplicaID) scheduling.Snapshot {
		w.States[cluster].Restarting = map[key.ReplicaID]bool{}
		for _, r := range replicas {
			w.States[cluster].Restarting[r] = true
		}
		return w
	}
	unready := func(w scheduling.Snapshot, cluster string) scheduling.Snapshot {
		w.States[cluster].RouterWasReady, w.States[cluster].RouterReady = false, false
		return w
	}
	refused := func(w scheduling.Snapshot, cluster string) scheduling.Snapshot {
		w.States[cluster].RouteRefused = true
		return w
	}
	abandoned := func(c *v1alpha1.InferenceCluster) { c.Spec.StopPolicy = v1alpha1.StopAbandon }
	reserved := schedulingtest.Reserved("worker/0", "worker/1")
	cases := map[string]struct {
		reason   string
		snapshot scheduling.Snapshot
		replicas *int32
		mode     v1alpha1.FailureMode
		traffic  []string
		want     []string
	}{
		"BothServe": {
			reason:   "Each cluster gets its part of the requests.",
			snapshot: serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"),
			want:     []string{"a: 2, named", "b: 2, named"},
		},
		"NoneServes": {
			reason:   "No backend has a weight, so the route names all of them.",
			snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)),
			want:     []string{"a: 0, named", "b: 0, named"},
		},
		"OneServes": {
			reason:   "Some gateways send requests to backends of weight 0, so the route does not name them while another has a weight.",
			snapshot: serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "b"),
			want:     []string{"a: 0", "b: 2, named"},
		},
		"OneRestarts": {
			reason:   "The replicas of a cluster are being replaced, so it gets no requests.",
			snapshot: restarts(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a", "worker/0", "worker/1"),
			want:     []string{"a: 0", "b: 2, named"},
		},
		"OneOfTwoRestarts": {
			reason:   "The other replica of the cluster answers.",
			snapshot: restarts(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a", "worker/0"),
			want:     []string{"a: 1, named", "b: 2, named"},
		},
		"AllRestart": {
			reason:   "The pods that are being replaced still answer, and no others do.",
			snapshot: restarts(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "a", "worker/0", "worker/1"),
			want:     []string{"a: 2, named", "b: 0"},
		},
		"NoRoute": {
			reason: "The gateway of a cluster without the HTTPRoute answers 404.",
			snapshot: func() scheduling.Snapshot {
				w := serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b")
				w.States["a"].HasRoute = false
				return w
			}(),
			want: []string{"a: 0", "b: 2, named"},
		},
		"OneRefused": {
			reason: "The gateway of a cluster refuses the service.",
			snapshot: func() scheduling.Snapshot {
				w := serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b")
				w.States["a"].RouteRefused = true
				return w
			}(),
			want: []string{"a: 0", "b: 2, named"},
		},
		"TheOnlyOneRefused": {
			reason: "There is no other cluster, and the gateway may accept it soon.",
			snapshot: func() scheduling.Snapshot {
				w := serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a")
				w.States["a"].RouteRefused = true
				return w
			}(),
			want: []string{"a: 2, named", "b: 0"},
		},
		"OnePickerUnready": {
			reason:   "Another cluster has an endpoint picker that picks.",
			snapshot: unready(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a"),
			want:     []string{"a: 0", "b: 2, named"},
		},
		"NoPickerReady": {
			reason:   "The gateways of the clusters send requests to any pod. A backend of weight 0 would get none.",
			snapshot: unready(unready(restarts(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a", "worker/0"), "a"), "b"),
			want:     []string{"a: 1, named", "b: 2, named"},
		},
		"NoPickerReadyAndOneRestarts": {
			reason:   "The gateways of the clusters send requests to any pod, and those of one cluster are being replaced.",
			snapshot: unready(unready(restarts(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a", "worker/0", "worker/1"), "a"), "b"),
			want:     []string{"a: 0", "b: 2, named"},
		},
		"NoPickerReadyAndAllRestart": {
			reason:   "The pods that are being replaced still answer, and no others do.",
			snapshot: unready(restarts(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "a", "worker/0", "worker/1"), "a"),
			want:     []string{"a: 2, named", "b: 0"},
		},
		"NoPickerReadyAndClosed": {
			reason:   "The gateways of the clusters refuse requests.",
			snapshot: unready(unready(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a"), "b"),
			mode:     v1alpha1.FailClose,
			want:     []string{"a: 0, named", "b: 0, named"},
		},
		"NoPickerReadyBesideRestarts": {
			reason:   "Its endpoint picker is ready, and pods that are being replaced still answer.",
			snapshot: unready(restarts(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a", "worker/0", "worker/1"), "b"),
			want:     []string{"a: 2, named", "b: 0"},
		},
		"NoPickerReadyBesideRefused": {
			reason:   "Any pod answers where the gateway accepts the service.",
			snapshot: unready(refused(serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"), "a"), "b"),
			want:     []string{"a: 0", "b: 2, named"},
		},
		"NoPickerReadyAndRefused": {
			reason:   "Nothing answers there.",
			snapshot: unready(refused(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "a"), "a"),
			want:     []string{"a: 0, named", "b: 0, named"},
		},
		"NoPool": {
			reason: "The HTTPRoute of a cluster without the InferencePool leads nowhere.",
			snapshot: func() scheduling.Snapshot {
				w := serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b")
				w.States["b"].HasPool = false
				return w
			}(),
			want: []string{"a: 2, named", "b: 0"},
		},
		"AbandonedWithTraffic": {
			reason: "A gateway may still follow an older route to the abandoned cluster, so the Service stays.",
			snapshot: func() scheduling.Snapshot {
				w := serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved, abandoned), schedulingtest.Cluster("west", reserved)), "a"), "b")
				w.States["a"].Orphaned = true
				return w
			}(),
			traffic: []string{"a"},
			want:    []string{"a: 0", "b: 2, named"},
		},
		"Abandoned": {
			reason: "The Service goes once no gateway follows such a route.",
			snapshot: func() scheduling.Snapshot {
				w := serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved, abandoned), schedulingtest.Cluster("west", reserved)), "a"), "b")
				w.States["a"].Orphaned = true
				return w
			}(),
			want: []string{"b: 2, named"},
		},
		"ScaledToZero": {
			reason:   "Nothing runs, so the route names nothing. The Services stay until the gateways have accepted that.",
			snapshot: serves(serves(schedulingtest.Snapshot(schedulingtest.Cluster("east", reserved), schedulingtest.Cluster("west", reserved)), "a"), "b"),
			replicas: ptr.To[int32](0),
			traffic:  []string{"a", "b"},
			want:     []string{"a: 0", "b: 0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := naming.Identity{Name: "svc", Namespace: "ns", UID: "uid", Grouped: tc.replicas != nil}
			tc.snapshot.MayReceiveTraffic = map[string]bool{}
			for _, cluster := range tc.traffic {
				tc.snapshot.MayReceiveTraffic[naming.FleetBackend(s.Name, cluster)] = true
			}
			spec := &v1alpha1.InferenceServiceSpec{
				Placement: both, Replicas: tc.replicas,
				Roles: []v1alpha1.Role{
					{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, `{"parentRefs":[{"name":"gw"}],"hostnames":["h.example.com"]}`), EndpointPicker: &v1alpha1.EndpointPicker{FailureMode: tc.mode}},
					{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)},
				},
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			in.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub"}}
			p, errs := place(s, spec, in, tc.snapshot, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tc.want, backendsOf(p)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadyPairs proves how many replicas of a cluster answer requests. Decode of SGLang needs prefill for that.
func TestReadyPairs(t *testing.T) {
	cases := map[string]struct {
		reason            string
		engine            launch.Engine
		exist             []key.ReplicaID
		restart           []key.ReplicaID
		ready, restarting int32
	}{
		"Both":            {reason: "Decode counts.", engine: launch.EngineSGLang, exist: []key.ReplicaID{"p/0", "d/0", "d/1"}, ready: 2},
		"NoPrefill":       {reason: "Decode refuses all requests.", engine: launch.EngineSGLang, exist: []key.ReplicaID{"d/0", "d/1"}},
		"PrefillRestarts": {reason: "Prefill stops soon.", engine: launch.EngineSGLang, exist: []key.ReplicaID{"p/0", "d/0", "d/1"}, restart: []key.ReplicaID{"p/0", "d/1"}, restarting: 2},
		"PrefillOnly":     {reason: "Prefill answers nobody.", engine: launch.EngineSGLang, exist: []key.ReplicaID{"p/0"}},
		"VLLM":            {reason: "Decode answers alone.", engine: launch.EngineVLLM, exist: []key.ReplicaID{"d/0", "d/1"}, ready: 2},
		"Apart":           {reason: "With vLLM, prefill gets only parts of requests.", engine: launch.EngineVLLM, exist: []key.ReplicaID{"p/0", "d/0"}, ready: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Router: &Router{Disaggregated: true}, Roles: []*Role{
				{Name: "p", Type: v1alpha1.ComponentTypePrefiller, Replicas: 1, engine: tc.engine},
				{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 2, engine: tc.engine},
			}}
			a := &scheduling.Assignment{Decision: scheduling.Decision{Run: map[key.ReplicaID]bool{"p/0": true, "d/0": true, "d/1": true}}, Existing: schedulingtest.Existing(tc.exist...)}
			a.Existing.Restarting = map[key.ReplicaID]bool{}
			for _, id := range tc.restart {
				a.Existing.Restarting[id] = true
			}
			if ready, restarting := p.ready(a, ""); ready != tc.ready || restarting != tc.restarting {
				t.Errorf("%s %d are ready and %d restart, want %d and %d", tc.reason, ready, restarting, tc.ready, tc.restarting)
			}
		})
	}
}

// TestReadyBehindPool proves that replicas count only in so far as the pool of their cluster selects them.
func TestReadyBehindPool(t *testing.T) {
	const (
		worker, prefill, decode = v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypePrefiller, v1alpha1.ComponentTypeDecoder
		all                     = ""
		none                    = "none"
	)
	cases := map[string]struct {
		reason string
		// apart tells that the endpoint picker picks prefill and decode apart. selects is what the pool is to select, and pool what one
		// that exists selects.
		apart         bool
		selects, pool v1alpha1.ComponentType
		// noWorkers tells that the service has no role of workers any more.
		noWorkers bool
		exist     []key.ReplicaID
		want      int32
	}{
		"Whole":       {reason: "Prefill and decode each answer whole requests.", pool: all, exist: []key.ReplicaID{"p/0", "d/0", "d/1"}, want: 3},
		"PrefillOnly": {reason: "The service has lost its decode.", selects: prefill, pool: prefill, exist: []key.ReplicaID{"p/0"}, want: 1},
		"Apart":       {reason: "Prefill answers nobody.", apart: true, pool: all, exist: []key.ReplicaID{"p/0", "d/0", "w/0"}, want: 2},
		"Workers":     {reason: "Prefill and decode get no requests beside workers.", selects: worker, pool: worker, exist: []key.ReplicaID{"w/0", "p/0", "d/0", "d/1"}, want: 1},
		"NoWorker":    {reason: "They get none if no worker is ready either.", selects: worker, pool: worker, exist: []key.ReplicaID{"p/0", "d/0", "d/1"}},
		"ToWorkers":   {reason: "The pool has not turned to workers.", selects: worker, pool: all, exist: []key.ReplicaID{"p/0", "d/0", "d/1"}, want: 3},
		"ToApart":     {reason: "The endpoint picker does not pick them apart yet.", apart: true, pool: worker, exist: []key.ReplicaID{"w/0", "p/0", "d/0"}, want: 1},
		"Removed":     {reason: "The pool that selects workers is about to turn.", apart: true, noWorkers: true, pool: worker, exist: []key.ReplicaID{"p/0", "d/0"}, want: 1},
		"NoPool":      {reason: "There will be one.", selects: worker, pool: none, exist: []key.ReplicaID{"w/0", "p/0", "d/0"}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Router: &Router{Disaggregated: tc.apart, Selector: map[string]string{naming.LabelComponentType: string(tc.selects)}}, Roles: []*Role{
				{Name: "w", Type: worker, Replicas: 1, engine: launch.EngineVLLM},
				{Name: "p", Type: prefill, Replicas: 1, engine: launch.EngineVLLM},
				{Name: "d", Type: decode, Replicas: 2, engine: launch.EngineVLLM},
			}}
			if tc.noWorkers {
				p.Roles = p.Roles[1:]
			}
			running := &RunningView{PoolType: func(k key.Key) (v1alpha1.ComponentType, bool) {
				return tc.pool, tc.pool != none && k == key.New("a", key.InferencePool)
			}}
			a := &scheduling.Assignment{Target: scheduling.Target{Cluster: "a"}, Decision: scheduling.Decision{Run: map[key.ReplicaID]bool{}}, Existing: schedulingtest.Existing(tc.exist...)}
			for _, id := range tc.exist {
				a.Run[id] = true
			}
			if got, _ := p.ready(a, p.pooled(a, running)); got != tc.want {
				t.Errorf("%s %d count, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBackendsByType proves that an entrypoint whose address changes its type gets another
// backend, and that the former one stays while requests may come there.
func TestBackendsByType(t *testing.T) {
	const hostname = "gw.example.com"
	name := func(h key.HostnameBackend) string { return naming.FleetHostname(h, "svc", "a") }
	byIP := naming.FleetBackend("svc", "a")
	observed := func(h key.HostnameBackend) map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus {
		return map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus{h: {"a": v1alpha1.HostnameEntrypoint("old.example.com", 80)}}
	}
	at := func(ip string) map[string]*v1alpha1.EntrypointStatus {
		return map[string]*v1alpha1.EntrypointStatus{"a": v1alpha1.IPEntrypoint(ip, 80)}
	}
	cases := map[string]struct {
		reason     string
		setting    inputv1alpha1.HostnameBackends
		entrypoint *v1alpha1.EntrypointStatus
		ips        map[string]*v1alpha1.EntrypointStatus
		hostnames  map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus
		traffic    []string
		want       []string
		warns      bool
	}{
		"Slice":         {reason: "A slice has the name.", setting: inputv1alpha1.HostnameEndpointSlice, want: []string{name(key.HostnameSlice) + " gw.example.com 2 named"}},
		"External":      {reason: "A Service has the name.", setting: inputv1alpha1.HostnameExternalName, want: []string{name(key.HostnameExternal) + " gw.example.com 2 named"}},
		"Entry":         {reason: "A ServiceEntry has the name.", setting: inputv1alpha1.HostnameServiceEntry, want: []string{name(key.HostnameEntry) + " gw.example.com 2 named"}},
		"NotSet":        {reason: "No way to the name works with every gateway.", warns: true},
		"NotSetAnyMore": {reason: "The last address by which the route led there stays.", ips: at("10.0.0.9"), want: []string{byIP + " 10.0.0.9 2 named"}, warns: true},
		"ToHostname": {
			reason: "The route turns to the name at once, and the former Service stays.", setting: inputv1alpha1.HostnameEndpointSlice,
			ips: at("10.0.0.9"), traffic: []string{byIP},
			want: []string{byIP + " 10.0.0.9 0", name(key.HostnameSlice) + " gw.example.com 2 named"},
		},
		"ToHostnameDone": {
			reason: "No gateway sends requests to the former Service.", setting: inputv1alpha1.HostnameEndpointSlice,
			ips: at("10.0.0.9"), traffic: []string{name(key.HostnameSlice)}, want: []string{name(key.HostnameSlice) + " gw.example.com 2 named"},
		},
		"ToIP": {
			reason: "The same the other way round.", entrypoint: v1alpha1.IPEntrypoint("10.0.0.1", 80), setting: inputv1alpha1.HostnameEndpointSlice,
			hostnames: observed(key.HostnameSlice), traffic: []string{name(key.HostnameSlice)},
			want: []string{name(key.HostnameSlice) + " old.example.com 0", byIP + " 10.0.0.1 2 named"},
		},
		"OtherSetting": {
			reason: "The former way stays.", setting: inputv1alpha1.HostnameServiceEntry,
			hostnames: observed(key.HostnameSlice), traffic: []string{name(key.HostnameSlice)},
			want: []string{name(key.HostnameSlice) + " old.example.com 0", name(key.HostnameEntry) + " gw.example.com 2 named"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := v1alpha1.HostnameEntrypoint(hostname, 80)
			if tc.entrypoint != nil {
				at = tc.entrypoint
			}
			w := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), func(c *v1alpha1.InferenceCluster) { c.Status.Entrypoint = at }))
			w.States["a"] = schedulingtest.Existing("worker/0", "worker/1")
			w.States["a"].RouterWasReady, w.States["a"].RouterReady = true, true
			w.Entrypoints, w.Hostnames, w.MayReceiveTraffic = tc.ips, tc.hostnames, map[string]bool{}
			for _, backend := range tc.traffic {
				w.MayReceiveTraffic[backend] = true
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			in.Fleet = inputv1alpha1.FleetSettings{ParentRefs: []inputv1alpha1.ParentRef{{Name: "hub"}}, HostnameBackends: tc.setting}
			p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, &v1alpha1.InferenceServiceSpec{
				Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
				Roles: []v1alpha1.Role{
					{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, `{"parentRefs":[{"name":"gw"}],"hostnames":["h.example.com"]}`)},
					{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)},
				},
			}, in, w, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for _, b := range p.FleetRoute.Backends {
				text := fmt.Sprintf("%s %s %d", b.Name, b.Address, b.Weight)
				if b.Named {
					text += " named"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if warns := len(p.Warnings) > 0 && strings.Contains(p.Warnings[len(p.Warnings)-1].Message, "fleet.hostnameBackends"); warns != tc.warns {
				t.Errorf("%s A warning: %t, want %t: %v", tc.reason, warns, tc.warns, p.Warnings)
			}
		})
	}
}

// TestNameBackends proves that a route names no more backends than it may have. A warning names those
// that are left out although they could get requests.
func TestNameBackends(t *testing.T) {
	weights := func(n int, of func(i int) int32) []Backend {
		all := make([]Backend, 0, n)
		for i := range n {
			all = append(all, Backend{Cluster: fmt.Sprintf("c%02d", i), Named: true, Weight: of(i)})
		}
		return all
	}
	names := func(from, to int) []string {
		var all []string
		for i := from; i <= to; i++ {
			all = append(all, fmt.Sprintf("c%02d", i))
		}
		return all
	}
	cases := map[string]struct {
		reason  string
		all     []Backend
		inUse   map[string]bool
		want    []string
		dropped []string
		warning string
	}{
		"Fits":     {reason: "A route has up to 16 backends.", all: weights(16, func(int) int32 { return 1 }), want: names(0, 15)},
		"TooMany":  {reason: "The first 16 are named.", all: weights(18, func(int) int32 { return 1 }), want: names(0, 15), dropped: names(16, 17), warning: "an HTTPRoute has at most 16 backends: no requests are sent to c16, c17"},
		"InUse":    {reason: "A gateway may still send requests to c17, until it has accepted the new route.", all: weights(18, func(int) int32 { return 1 }), inUse: map[string]bool{"c17": true}, want: names(0, 15), dropped: names(16, 16), warning: "an HTTPRoute has at most 16 backends: no requests are sent to c16, c17"},
		"NoWeight": {reason: "Those without a weight are left out first.", all: weights(20, func(i int) int32 { return int32(min(1, i/3)) }), want: names(3, 18), dropped: names(19, 19), warning: "an HTTPRoute has at most 16 backends: no requests are sent to c19"},
		"FitsThen": {reason: "So they do not displace one with a weight.", all: weights(19, func(i int) int32 { return int32(min(1, i/3)) }), want: names(3, 18)},
		"AllZero":  {reason: "Where none has a weight, the first 16 are named.", all: weights(17, func(int) int32 { return 0 }), want: names(0, 15), dropped: names(16, 16), warning: "an HTTPRoute has at most 16 backends: no requests are sent to c16"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{}
			var want, kept, got []string
			for _, b := range tc.all {
				if !slices.Contains(tc.dropped, b.Cluster) {
					want = append(want, b.Cluster)
				}
			}
			for _, b := range p.nameBackends(tc.all, tc.inUse) {
				kept = append(kept, b.Cluster)
				if b.Named {
					got = append(got, b.Cluster)
				}
			}
			if diff := cmp.Diff(want, kept); diff != "" {
				t.Errorf("%s Clusters with a Service\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s Clusters in the route\n-want, +got:\n%s", tc.reason, diff)
			}
			var warnings []Warning
			if tc.warning != "" {
				warnings = []Warning{{Path: "spec.placement", Message: tc.warning}}
			}
			if diff := cmp.Diff(warnings, p.Warnings); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfMoves proves that a service whose URL does not move with it is warned.
func TestWarnOfMoves(t *testing.T) {
	failover := &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover}
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		router    *Router
		route     *FleetRoute
		want      bool
	}{
		"NoFleetRoute": {reason: "Each cluster has a URL of its own.", placement: failover, router: &Router{HasRoute: true}, want: true},
		"Spread":       {reason: "So it does where only some replicas move.", placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementSpread}, router: &Router{HasRoute: true}, want: true},
		"FleetRoute":   {reason: "One URL is for all clusters.", placement: failover, router: &Router{HasRoute: true}, route: &FleetRoute{}},
		"Replicate":    {reason: "Nothing moves.", placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate}, router: &Router{HasRoute: true}},
		"NoRoute":      {reason: "There is no URL.", placement: failover, router: &Router{}},
		"NoRouter":     {reason: "There is no URL.", placement: failover},
		"NoPlacement":  {reason: "The service leaves the fleet.", router: &Router{HasRoute: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Router: tc.router, FleetRoute: tc.route, spec: &v1alpha1.InferenceServiceSpec{Placement: tc.placement}}
			p.warnOfMoves()
			if got := len(p.Warnings) == 1 && p.Warnings[0].Path == "spec.placement.policy"; got != tc.want {
				t.Errorf("%s A warning: %t, want %t: %v", tc.reason, got, tc.want, p.Warnings)
			}
		})
	}
}

// TestScaledDownInFleet proves that the route leaves a cluster before its last replica goes, if the service
// is scaled down by it.
func TestScaledDownInFleet(t *testing.T) {
	spread := &v1alpha1.Placement{Policy: v1alpha1.PlacementSpread, Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "b", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}}}}
	cases := map[string]struct {
		reason   string
		replicas int32
		// ready tells whether the replica that is wanted serves.
		ready   bool
		noRoute bool
		traffic []string
		want    []string
	}{
		"RouteLeadsThere":      {"The replica serves until the gateways have left its cluster.", 1, true, false, []string{"a", "b"}, []string{"a runs worker/0", "b runs worker/1", "a: 1, named", "b: 0"}},
		"RouteHasLeft":         {"No gateway sends requests there.", 1, true, false, []string{"a"}, []string{"a runs worker/0", "a: 1, named"}},
		"OtherNotReady":        {"It is the only one that serves.", 1, false, false, []string{"a", "b"}, []string{"a runs worker/0", "b runs worker/1", "a: 0", "b: 1, named"}},
		"NoRouteOtherAnswers":  {"Without a fleet route, it stays only until another one answers.", 1, true, true, nil, []string{"a runs worker/0"}},
		"NoRouteOtherNotReady": {"It is the only one that serves.", 1, false, true, nil, []string{"a runs worker/0", "b runs worker/1"}},
		"Stopped":              {"The user wants no replica.", 0, true, false, []string{"a", "b"}, []string{"a: 0", "b: 0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := map[string]key.ReplicaID{"a": "worker/0", "b": "worker/1"}
			w := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved(all["a"])), schedulingtest.Cluster("west", schedulingtest.Reserved(all["b"])))
			w.MayReceiveTraffic, w.ReceivesTraffic = map[string]bool{}, map[string]bool{}
			w.Request.Homes = map[key.GroupID]reservation.Home{"worker/0": {Cluster: "a", Epoch: 1, Started: true}, "worker/1": {Cluster: "b", Epoch: 1, Started: true}}
			running := &RunningView{
				Others:   map[string][]key.ReplicaID{"a": {all["a"]}, "b": {all["b"]}},
				PoolType: func(key.Key) (v1alpha1.ComponentType, bool) { return "", false },
			}
			running.Replica = func(k key.Key) rollout.State {
				return rollout.State{Exists: true, Serving: tc.ready || k.Cluster == "b"}
			}
			for cluster, id := range all {
				w.States[cluster] = schedulingtest.Existing(id)
				w.States[cluster].Ready[id] = tc.ready || cluster == "b"
				w.States[cluster].WasReady[id] = w.States[cluster].Ready[id]
			}
			for _, cluster := range tc.traffic {
				w.MayReceiveTraffic[naming.FleetBackend("svc", cluster)] = true
				w.ReceivesTraffic[naming.FleetBackend("svc", cluster)] = true
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			if !tc.noRoute {
				in.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub"}}
			}
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, &v1alpha1.InferenceServiceSpec{
				Placement: spread,
				Roles: []v1alpha1.Role{
					{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, `{"parentRefs":[{"name":"gw"}],"hostnames":["h.example.com"]}`)},
					{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To(tc.replicas), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)},
				},
			}, in, w, nil)
			if len(errs) == 0 {
				errs = p.Place(running)
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for c, r := range p.Replicas() {
				got = append(got, c.Target.Cluster+" runs "+string(r.ID))
			}
			if p.FleetRoute != nil {
				got = append(got, backendsOf(p)...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// backendsOf describes the backends of a plan.
func backendsOf(p *Plan) []string {
	var all []string
	for _, b := range p.FleetRoute.Backends {
		text := fmt.Sprintf("%s: %d", b.Cluster, b.Weight)
		if b.Named {
			text += ", named"
		}
		all = append(all, text)
	}
	return all
}

// TestFleetRouteWakes proves that requests reach the endpoint picker in which they wait for a role without replicas, and
// the clusters with ready replicas once there are some.
func TestFleetRouteWakes(t *testing.T) {
	spec, in := &v1alpha1.InferenceServiceSpec{}, &inputv1alpha1.Input{}
	if err := yaml.UnmarshalStrict([]byte(`{placement: {policy: Failover, clusters: [{name: east, inferenceClusterRef: {name: east}}, {name: west, inferenceClusterRef: {name: west}}]}, roles: [`+
		`{name: router, componentType: router, httproute: {parentRefs: [{name: gw}], hostnames: [h.example.com]}},`+
		`{name: worker, componentType: worker, scaling: {minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}}, template: `+vllmPod+`}]}`), spec); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(`{`+prometheus+`, fleet: {parentRefs: [{name: hub}]}}`), in); err != nil {
		t.Fatal(err)
	}
	v1alpha1.Default(spec)
	inputv1alpha1.Default(in)
	east := func(ready bool, replicas ...key.ReplicaID) scheduling.Snapshot {
		w := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved(replicas...)), schedulingtest.Cluster("west"))
		w.Request = schedulingtest.RequestedAs("east", "east")
		w.States["east"] = schedulingtest.Existing(replicas...)
		w.States["east"].RouterWasReady, w.States["east"].RouterReady = true, true
		if !ready {
			w.States["east"].Ready, w.States["east"].WasReady = nil, nil
		}
		return w
	}
	unready := func(w scheduling.Snapshot) scheduling.Snapshot {
		w.States["east"].RouterWasReady, w.States["east"].RouterReady = false, false
		return w
	}
	// East is left because it is out of reach. The gateway may follow an earlier route, and the endpoint picker in west is not ready.
	outOfReach := func(weighted string) scheduling.Snapshot {
		w := east(true)
		w.Clusters["east"].Status.UnreachableSince = ptr.To(metav1.NewTime(schedulingtest.Noon.Add(-6 * time.Minute)))
		w.States["west"] = schedulingtest.Existing()
		w.States["west"].RouterWasReady, w.States["west"].RouterReady = false, false
		w.MayReceiveTraffic = map[string]bool{naming.FleetBackend("svc", "east"): true, naming.FleetBackend("svc", "west"): true}
		w.Weighted = map[string]bool{naming.FleetBackend("svc", weighted): true}
		return w
	}
	cases := map[string]struct {
		reason   string
		snapshot scheduling.Snapshot
		replicas int32
		want     []string
	}{
		"OutOfReach": {reason: "No endpoint picker was ready elsewhere.", snapshot: outOfReach("east"), want: []string{"east: 1, named", "west: 0"}},
		"Left":       {reason: "The route already leads elsewhere. What was read of that endpoint picker may be old.", snapshot: outOfReach("west"), want: []string{"east: 0", "west: 1, named"}},
		"Sleeps":     {reason: "A request waits in the endpoint picker.", snapshot: east(true), want: []string{"east: 1, named"}},
		"Waits":      {reason: "The first replica waits for capacity, and the endpoint picker is where it was.", snapshot: east(true), replicas: 1, want: []string{"east: 1, named"}},
		"Starts":     {reason: "So do those that come until the first replica is ready.", snapshot: east(false, "worker/0"), replicas: 1, want: []string{"east: 1, named"}},
		"PickerStarts": {
			reason:   "It is the only place. A read that is older than the endpoint picker must not take the requests from it.",
			snapshot: unready(east(false, "worker/0")), replicas: 1, want: []string{"east: 1, named"},
		},
		"Runs": {reason: "It answers.", snapshot: east(true, "worker/0", "worker/1"), replicas: 2, want: []string{"east: 2, named"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec.Roles[1].Replicas = &tc.replicas
			p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, spec, in, tc.snapshot, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tc.want, backendsOf(p)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
