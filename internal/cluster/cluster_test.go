package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

const (
	keyLedger    = "ledger"
	keyProfile   = "profile"
	keyEstimates = "estimates"
	keyUsage     = "usage"

	head          = "apiVersion: fusioninfer.io/v1alpha1\nkind: InferenceCluster\nmetadata: {name: us-east, uid: me, generation: 3}\n"
	typedIn       = head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}]}\n"
	byKueue       = head + "spec: {providerConfigRef: {name: us-east}, admission: Kueue}\n"
	withSelectors = head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeSelector: {a: b}}, {name: q, nodeSelector: {c: d}}]}\n"
	// allocated is the status of a cluster with a reservation.
	allocated = "status: {serviceCount: 1, summary: old, reservations: [{uid: u1, namespace: team, name: s1, replicas: [{role: w, indexes: [0]}]}]}\n"
	reserved  = `{"services":[` + granted + `]}`
	runs      = `{"services":[{"namespace":"team","name":"s1","uid":"u1","shapes":[{"requests":{"nvidia.com/gpu":8000}}],"grants":[{"pods":[1],"started":true,"replicas":["w/0"]}]}]}`
	granted   = `{"namespace":"team","name":"s1","uid":"u1","shapes":[{"requests":{"nvidia.com/gpu":8000}}],"grants":[{"pods":[1],"replicas":["w/0"]}]}`
	reached   = "{kind: Object, apiVersion: kubernetes.m.crossplane.io/v1alpha1, status: {conditions: [{type: Synced, status: 'True'}], atProvider: {manifest: {kind: Namespace}}}}"
)

func doc(tb testing.TB, y string) *fnv1.Resource {
	tb.Helper()
	j, err := yaml.YAMLToJSON([]byte(y))
	if err != nil {
		tb.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(j); err != nil {
		tb.Fatal(err)
	}
	return &fnv1.Resource{Resource: s}
}

// ledgerOf returns a ConfigMap with a ledger. Text that is no ledger is compressed too.
func ledgerOf(ledger string) string {
	b := &bytes.Buffer{}
	z := gzip.NewWriter(b)
	_, _ = z.Write([]byte(ledger + "\n"))
	_ = z.Close()
	return ledgerOfBytes(b.Bytes())
}

func ledgerOfBytes(compressed []byte) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: inferencecluster-us-east, namespace: crossplane-system, resourceVersion: '7', ownerReferences: [{controller: true, uid: me}]}, binaryData: {ledger: %s}}", base64.StdEncoding.EncodeToString(compressed))
}

// ledgerIn returns the text of a rendered ledger, without the services that wait.
func ledgerIn(rsp *fnv1.RunFunctionResponse) string {
	l := rsp.GetDesired().GetResources()[keyLedger].GetResource()
	compressed, err := base64.StdEncoding.DecodeString(kube.Lookup(l, "binaryData", reservation.LedgerKey).GetStringValue())
	if err != nil {
		return err.Error()
	}
	ledger, err := reservation.DecodeLedger(compressed)
	if err != nil {
		return err.Error()
	}
	ledger.Waiting = nil
	text, err := json.Marshal(ledger)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// missingSince is the ledger of a service whose request is missing.
func missingSince(since string) string {
	return strings.Replace(reserved, `"shapes"`, `"missingSince":"`+since+`","shapes"`, 1)
}

// capacityRequest requests one replica with some GPUs.
func capacityRequest(uid, namespace string, gpus int, owner string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-capacity-request, namespace: team, ownerReferences: [{controller: true, uid: %s}]}, data: {request: '{"uid":%q,"namespace":%q,"name":"s%s","podRequirements":{"w":{"requests":{"nvidia.com/gpu":%d}}},"clusters":[{"names":["us-east"],"namespace":%q,"groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":1}}]}]}]}'}}`,
		uid, owner, uid, namespace, strings.TrimPrefix(uid, "u"), 1000*gpus, namespace)
}

// TestEntrypoint proves which of a Gateway's addresses become the entrypoint.
func TestEntrypoint(t *testing.T) {
	const spec = head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}], entrypoint: {gatewayRef: {name: gw, namespace: gateways}, port: 8080}}\n"
	const known = "status: {entrypoint: {address: {type: Hostname, value: known.example.com}, port: 80}}\n"
	const knownIP = "status: {entrypoint: {address: {type: IPAddress, value: 10.0.0.2}, port: 8080}}\n"
	observes := func(addresses string) string {
		return "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, status: {conditions: [{type: Synced, status: 'True'}], atProvider: {manifest: {kind: Gateway, metadata: {name: gw, namespace: gateways}, status: {addresses: [" + addresses + "]}}}}}"
	}
	cases := map[string]struct {
		reason, xr, gateway string
		want                *v1alpha1.EntrypointStatus
	}{
		"IP":         {reason: "It is the first one that is usable.", gateway: observes("{type: IPAddress, value: 127.0.0.1}, {type: IPAddress, value: 10.0.0.1}"), want: v1alpha1.IPEntrypoint("10.0.0.1", 8080)},
		"Order":      {reason: "A Gateway may list them in another order at any time.", xr: knownIP, gateway: observes("{value: 10.0.0.1}, {value: 10.0.0.2}"), want: v1alpha1.IPEntrypoint("10.0.0.2", 8080)},
		"Replaced":   {reason: "The Gateway no longer has the one that is known.", xr: knownIP, gateway: observes("{value: 10.0.0.1}, {value: 10.0.0.3}"), want: v1alpha1.IPEntrypoint("10.0.0.1", 8080)},
		"NoType":     {reason: "An address without a type is an IP address.", gateway: observes("{value: 10.0.0.1}"), want: v1alpha1.IPEntrypoint("10.0.0.1", 8080)},
		"Hostname":   {reason: "Load balancers of AWS have DNS names.", gateway: observes("{type: Hostname, value: a1.elb.us-east-1.amazonaws.com}"), want: v1alpha1.HostnameEntrypoint("a1.elb.us-east-1.amazonaws.com", 8080)},
		"Both":       {reason: "Every gateway can send requests to an IP address.", gateway: observes("{type: Hostname, value: gw.example.com}, {type: IPAddress, value: 10.0.0.1}"), want: v1alpha1.IPEntrypoint("10.0.0.1", 8080)},
		"Internal":   {reason: "Such a name leads into the control plane.", gateway: observes("{type: Hostname, value: kubernetes.default.svc}, {type: Hostname, value: localhost}")},
		"OtherType":  {reason: "Names of other types are no DNS names.", gateway: observes("{type: NamedAddress, value: gw.example.com}")},
		"Unreadable": {reason: "The last known address stays.", xr: known, gateway: "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, status: {conditions: [{type: Synced, status: 'False'}]}}", want: v1alpha1.HostnameEntrypoint("known.example.com", 80)},
		"NotYet":     {reason: "Before an edit, the entrypoint was something else.", xr: known, want: v1alpha1.HostnameEntrypoint("known.example.com", 80)},
		"Former":     {reason: "The Object still has the Gateway from before an edit.", xr: known, gateway: strings.Replace(observes("{value: 10.0.0.1}"), "name: gw", "name: former", 1), want: v1alpha1.HostnameEntrypoint("known.example.com", 80)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{}
			if tc.gateway != "" {
				observed["object/gateway"] = tc.gateway
			}
			req := request(t, spec+tc.xr, observed, nil)
			c, errs := parse(incomingtest.Request(t, req))
			if errs != nil {
				t.Fatal(errs)
			}
			state, err := observe(incomingtest.Request(t, req), c, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, state.entrypoint); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMessagesStay proves that no condition has what changes in a message of provider-kubernetes with each attempt. Only Reachable
// quotes it.
func TestMessagesStay(t *testing.T) {
	const gateway = head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}], entrypoint: {gatewayRef: {name: gw, namespace: gateways}, port: 8080}}\n"
	failed := func(kind string) string {
		return "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: " + kind + ", metadata: {name: x, namespace: crossplane-system}, status: {conditions: [{type: Synced, status: 'False', message: 'observe failed: cannot get object: read tcp 10.1.0.1:4711->10.0.0.1:443: i/o timeout'}]}}"
	}
	cases := map[string]struct {
		reason, xr, key, kind string
		want                  map[string]string
	}{
		"Reachable": {reason: "It has the error, and names the Object.", xr: typedIn, key: "object/reachable", kind: "Object", want: map[string]string{
			Reachable:   "provider-kubernetes cannot read the namespace kube-system there: observe failed: cannot get object: read tcp 10.0.0.1:443: i/o timeout (Object crossplane-system/x)",
			Schedulable: "the cluster cannot be read",
		}},
		"Nodes": {reason: "It names the collection.", xr: strings.Replace(withSelectors, ", {name: q, nodeSelector: {c: d}}", "", 1), key: "object/nodes/p", kind: "ObservedObjectCollection", want: map[string]string{
			NodesObserved:      "pool p: provider-kubernetes cannot read them: ObservedObjectCollection crossplane-system/x says why",
			CapacityConsistent: "not all nodes are known",
			Schedulable:        "the nodes are not known: pool p: provider-kubernetes cannot read them: ObservedObjectCollection crossplane-system/x says why",
		}},
		"Gateway": {reason: "It names the Object.", xr: gateway, key: "object/gateway", kind: "Object", want: map[string]string{
			EntrypointResolved: "Gateway gateways/gw: provider-kubernetes cannot read it: Object crossplane-system/x says why",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}
			observed[tc.key] = failed(tc.kind)
			got := map[string]string{}
			for _, c := range run(t, request(t, tc.xr, observed, map[string][]string{requests: nil})).GetConditions() {
				if c.GetMessage() != "" {
					got[c.GetType()] = c.GetMessage()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func inNamespace(request, namespace string) string {
	return strings.Replace(request, "namespace: team", "namespace: "+namespace, 1)
}

// withRunning is a request whose replica runs already.
func withRunning(request string) string {
	return strings.Replace(request, `"groups":`, `"running":["w/0"],"groups":`, 1)
}

func member(name string, more string) string {
	return "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, status: {conditions: [{type: Synced, status: 'True'}], atProvider: {manifest: {metadata: {name: " + name + ", labels: {a: b, c: d}}, " + more + " status: {allocatable: {nvidia.com/gpu: '8'}, conditions: [{type: Ready, status: 'True'}]}}}}}"
}

// unreported is a member that provider-kubernetes has just made.
func unreported(name string) string {
	return "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, spec: {forProvider: {manifest: {metadata: {name: " + name + "}}}}}"
}

// neverRead is a member that provider-kubernetes could never read.
func neverRead(name string) string {
	return "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, metadata: {name: node-" + name + "}, spec: {forProvider: {manifest: {metadata: {name: " + name + "}}}}, status: {conditions: [{type: Synced, status: 'False'}]}}"
}

// failing is an Object or a collection once provider-kubernetes can no longer read what it observes.
func failing(observed string) string {
	return strings.Replace(observed, "type: Synced, status: 'True'", "type: Synced, status: 'False'", 1)
}

const collection = "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: ObservedObjectCollection, metadata: {name: nodes-of-p}, status: {conditions: [{type: Synced, status: 'True'}], membershipLabel: {m: c}}}"

func request(tb testing.TB, xr string, observed map[string]string, required map[string][]string) *fnv1.RunFunctionRequest {
	tb.Helper()
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: doc(tb, xr), Resources: map[string]*fnv1.Resource{}}}
	for k, o := range observed {
		req.Observed.Resources[k] = doc(tb, o)
	}
	for name, all := range required {
		found := &fnv1.Resources{}
		for _, o := range all {
			found.Items = append(found.Items, doc(tb, o))
		}
		if req.RequiredResources == nil {
			req.RequiredResources = map[string]*fnv1.Resources{}
		}
		req.RequiredResources[name] = found
	}
	return req
}

// runAt takes a request through the steps at some time.
func runAt(req *fnv1.RunFunctionRequest, now time.Time) *fnv1.RunFunctionResponse {
	call := composite.NewCall(req, now)
	c := New(call)
	for _, step := range []func() error{c.Parse, c.Observe, c.Plan, c.Render, c.Require, c.Respond} {
		if err := step(); err != nil {
			call.Refuse(err)
			break
		}
	}
	return call.Response
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func run(tb testing.TB, sent *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	tb.Helper()
	req := incomingtest.Raw(tb, sent)
	before := proto.CloneOf(req)
	rsp := runAt(req, noon)
	if !proto.Equal(before, req) {
		tb.Error("the request was changed")
	}
	var types []string
	for _, c := range rsp.GetConditions() {
		types = append(types, c.GetType())
	}
	if diff := cmp.Diff(ConditionTypes(), types); diff != "" {
		tb.Errorf("every condition is set in every answer: -want +got:\n%s", diff)
	}
	return rsp
}

// outcome is the part of a response that most tests compare.
type outcome struct {
	fatal string
	// ledger has the reservations, and version the resourceVersion over which they are written.
	ledger, version string
	// allocated and waiting are the services of the status, and free its summary.
	allocated, waiting []string
	free               string
	keys               []string
	// not has the conditions that are not True, with their reasons.
	not map[string]string
}

func outcomeOf(rsp *fnv1.RunFunctionResponse) outcome {
	o := outcome{}
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			o.fatal = r.GetMessage()
		}
	}
	for _, c := range rsp.GetConditions() {
		if c.GetStatus() != fnv1.Status_STATUS_CONDITION_TRUE {
			if o.not == nil {
				o.not = map[string]string{}
			}
			o.not[c.GetType()] = c.GetReason()
		}
	}
	if o.fatal != "" {
		return o
	}
	l := rsp.GetDesired().GetResources()[keyLedger].GetResource()
	o.ledger = ledgerIn(rsp)
	o.version = kube.Lookup(l, "metadata", "resourceVersion").GetStringValue()
	status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
	for _, a := range kube.Lookup(status, "reservations").GetListValue().GetValues() {
		name := a.GetStructValue().GetFields()["name"].GetStringValue()
		o.allocated = append(o.allocated, name)
	}
	for _, a := range kube.Lookup(status, "pending").GetListValue().GetValues() {
		o.waiting = append(o.waiting, a.GetStructValue().GetFields()["name"].GetStringValue()+": "+a.GetStructValue().GetFields()["message"].GetStringValue())
	}
	o.free = kube.Lookup(status, "summary").GetStringValue()
	for _, k := range []string{"object/namespace/team", "object/namespace/old", "clusterobject/namespace/team"} {
		if rsp.GetDesired().GetResources()[k] != nil {
			o.keys = append(o.keys, k)
		}
	}
	return o
}

func TestRun(t *testing.T) {
	there := func(more ...string) map[string]string {
		m := map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	one := map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}}
	const otherLedger = "existing/ledger"
	cases := map[string]struct {
		reason   string
		xr       string
		observed map[string]string
		required map[string][]string
		want     outcome
	}{
		"Reserves": {
			reason:   "A reservation is in the ledger, written over the version that was read, and in the status.",
			xr:       typedIn,
			observed: there(),
			required: one,
			want:     outcome{ledger: reserved, version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"}},
		},
		"Kueue": {
			reason:   "Where Kueue admits, everything is granted at once, and nothing is counted.",
			xr:       byKueue,
			observed: there(),
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u2", "team", 8000, "u2")}},
			want: outcome{
				ledger:  `{"services":[{"namespace":"team","name":"s1","uid":"u1","grants":[{"replicas":["w/0"]}]},{"namespace":"team","name":"s2","uid":"u2","grants":[{"replicas":["w/0"]}]}]}`,
				version: "7", allocated: []string{"s1", "s2"}, free: "admission by Kueue, LocalQueue default", keys: []string{"object/namespace/team"},
			},
		},
		"Quotas": {
			reason: "The first entry that matches the namespace has its quota, whatever the request says.",
			xr: strings.Replace(typedIn, "pools:", "quotas: [{namespaces: [other]}, {namespaces: ['te*'], priority: 1, resources: [{name: nvidia.com/gpu, nominalQuota: 2, borrowingLimit: 1}]}, "+
				"{namespaces: [team], resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}], pools:", 1),
			observed: there(),
			required: one,
			want:     outcome{ledger: "{}", version: "7", waiting: []string{"s1: namespace team has 0 of the 3 nvidia.com/gpu that its quota allows (2, and 1 borrowed), and 8 more are requested"}, free: "8/8 nvidia.com/gpu"},
		},
		"NoQuota": {
			reason:   "A namespace without an entry has no quota.",
			xr:       strings.Replace(typedIn, "pools:", "quotas: [{namespaces: ['team-*'], resources: [{name: nvidia.com/gpu, nominalQuota: 0, borrowingLimit: 0}]}], pools:", 1),
			observed: there(),
			required: one,
			want:     outcome{ledger: reserved, version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"}},
		},
		"KueueOnHold": {
			reason:   "A cluster whose admission is Kueue's is stopped like any other.",
			xr:       strings.Replace(byKueue, "admission:", "stopPolicy: Hold, admission:", 1),
			observed: there(),
			required: one,
			want:     outcome{ledger: "{}", version: "7", waiting: []string{"s1: the cluster is on hold"}, free: "admission by Kueue, LocalQueue default", not: map[string]string{Schedulable: "OnHold"}},
		},
		"NoLedger": {
			reason:   "Without a ledger nothing is reserved: two calls could both create it.",
			xr:       typedIn,
			observed: map[string]string{"object/reachable": reached},
			required: one,
			want:     outcome{ledger: "{}", waiting: []string{"s1: the cluster has no ledger yet"}, free: "8/8 nvidia.com/gpu", not: map[string]string{Schedulable: reasonNoLedger}},
		},
		"LedgerDeleted": {
			reason:   "The status has what the ledger had.",
			xr:       typedIn + allocated,
			observed: map[string]string{"object/reachable": reached},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 8, "u0")}, otherLedger: nil},
			want: outcome{
				ledger: reserved, allocated: []string{"s1"}, waiting: []string{"s0: the cluster has no ledger yet"}, free: "0/8 nvidia.com/gpu",
				keys: []string{"object/namespace/team"}, not: map[string]string{Schedulable: reasonNoLedger},
			},
		},
		"LedgerFound": {
			reason:   "A ledger that Crossplane does not know of is used as it is.",
			xr:       typedIn,
			observed: map[string]string{"object/reachable": reached},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 8, "u0")}, otherLedger: {ledgerOf(reserved)}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, waiting: []string{"s0: 0 of 8 nvidia.com/gpu free in pool p, 8 short"},
				free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"},
			},
		},
		"LedgerOfSomebodyElse": {
			reason:   "The ledger of an earlier cluster of this name, which is being deleted.",
			xr:       typedIn,
			observed: map[string]string{"object/reachable": reached},
			required: map[string][]string{otherLedger: {strings.ReplaceAll(ledgerOf(reserved), "uid: me", "uid: other")}},
			want:     outcome{fatal: "nothing was changed: ConfigMap inferencecluster-us-east in namespace crossplane-system has the name of the ledger and belongs to another object: delete it if its owner is gone for good", not: notEvaluated()},
		},
		"LedgerUnreadable": {
			reason:   "All reservations would be lost.",
			xr:       typedIn,
			observed: map[string]string{keyLedger: ledgerOf("{"), "object/reachable": reached},
			required: one,
			want: outcome{
				fatal: "nothing was changed: cannot use ConfigMap inferencecluster-us-east in namespace crossplane-system, which is the ledger of all reservations " +
					"(restore what it had; if you delete it, it is made again from status.reservations, so check first that these are complete): cannot read the ledger: cannot decode: unexpected end of JSON input", not: notEvaluated(),
			},
		},
		"NotAnswered": {
			reason:   "Until Crossplane has resolved the requests, everything stays as it is.",
			xr:       typedIn + allocated,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/namespace/old": reached},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, free: "old", keys: []string{"object/namespace/old"},
				not: map[string]string{RequestsResolved: "NotResolved", CapacityConsistent: "NotCounted", Schedulable: "RequestsNotResolved"},
			},
		},
		"Withdrawn": {
			reason:   "What a request does not have any more is free again at once, and its namespace is left alone.",
			xr:       typedIn + allocated,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/namespace/old": reached},
			required: map[string][]string{requests: {strings.Replace(capacityRequest("u1", "team", 8, "u1"), "us-east", "us-west", 1)}},
			want:     outcome{ledger: "{}", version: "7", free: "8/8 nvidia.com/gpu"},
		},
		"Missing": {
			reason:   "What is granted is kept while its request is missing, and nobody else gets it.",
			xr:       typedIn + allocated,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/namespace/team": reached},
			required: map[string][]string{requests: {capacityRequest("u0", "team", 1, "u0")}},
			want: outcome{
				ledger: missingSince("2026-03-01T12:00:00Z"), version: "7", allocated: []string{"s1"}, waiting: []string{"s0: 0 of 8 nvidia.com/gpu free in pool p, 1 short"}, free: "0/8 nvidia.com/gpu",
				keys: []string{"object/namespace/team"},
			},
		},
		"Unreadable": {
			reason:   "So it is while the request cannot be read.",
			xr:       typedIn + allocated,
			observed: map[string]string{keyLedger: ledgerOf(missingSince("2026-03-01T11:58:01Z")), "object/reachable": reached},
			required: map[string][]string{requests: {"{metadata: {name: s1-capacity-request, namespace: team}, data: {request: '{'}}"}},
			want: outcome{
				ledger: missingSince("2026-03-01T11:58:01Z"), version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", not: map[string]string{RequestsResolved: "InvalidRequests"},
			},
		},
		"Back": {
			reason:   "A request that is read again is not missing.",
			xr:       typedIn + allocated,
			observed: map[string]string{keyLedger: ledgerOf(missingSince("2026-03-01T11:50:00Z")), "object/reachable": reached},
			required: one,
			want:     outcome{ledger: reserved, version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"}},
		},
		"Gone": {
			reason:   "What is missing for long, and has no Objects, is free again.",
			xr:       typedIn + allocated,
			observed: map[string]string{keyLedger: ledgerOf(missingSince("2026-03-01T11:58:00Z")), "object/reachable": reached, "object/namespace/old": reached},
			required: map[string][]string{requests: nil, clusterScoped: nil, objectsOfS1: nil},
			want:     outcome{ledger: "{}", version: "7", free: "8/8 nvidia.com/gpu"},
		},
		"ForgedRequests": {
			reason:   "A request counts only in the namespace of its service, if the service controls it, and once.",
			xr:       typedIn,
			observed: there(),
			required: map[string][]string{requests: {capacityRequest("u1", "other", 1, "u1"), capacityRequest("u2", "team", 1, "u1"), "{metadata: {name: bad, namespace: team}}", capacityRequest("u3", "team", 1, "u3"), capacityRequest("u3", "team", 1, "u3")}},
			want: outcome{
				ledger: strings.NewReplacer("u1", "u3", "s1", "s3", "8000", "1000").Replace(reserved), version: "7", allocated: []string{"s3"}, free: "7/8 nvidia.com/gpu", keys: []string{"object/namespace/team"},
				not: map[string]string{RequestsResolved: "InvalidRequests"},
			},
		},
		"StolenUID": {
			reason:   "A request in another namespace with the UID of a service takes nothing from it, though it sorts first.",
			xr:       typedIn,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached},
			required: map[string][]string{requests: {inNamespace(capacityRequest("u1", "aa-mallory", 8, "u1"), "aa-mallory"), capacityRequest("u1", "team", 8, "u1")}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, waiting: []string{"s1: 0 of 8 nvidia.com/gpu free in pool p, 8 short"}, free: "0/8 nvidia.com/gpu",
				keys: []string{"object/namespace/team"},
			},
		},
		"FalseRunning": {
			reason:   "A service that claims to run more than fits is reported, and others get their reservations.",
			xr:       typedIn,
			observed: there(),
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), inNamespace(withRunning(capacityRequest("u0", "aa-mallory", 800, "u0")), "aa-mallory")}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, waiting: []string{"s0: 1 replicas run without a reservation: 8 of 8 nvidia.com/gpu free in pool p, 792 short"}, free: "0/8 nvidia.com/gpu",
				keys: []string{"object/namespace/team"}, not: map[string]string{CapacityConsistent: "RunsWithoutReservation"},
			},
		},
		"Running": {
			reason:   "What ran before there was a ledger is reserved first.",
			xr:       typedIn,
			observed: there(),
			required: map[string][]string{requests: {capacityRequest("u0", "team", 8, "u0"), withRunning(capacityRequest("u1", "team", 8, "u1"))}},
			want: outcome{
				ledger: runs, version: "7", allocated: []string{"s1"}, waiting: []string{"s0: 0 of 8 nvidia.com/gpu free in pool p, 8 short"}, free: "0/8 nvidia.com/gpu",
				keys: []string{"object/namespace/team"},
			},
		},
		"RunningWithoutLedger": {
			reason:   "The call that creates the ledger again reserves it too, though nothing is left of the old one.",
			xr:       typedIn,
			observed: map[string]string{"object/reachable": reached},
			required: map[string][]string{requests: {withRunning(capacityRequest("u1", "team", 8, "u1"))}},
			want:     outcome{ledger: runs, allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"}, not: map[string]string{Schedulable: reasonNoLedger}},
		},
		"Unreachable": {
			reason:   "A cluster that cannot be read keeps its reservations.",
			xr:       typedIn,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": strings.ReplaceAll(reached, "'True'", "'False'")},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 8, "u0")}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, waiting: []string{"s0: the cluster cannot be read"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"},
				not: map[string]string{Reachable: remote.CannotBeRead, Schedulable: scheduling.ReasonUnreachable},
			},
		},
		"NodesUnknown": {
			reason:   "Nodes that have not been read do not count as absent.",
			xr:       withSelectors,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/nodes/p": collection},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 8, "u0")}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"},
				waiting: []string{"s0: the nodes are not known: pool p: they have not been read yet; pool q: provider-kubernetes has not reported it yet"},
				keys:    []string{"object/namespace/team"}, not: map[string]string{NodesObserved: "NotObserved", CapacityConsistent: "NotCounted", Schedulable: reasonNodes},
			},
		},
		"NodesRead": {
			reason:   "A node of two pools counts once. One that is cordoned, or not known to be ready, does not count.",
			xr:       withSelectors,
			observed: there("object/nodes/p", collection, "object/nodes/q", collection),
			required: map[string][]string{
				requests: nil, nodesOf("p"): {member("a", ""), member("b", "spec: {unschedulable: true},")},
				nodesOf("q"): {member("a", ""), member("c", ""), strings.ReplaceAll(member("d", ""), "type: Ready, status: 'True'", "type: Ready, status: Unknown")},
			},
			want: outcome{ledger: "{}", version: "7", free: "16/16 nvidia.com/gpu"},
		},
		"NodeJoins": {
			reason:   "A node that is not reported yet is no reason to forget those that are. It counts in no other pool.",
			xr:       withSelectors,
			observed: there("object/nodes/p", collection, "object/nodes/q", collection),
			required: map[string][]string{
				requests: nil, nodesOf("p"): {member("a", ""), unreported("b")}, nodesOf("q"): {member("b", ""), member("c", "")},
			},
			want: outcome{ledger: "{}", version: "7", free: "16/16 nvidia.com/gpu"},
		},
		"NoneReported": {
			reason:   "While none is reported, it is not known which nodes there are. Where there are none, it is.",
			xr:       withSelectors,
			observed: there("object/nodes/p", collection, "object/nodes/q", collection),
			required: map[string][]string{requests: {capacityRequest("u0", "team", 8, "u0")}, nodesOf("p"): {unreported("a"), unreported("b")}, nodesOf("q"): {}},
			want: outcome{
				ledger: "{}", version: "7", waiting: []string{"s0: the nodes are not known: pool p: none of them has been read yet"},
				not: map[string]string{NodesObserved: "NotObserved", CapacityConsistent: "NotCounted", Schedulable: reasonNodes},
			},
		},
		"ListFails": {
			reason:   "Nodes that are no longer listed may be gone. All count as they were read last, and nothing new is reserved on them.",
			xr:       withSelectors,
			observed: there("object/nodes/p", failing(collection), "object/nodes/q", collection),
			required: map[string][]string{requests: {capacityRequest("u0", "team", 8, "u0")}, nodesOf("p"): {member("a", ""), failing(member("b", ""))}, nodesOf("q"): {}},
			want: outcome{
				ledger: "{}", version: "7", free: "16/16 nvidia.com/gpu",
				waiting: []string{"s0: the nodes are not known: pool p: provider-kubernetes cannot read them: ObservedObjectCollection nodes-of-p says why"},
				not:     map[string]string{NodesObserved: "NotObserved", CapacityConsistent: "NotCounted", Schedulable: reasonNodes},
			},
		},
		"NoneEverRead": {
			reason:   "Nodes that are listed and cannot be read are not gone: the grant is not more than the cluster has.",
			xr:       withSelectors,
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/nodes/p": collection, "object/nodes/q": collection},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 8, "u0")}, nodesOf("p"): {unreported("a"), neverRead("b")}, nodesOf("q"): {}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, keys: []string{"object/namespace/team"},
				waiting: []string{"s0: the nodes are not known: pool p: provider-kubernetes cannot read them: Object node-b says why"},
				not:     map[string]string{NodesObserved: "NotObserved", CapacityConsistent: "NotCounted", Schedulable: reasonNodes},
			},
		},
		"NoneReadAnyMore": {
			reason:   "So it is where they were read before. They count as they were read last.",
			xr:       withSelectors,
			observed: there("object/nodes/p", collection, "object/nodes/q", collection),
			required: map[string][]string{requests: nil, nodesOf("p"): {failing(member("a", ""))}, nodesOf("q"): {member("c", "")}},
			want: outcome{
				ledger: "{}", version: "7", free: "16/16 nvidia.com/gpu",
				not: map[string]string{NodesObserved: "NotObserved", CapacityConsistent: "NotCounted", Schedulable: reasonNodes},
			},
		},
		"OneCannotBeRead": {
			reason:   "A node that is listed and cannot be read for a moment counts as it was read last. One that never was does not count, in no pool.",
			xr:       withSelectors,
			observed: there("object/nodes/p", collection, "object/nodes/q", collection),
			required: map[string][]string{
				requests: nil, nodesOf("p"): {member("a", ""), failing(member("b", "")), neverRead("c")}, nodesOf("q"): {member("c", ""), member("d", "")},
			},
			want: outcome{ledger: "{}", version: "7", free: "24/24 nvidia.com/gpu"},
		},
		"NodesOutOfReach": {
			reason:   "The condition says that the cluster is out of reach, and not that of each pool.",
			xr:       withSelectors,
			observed: map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": failing(reached), "object/nodes/p": failing(collection), "object/nodes/q": collection},
			required: map[string][]string{requests: nil, nodesOf("p"): {failing(member("a", ""))}, nodesOf("q"): {failing(member("b", ""))}},
			want: outcome{
				ledger: "{}", version: "7", free: "16/16 nvidia.com/gpu",
				not: map[string]string{Reachable: remote.CannotBeRead, NodesObserved: reasonStale, Schedulable: scheduling.ReasonUnreachable},
			},
		},
		"NodesOfBefore": {
			reason:   "After an edit of its labels, a pool is observed with nodes that lack them.",
			xr:       withSelectors,
			observed: there("object/nodes/p", collection, "object/nodes/q", collection),
			required: map[string][]string{
				requests: nil, nodesOf("p"): {member("a", ""), strings.Replace(member("b", ""), "a: b", "a: former", 1), strings.Replace(member("c", ""), "a: b, ", "", 1)}, nodesOf("q"): {},
			},
			want: outcome{ledger: "{}", version: "7", free: "8/8 nvidia.com/gpu"},
		},
		"Hold": {
			reason:   "A cluster on hold keeps its reservations, and reserves nothing new.",
			xr:       strings.Replace(typedIn, "pools:", "stopPolicy: Hold, stopMessage: an audit, pools:", 1),
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 1, "u0")}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, waiting: []string{"s0: the cluster is on hold: an audit"}, free: "0/8 nvidia.com/gpu",
				keys: []string{"object/namespace/team"}, not: map[string]string{Schedulable: scheduling.ReasonOnHold},
			},
		},
		"NodesGone": {
			reason:   "With fewer nodes than are reserved, reservations stay, and nothing new is reserved.",
			xr:       strings.Replace(typedIn, "gpu: 8", "gpu: 4", 1),
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached},
			required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1"), capacityRequest("u0", "team", 1, "u0")}},
			want: outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, waiting: []string{"s0: more is reserved than the cluster has"},
				free: "4/4 nvidia.com/gpu", keys: []string{"object/namespace/team"}, not: map[string]string{CapacityConsistent: ReasonOvercommitted, Schedulable: ReasonOvercommitted},
			},
		},
		"PodsChanged": {
			reason:   "Pods that fit no node any more keep what they had, and others get what is free.",
			xr:       strings.Replace(typedIn, "nodeCount: 1", "nodeCount: 2", 1),
			observed: map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached},
			required: map[string][]string{requests: {strings.NewReplacer(`"uid"`, `"generation":1,"uid"`, `"pods"`, `"generation":1,"pods"`).Replace(capacityRequest("u1", "team", 9, "u1")), capacityRequest("u0", "team", 1, "u0")}},
			want: outcome{
				ledger:  `{"services":[` + granted + "," + strings.NewReplacer("u1", "u0", "s1", "s0", "8000", "1000").Replace(granted) + `]}`,
				version: "7", allocated: []string{"s1", "s0"}, free: "7/16 nvidia.com/gpu",
				waiting: []string{"s1: what was reserved before is kept: 1 pod does not fit: no node has 9 nvidia.com/gpu free, although the nodes together have enough"},
				keys:    []string{"object/namespace/team"}, not: map[string]string{CapacityConsistent: "GrowthPending"},
			},
		},
		"ForClaims": {
			reason:   "A ProviderConfig of the other API is read for cluster-scoped Objects.",
			xr:       strings.Replace(typedIn, "{name: us-east}, pools", "{name: us-east, apiGroup: kubernetes.crossplane.io}, pools", 1),
			observed: map[string]string{keyLedger: ledgerOf("{}"), "clusterobject/reachable": strings.Replace(reached, "kubernetes.m.crossplane.io/v1alpha1", "kubernetes.crossplane.io/v1alpha2", 1)},
			required: one,
			want:     outcome{ledger: reserved, version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"clusterobject/namespace/team"}},
		},
		"Refused": {
			reason:   "A spec that is wrong changes nothing.",
			xr:       strings.Replace(typedIn, "nodeCount: 1", "nodeCount: -1", 1),
			observed: there(),
			want: outcome{
				fatal: "nothing was changed: spec.pools[0].nodeCount: Invalid value: -1: must be from 0 to 5000",
				not:   with(notEvaluated(), composite.Accepted, "InvalidSpec"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(run(t, request(t, tc.xr, tc.observed, tc.required)))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func notEvaluated() map[string]string {
	m := map[string]string{}
	for _, c := range ConditionTypes() {
		m[c] = "NotEvaluated"
	}
	return m
}

func with(m map[string]string, k, v string) map[string]string {
	m[k] = v
	return m
}

// TestNothingIsDeletedThere proves that no Object may delete anything in the cluster. So an
// abandoned InferenceCluster can be deleted: provider-kubernetes releases an Object without
// the policy Delete before it connects.
func TestNothingIsDeletedThere(t *testing.T) {
	for _, policy := range []string{"Hold", "Drain", "Abandon"} {
		xr := strings.Replace(typedIn, "pools:", "stopPolicy: "+policy+", pools:", 1)
		rsp := run(t, request(t, xr, map[string]string{keyLedger: ledgerOf(reserved)}, map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}}))
		objects := 0
		for key, r := range rsp.GetDesired().GetResources() {
			if kube.Lookup(r.GetResource(), "kind").GetStringValue() != "Object" {
				continue
			}
			objects++
			policies := kube.Lookup(r.GetResource(), "spec", "managementPolicies").GetListValue().GetValues()
			if len(policies) == 0 {
				t.Errorf("%s may do everything", key)
			}
			for _, p := range policies {
				if s := p.GetStringValue(); s != "Observe" && s != "Create" && s != "Update" {
					t.Errorf("%s may %s", key, s)
				}
			}
		}
		if objects != 2 {
			t.Errorf("want the Objects of kube-system and of the namespace, got %d", objects)
		}
		// An abandoned cluster is not waited for.
		if ttl := rsp.GetMeta().GetTtl().AsDuration(); (ttl == composite.WhileStable) != (policy == "Abandon") {
			t.Errorf("%s: the answer lives for %s", policy, ttl)
		}
	}
}

// TestUnreachableSince proves that the time from which failover counts is in the status: it
// is set once, outlives what becomes of the conditions, and goes when the cluster is read. The
// time of the latter stays.
func TestUnreachableSince(t *testing.T) {
	const failed = "conditions: [{type: Reachable, status: Unknown, reason: FatalError, lastTransitionTime: '2026-03-01T11:59:00Z'}]"
	now := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600)).Add(time.Millisecond)
	lost := strings.ReplaceAll(reached, "'True'", "'False'")
	reported := strings.ReplaceAll(reached, "{manifest: {kind: Namespace}}", "{}")
	nobody := map[string][]string{requests: nil}
	cases := map[string]struct {
		reason, before, reachable string
		required                  map[string][]string
		want, back                string
	}{
		"Readable":      {reason: "A cluster that is read is not out of reach.", reachable: reached, required: nobody},
		"Lost":          {reason: "It is out of reach from now on, to the second.", reachable: lost, required: nobody, want: "2026-03-01T12:00:00Z"},
		"StillLost":     {reason: "The time stays, whatever the conditions say.", before: "status: {unreachableSince: '2026-03-01T11:00:00Z', " + failed + "}\n", reachable: lost, required: nobody, want: "2026-03-01T11:00:00Z"},
		"NobodyAnswers": {reason: "So it does while everything else of the status stays as it was.", before: "status: {unreachableSince: '2026-03-01T11:00:00Z'}\n", reachable: lost, want: "2026-03-01T11:00:00Z"},
		"LostThen":      {reason: "It starts then as well.", before: allocated, reachable: lost, want: "2026-03-01T12:00:00Z"},
		"Back":          {reason: "It goes when the cluster is read again.", before: "status: {unreachableSince: '2026-03-01T11:00:00Z'}\n", reachable: reached, required: nobody, back: "2026-03-01T12:00:00Z"},
		"BackThen":      {reason: "It goes even while the requests are not resolved.", before: "status: {unreachableSince: '2026-03-01T11:00:00Z'}\n", reachable: reached, back: "2026-03-01T12:00:00Z"},
		"BackEarlier":   {reason: "The time at which it was read again stays.", before: "status: {lastOutage: {since: '2026-03-01T10:00:00Z', until: '2026-03-01T11:00:00Z'}}\n", reachable: reached, required: nobody, back: "2026-03-01T11:00:00Z"},
		"LostAgain":     {reason: "It stays in the next outage.", before: "status: {lastOutage: {since: '2026-03-01T10:00:00Z', until: '2026-03-01T11:00:00Z'}}\n", reachable: lost, want: "2026-03-01T12:00:00Z", back: "2026-03-01T11:00:00Z"},
		"BackOnceMore": {
			reason:    "A short one soon after an outage does not hide it.",
			before:    "status: {unreachableSince: '2026-03-01T11:59:00Z', lastOutage: {since: '2026-03-01T10:00:00Z', until: '2026-03-01T11:51:00Z'}}\n",
			reachable: reached, required: nobody, back: "2026-03-01T11:51:00Z",
		},
		"BackFromTheLonger": {
			reason:    "Nor does a short one hide an outage soon after it.",
			before:    "status: {unreachableSince: '2026-03-01T11:55:00Z', lastOutage: {since: '2026-03-01T11:50:00Z', until: '2026-03-01T11:51:00Z'}}\n",
			reachable: reached, required: nobody, back: "2026-03-01T12:00:00Z",
		},
		"BackFromTheNext": {
			reason:    "The next outage counts from then on.",
			before:    "status: {unreachableSince: '2026-03-01T11:45:00Z', lastOutage: {since: '2026-03-01T10:00:00Z', until: '2026-03-01T11:40:00Z'}}\n",
			reachable: reached, required: nobody, back: "2026-03-01T12:00:00Z",
		},
		"NotObserved":  {reason: "What nobody has looked at yet is not out of reach.", required: nobody},
		"NotReported":  {reason: "Nor is what the provider has not reported.", reachable: reported, required: nobody},
		"ObservedAnew": {reason: "An Object that is made anew says nothing: the cluster has not been read since.", before: "status: {unreachableSince: '2026-03-01T11:00:00Z'}\n", required: nobody, want: "2026-03-01T11:00:00Z"},
		"NoTime":       {reason: "What is no time counts from now.", before: "status: {unreachableSince: noon}\n", reachable: lost, required: nobody, want: "2026-03-01T12:00:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOf("{}")}
			if tc.reachable != "" {
				observed["object/reachable"] = tc.reachable
			}
			req := request(t, typedIn+tc.before, observed, tc.required)
			rsp := runAt(incomingtest.Raw(t, req), now)
			status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status")
			got := []string{kube.Lookup(status.GetStructValue(), "unreachableSince").GetStringValue(), kube.Lookup(status.GetStructValue(), "lastOutage", "until").GetStringValue()}
			if diff := cmp.Diff([]string{tc.want, tc.back}, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSize proves that an API server can always store what becomes of many services: the
// ledger, which is a ConfigMap, and the cluster with its status. A cluster that is full of
// services says so, keeps its reservations, and reserves nothing more.
func TestSize(t *testing.T) {
	const (
		// ofConfigMap is what an API server takes, ofObject what etcd does, ofResponse what Crossplane does.
		ofConfigMap, ofObject, ofResponse = 1 << 20, 1536 << 10, 4 << 20
	)
	cases := map[string]struct {
		reason string
		// requests of a pod besides its GPU, and replicas of a service, in one group or in a
		// group each.
		requests, replicas int
		grouped            bool
		nodes              int
		// step is how many services come at once, three times. full tells that these are more than
		// a ledger takes.
		step int
		full bool
		// forged requests have the longest UIDs, and all answers in one part.
		forged bool
	}{
		"Forged":        {reason: "Somebody writes requests that no service has.", replicas: 1, nodes: 0, step: 1500, forged: true},
		"ManyServices":  {reason: "Services of one replica each, with the longest names.", replicas: 1, nodes: 5000, step: 4000, full: true},
		"ManyReplicas":  {reason: "Each service has fifty replicas.", replicas: 50, nodes: 5000, step: 60},
		"ManyGroups":    {reason: "Each service has fifty replica groups, and the status lists the replicas of each.", replicas: 50, grouped: true, nodes: 5000, step: 60},
		"ManyResources": {reason: "Each pod requests many resources.", requests: 60, replicas: 1, nodes: 5000, step: 100},
		"ManyWait":      {reason: "No service gets capacity.", replicas: 1, nodes: 0, step: 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var resources, allocatable strings.Builder
			for i := range tc.requests {
				fmt.Fprintf(&resources, `,"example.com/%s-%02d":1000`, strings.Repeat("r", 50), i)
				fmt.Fprintf(&allocatable, `, example.com/%s-%02d: 1000`, strings.Repeat("r", 50), i)
			}
			xr := head + fmt.Sprintf("spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: %d, allocatable: {nvidia.com/gpu: 1000%s}}]}\n", tc.nodes, allocatable.String())
			role := strings.Repeat("w", 50)
			var groups, replicas []string
			for i := range tc.replicas {
				if tc.grouped {
					groups = append(groups, fmt.Sprintf(`{"name":"%d","replicas":[{"name":"%d/%s/0","pods":{"w":1}}]}`, i, i, role))
					continue
				}
				replicas = append(replicas, fmt.Sprintf(`{"name":"%s/%d","pods":{"w":1}}`, role, i))
			}
			if !tc.grouped {
				groups = []string{fmt.Sprintf(`{"name":"0","replicas":[%s]}`, strings.Join(replicas, ","))}
			}
			req := request(t, xr, map[string]string{"object/reachable": reached}, map[string][]string{requests: nil})
			ledger, kept := "{}", 0
			random := rand.New(rand.NewPCG(1, 2))
			for n := 0; n < 3*tc.step; {
				for range tc.step {
					n++
					uid, service := letters(random, 36), letters(random, 63)
					for tc.forged && (len(uid) < 253 || profile.PartOf(uid) != 0) {
						uid = letters(random, 253)
					}
					request, err := structpb.NewStruct(map[string]any{
						"apiVersion": "v1", "kind": "ConfigMap",
						"metadata": map[string]any{
							"name": uid, "namespace": service,
							"ownerReferences": []any{map[string]any{"controller": true, "uid": uid}},
						},
						"data": map[string]any{"request": fmt.Sprintf(
							`{"uid":%q,"namespace":%q,"name":%q,"podRequirements":{"w":{"requests":{"nvidia.com/gpu":1000%s}}},"clusters":[{"names":["us-east"],"namespace":"models","groups":[%s]}]}`,
							uid, service, service, resources.String(), strings.Join(groups, ","))},
					})
					if err != nil {
						t.Fatal(err)
					}
					req.RequiredResources[requests].Items = append(req.RequiredResources[requests].GetItems(), &fnv1.Resource{Resource: request})
				}
				req.Observed.Resources[keyLedger] = doc(t, ledgerOf(ledger))
				rsp := run(t, req)
				o := outcomeOf(rsp)
				if o.fatal != "" {
					t.Fatal(o.fatal)
				}
				encoded := kube.Lookup(rsp.GetDesired().GetResources()[keyLedger].GetResource(), "binaryData", reservation.LedgerKey).GetStringValue()
				if len(encoded) > ofConfigMap {
					t.Fatalf("%s With %d services the ledger has %d bytes, and a ConfigMap at most %d", tc.reason, n, len(encoded), ofConfigMap)
				}
				for i := range profile.Parts {
					part := kube.Lookup(rsp.GetDesired().GetResources()[key.Answers(i).String()].GetResource(), "binaryData", profile.AnswersKey).GetStringValue()
					if len(part) > ofConfigMap {
						t.Fatalf("%s With %d services, a part of the answers has %d bytes, and a ConfigMap at most %d", tc.reason, n, len(part), ofConfigMap)
					}
				}
				if size := proto.Size(rsp); size > ofResponse {
					t.Fatalf("%s With %d services, the response has %d bytes, and Crossplane takes at most %d", tc.reason, n, size, ofResponse)
				}
				j, err := rsp.GetDesired().GetComposite().GetResource().MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if size := len(j) + len(xr); size > ofObject {
					t.Fatalf("%s With %d services the cluster has %d bytes, and an object at most %d", tc.reason, n, size, ofObject)
				}
				granted := int(kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "serviceCount").GetNumberValue())
				if granted < kept {
					t.Fatalf("%s With %d services %d have grants, and %d had them before", tc.reason, n, granted, kept)
				}
				ledger, kept = o.ledger, granted
				full := slices.ContainsFunc(rsp.GetConditions(), func(c *fnv1.Condition) bool { return c.GetType() == Schedulable && c.GetReason() == reasonFull })
				t.Logf("with %d services, %d have grants, the ledger has %d bytes and the cluster %d, full: %t", n, kept, len(encoded), len(j)+len(xr), full)
				if full && (kept == 0 || kept == n) {
					t.Fatalf("%s %d of %d services have grants, and it says that it is full", tc.reason, kept, n)
				}
				if n == 3*tc.step && full != tc.full {
					t.Fatalf("%s With %d services it is full: %t, want %t", tc.reason, n, full, tc.full)
				}
			}
		})
	}
}

// TestZeroAmounts proves that resources of which pods need none do not fill the ledger: it leaves them out. Their names cannot be
// compressed, and nothing limits them, because they fit everywhere.
func TestZeroAmounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	asked := func(namespace string, roles, resources int) string {
		var shapes, replicas []string
		for i := range roles {
			amounts := make([]string, resources)
			for j := range amounts {
				amounts[j] = fmt.Sprintf(`"%s.com/%s":0`, letters(random, 200), letters(random, 60))
			}
			shapes = append(shapes, fmt.Sprintf(`"w%d":{"requests":{%s}}`, i, strings.Join(amounts, ",")))
			replicas = append(replicas, fmt.Sprintf(`{"name":"w%d/0","pods":{"w%d":1}}`, i, i))
		}
		text := fmt.Sprintf(`{"uid":%q,"namespace":%q,"name":"s","podRequirements":{%s},"clusters":[{"names":["us-east"],"namespace":"models","groups":[{"name":"0","replicas":[%s]}]}]}`,
			namespace, namespace, strings.Join(shapes, ","), strings.Join(replicas, ","))
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: s, namespace: %s, ownerReferences: [{controller: true, uid: %s}]}, data: {request: '%s'}}", namespace, namespace, text)
	}
	xr := head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 1}}]}\n"
	req := request(t, xr, map[string]string{"object/reachable": reached, keyLedger: ledgerOf("{}")}, map[string][]string{requests: {asked("a", 50, 60), asked("b", 50, 60), asked("friendly", 1, 0)}})
	o := outcomeOf(run(t, req))
	if o.fatal != "" || o.not[Schedulable] != "" || len(o.allocated) != 3 {
		t.Errorf("not all services have their reservations: %v %v %q", o.allocated, o.not, o.fatal)
	}
}

// TestTooLarge proves which requests are not read where all of them have more than 100 bytes.
func TestTooLarge(t *testing.T) {
	cases := map[string]struct {
		reason string
		// requests have the sizes of those of each namespace.
		requests map[string][]int
		want     []string
	}{
		"Fit":    {"All of them are read.", map[string][]int{"a": {60}, "b": {40}}, nil},
		"Half":   {"Each of two namespaces has half.", map[string][]int{"a": {60}, "b": {60}}, []string{"a/0", "b/0"}},
		"Rest":   {"A namespace that needs less leaves the rest to the other.", map[string][]int{"a": {90}, "b": {10}}, nil},
		"One":    {"One that has too many loses its largest.", map[string][]int{"a": {50, 10, 30, 20}, "b": {10}}, []string{"a/0"}},
		"Equal":  {"Of equal ones, those with the first names are read.", map[string][]int{"a": {40, 40, 40, 40}, "b": {10}}, []string{"a/2", "a/3"}},
		"Others": {"What one leaves goes to all that need more.", map[string][]int{"a": {45}, "b": {45}, "c": {10}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var found []incoming.Object
			for _, namespace := range slices.Sorted(maps.Keys(tc.requests)) {
				for i, n := range tc.requests[namespace] {
					found = append(found, incomingtest.Object(t, doc(t, fmt.Sprintf("{metadata: {name: %q, namespace: %s}, data: {request: %s}}", strconv.Itoa(i), namespace, strings.Repeat("x", n))).GetResource()))
				}
			}
			var got []string
			for name, large := range tooLarge(found, 100) {
				if large {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestShortReplicas proves how many replicas are read at most, however short their texts are, and that a real fleet is read as a whole.
func TestShortReplicas(t *testing.T) {
	ask := func(namespace, name, text string) incoming.Object {
		o, err := structpb.NewStruct(map[string]any{"metadata": map[string]any{"name": name, "namespace": namespace}, "data": map[string]any{"request": text}})
		if err != nil {
			t.Fatal(err)
		}
		return incomingtest.Object(t, o)
	}
	replicas := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
		}
		return strings.Join(all, ",")
	}
	const (
		sent   = `{"uid":"5a0c7d0e-5f3b-4f0f-9d56-3b1d0b6c2a11","namespace":"%[1]s","name":"%[2]s","created":"2026-03-01T12:00:00Z","generation":1,"podRequirements":{"w/leader":{"requests":{"nvidia.com/gpu":8000}}},"clusters":[{"names":["us-east"],"name":"*","namespace":"%[1]s","groups":[%[3]s]}]}`
		spread = `{"name":"w/#","replicas":[{"name":"w/#","pods":{"w/leader":1},"generation":1}]}`
	)
	many := func(requests int, text func(i int) string) []incoming.Object {
		all := make([]incoming.Object, requests)
		for i := range all {
			all[i] = ask("a", strconv.Itoa(i), text(i))
		}
		return all
	}
	service := fmt.Sprintf(sent, "a", "s", replicas(6, spread))
	large := fmt.Sprintf(sent, "a", "s", replicas(4096, spread))
	short := fmt.Sprintf(sent, "a", "s", `{"replicas":[`+replicas(4096, `{"name":"a/#","pods":{"a":1}}`)+`]}`)
	empty := fmt.Sprintf(sent, "a", "s", replicas(4096, `{}`))
	texts := fmt.Sprintf(sent, "a", "s", `{"replicas":[`+replicas(16384, `"w/#"`)+`]}`)
	cases := map[string]struct {
		reason string
		found  []incoming.Object
		read   int
	}{
		"Fleet":  {"10,000 services of six replicas each are read.", many(10_000, func(int) string { return service }), 10_000},
		"Large":  {"So are the largest services.", many(20, func(int) string { return large }), 20},
		"Short":  {"Each replica counts, although it has 30 bytes. Decoded, it has some hundred.", many(180, func(int) string { return short }), 47},
		"Groups": {"So does a group without any.", many(1500, func(int) string { return empty }), 95},
		"Texts":  {"So does each text, such as the name of a replica that runs.", many(180, func(int) string { return texts }), 95},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := 0
			refused := tooLarge(append(tc.found, ask("friendly", "s", service)), maxRead)
			for _, o := range tc.found {
				if !refused[nameOf(o)] {
					read++
				}
			}
			if read != tc.read || refused["friendly/s"] {
				t.Errorf("%s %d of %d are read, want %d. That of another namespace is read: %t", tc.reason, read, len(tc.found), tc.read, !refused["friendly/s"])
			}
		})
	}
}

// TestRequestsOfOneTenant proves that the requests of one namespace, which are too large together, stop neither the cluster nor the
// services of others.
func TestRequestsOfOneTenant(t *testing.T) {
	const sent = `{"uid":%[1]q,"namespace":%[2]q,"name":%[2]q,"podRequirements":{"w":{"requests":{"nvidia.com/gpu":1}}},"clusters":[{"names":["us-east"],"namespace":"models","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":1}}]}]}]}`
	xr := head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 100}}]}\n"
	req := request(t, xr, map[string]string{"object/reachable": reached, keyLedger: ledgerOf("{}")}, nil)
	req.RequiredResources = map[string]*fnv1.Resources{requests: {}}
	ask := func(namespace, uid string, spaces int) {
		request, err := structpb.NewStruct(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": uid, "namespace": namespace, "ownerReferences": []any{map[string]any{"controller": true, "uid": uid}}},
			"data":     map[string]any{"request": fmt.Sprintf(sent, uid, namespace) + strings.Repeat(" ", spaces)},
		})
		if err != nil {
			t.Fatal(err)
		}
		req.RequiredResources[requests].Items = append(req.RequiredResources[requests].GetItems(), &fnv1.Resource{Resource: request})
	}
	for i := range 30 {
		ask("hostile", fmt.Sprint("h", i), 1<<20-1000)
	}
	ask("friendly", "f", 0)
	o := outcomeOf(run(t, req))
	if o.fatal != "" || o.not[Schedulable] != "" || len(o.allocated) != 25 {
		t.Errorf("want 24 services of one namespace and the other's to be served: %d %v %q", len(o.allocated), o.not, o.fatal)
	}
	if got := fmt.Sprint(o.allocated); !strings.Contains(got, "friendly") {
		t.Errorf("the other namespace gets nothing: %s", got)
	}
}

// TestUsage proves that a cluster cannot be deleted before its services have left.
func TestUsage(t *testing.T) {
	cases := map[string]struct {
		reason, policy, reservations string
		required                     map[string][]string
		want                         bool
	}{
		"Reserved":  {reason: "A service has a reservation.", reservations: "{}", required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}}, want: true},
		"Nobody":    {reason: "No service has a reservation.", reservations: "{}", required: map[string][]string{requests: nil}},
		"Released":  {reason: "The service no longer requests its reservation.", reservations: reserved, required: map[string][]string{requests: {strings.Replace(capacityRequest("u1", "team", 8, "u1"), "us-east", "us-west", 1)}}},
		"Missing":   {reason: "The request may come back.", reservations: reserved, required: map[string][]string{requests: nil}, want: true},
		"NotRead":   {reason: "The requests are not resolved, so the reservation stays.", reservations: reserved, want: true},
		"Drained":   {reason: "The service has not left yet.", policy: "Drain", reservations: reserved, required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}}, want: true},
		"Abandoned": {reason: "The service has not given up its Objects yet.", policy: "Abandon", reservations: reserved, required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}}, want: true},
		"LetGo":     {reason: "No service has a reservation any more.", policy: "Abandon", reservations: missingSince("2026-03-01T11:00:00Z"), required: map[string][]string{requests: nil, clusterScoped: nil, objectsOfS1: nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := typedIn
			if tc.policy != "" {
				xr = strings.Replace(xr, "pools:", "stopPolicy: "+tc.policy+", pools:", 1)
			}
			rsp := run(t, request(t, xr, map[string]string{keyLedger: ledgerOf(tc.reservations), "object/reachable": reached}, tc.required))
			if _, got := rsp.GetDesired().GetResources()[keyUsage]; got != tc.want {
				t.Errorf("%s It is in use: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRequirements proves that requirements depend on the XR and the observed resources only.
func TestRequirements(t *testing.T) {
	observed := map[string]string{"object/reachable": reached, "object/nodes/p": collection}
	first := run(t, request(t, withSelectors, observed, nil)).GetRequirements()
	again := run(t, request(t, withSelectors, observed, map[string][]string{requests: {capacityRequest("u1", "team", 1, "u1")}, nodesOf("p"): {member("a", "")}})).GetRequirements()
	if !proto.Equal(first, again) {
		t.Errorf("requirements change with the answers: %v, %v", first, again)
	}
	want := map[string]string{
		"capacity-requests":  "v1 ConfigMap  map[capacity-request.fusioninfer.io/us-east:true]",
		"control-plane":      "v1 ConfigMap kube-system extension-apiserver-authentication",
		"existing/ledger":    "v1 ConfigMap crossplane-system inferencecluster-us-east",
		"inference-clusters": "fusioninfer.io/v1alpha1 InferenceCluster  map[]",
		"nodes/p":            "kubernetes.m.crossplane.io/v1alpha1 Object crossplane-system map[m:c]",
		"profiles":           "v1 ConfigMap crossplane-system map[fusioninfer.io/cluster-profile:true]",
	}
	got := map[string]string{}
	for name, s := range first.GetResources() {
		got[name] = fmt.Sprintf("%s %s %s %s", s.GetApiVersion(), s.GetKind(), s.GetNamespace(), s.GetMatchName())
		if s.GetMatchLabels() != nil {
			got[name] += fmt.Sprint(s.GetMatchLabels().GetLabels())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNames proves that the names of composed resources are unique, and stay valid with what
// provider-kubernetes appends.
func TestNames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	label := func() string {
		parts := []string{"a", "b", "us", "nodes", "namespace", "gateway", "reachable", "-", "-"}
		all := []string{"x"}
		for range random.IntN(20) {
			all = append(all, parts[random.IntN(len(parts))])
		}
		s := strings.Join(all, "")
		return strings.Trim(s[:min(len(s), 63)], "-")
	}
	seen := map[string]string{}
	for range 100000 {
		c := &parsed{InferenceCluster: v1alpha1.InferenceCluster{}}
		c.Name = label()
		if random.IntN(2) == 0 {
			c.builder.ClusterScoped = true
		}
		k := []key.Key{c.keys().Reachable(), c.keys().Gateway(), c.keys().Nodes(label()), c.keys().Namespace(label())}[random.IntN(4)]
		of, name := c.Name+" "+k.String(), c.name(k)
		if other, taken := seen[name]; taken && other != of {
			t.Fatalf("%s and %s are both called %s", of, other, name)
		}
		seen[name] = of
		if errs := validation.IsDNS1123Label(name + "-1234567"); len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
	}
}
