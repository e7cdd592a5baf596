package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// reachedAs is the namespace kube-system of the real cluster with that UID.
func reachedAs(uid string) string {
	return strings.Replace(reached, "{kind: Namespace}", "{kind: Namespace, metadata: {uid: "+uid+"}}", 1)
}

// created is typedIn of a time, with a status.
func created(at, status string) string {
	return strings.Replace(typedIn, "generation: 3", "generation: 3, creationTimestamp: '"+at+"'", 1) + "status: {" + status + "}\n"
}

// another is the profile of an InferenceCluster.
func another(name, at, uid string, services int) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: clusterprofile-%s, namespace: crossplane-system}, data: {inferencecluster: '{"metadata": {"name": %q, "creationTimestamp": %q}, "status": {"clusterUID": %q, "serviceCount": %d}}'}}`, name, name, at, uid, services)
}

// profileOf is the profile of a cluster that was created with a status.
func profileOf(xr string) string {
	_, after, _ := strings.Cut(xr, "status: {clusterUID: ")
	uid, _, _ := strings.Cut(after, "}")
	return another("us-east", early, uid, 0)
}

// of returns the status, the reason and the message of a condition.
func conditionOf(rsp *fnv1.RunFunctionResponse, of string) string {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == of {
			return strings.TrimSuffix(strings.TrimPrefix(c.GetStatus().String(), "STATUS_CONDITION_")+" "+c.GetReason()+": "+c.GetMessage(), ": ")
		}
	}
	return "none"
}

// An exclusivity is what a response says of the identity of a cluster.
type exclusivity struct {
	Exclusive, Schedulable, Reserved, UID string
}

func exclusivityOf(rsp *fnv1.RunFunctionResponse) exclusivity {
	o := outcomeOf(rsp)
	return exclusivity{
		Exclusive:   conditionOf(rsp, Exclusive),
		Schedulable: strings.SplitN(conditionOf(rsp, Schedulable), ":", 2)[0],
		Reserved:    strings.Join(o.allocated, " "),
		UID:         kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "clusterUID").GetStringValue(),
	}
}

const (
	early, late    = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
	exclusive      = "TRUE NoOtherKnown"
	schedulableNow = "TRUE Schedulable"
)

// TestIdentity shows which real cluster an InferenceCluster takes for its own, and that of two
// InferenceClusters of one real cluster at most one reserves anything new.
func TestIdentity(t *testing.T) {
	unreachable := func(uid string) string { return strings.ReplaceAll(reachedAs(uid), "'True'", "'False'") }
	const wrong = "the cluster that answers has UID new, and what is reserved is for the cluster with UID old. Nothing new is reserved. If new is the right one, because the cluster was created anew, set spec.clusterUID to it"
	duplicate := func(name string) string {
		return "it is the same cluster as InferenceCluster " + name + ", which was created earlier: the namespace kube-system has UID real in both. Nothing new is reserved. Set stopPolicy here to Drain or Abandon, and delete this InferenceCluster when status.serviceCount is 0. If the pools of both have different nodes, set spec.sharing to ByPool in both instead"
	}
	cases := map[string]struct {
		reason    string
		xr        string
		reachable string
		ledger    string
		others    []string
		want      exclusivity
	}{
		"First": {
			"Nothing is reserved before the others can read which cluster it is.",
			created(early, ""), reachedAs("real"), "{}", nil,
			exclusivity{exclusive, "FALSE IdentityNotRecorded", "", "real"},
		},
		"Recorded": {
			"What is recorded is the cluster that answers.",
			created(early, "clusterUID: real"), reachedAs("real"), "{}", nil,
			exclusivity{exclusive, schedulableNow, "s1", "real"},
		},
		"Upgrade": {
			"A cluster with reservations from before its identity was recorded goes on.",
			created(early, ""), reachedAs("real"), reserved, nil,
			exclusivity{exclusive, schedulableNow, "s1", "real"},
		},
		"OutOfReach": {
			"The last known identity stays.",
			created(early, "clusterUID: real"), unreachable("other"), reserved, nil,
			exclusivity{exclusive, "FALSE Unreachable", "s1", "real"},
		},
		"Different": {
			"Clusters of other UIDs are different clusters, and so are those of which none is known.",
			created(late, "clusterUID: real"), reachedAs("real"), "{}", []string{another("a", early, "other", 1), another("b", early, "", 1)},
			exclusivity{exclusive, schedulableNow, "s1", "real"},
		},
		"Itself": {
			"Crossplane also finds the InferenceCluster itself.",
			created(late, "clusterUID: real"), reachedAs("real"), "{}", []string{another("us-east", early, "real", 1)},
			exclusivity{exclusive, schedulableNow, "s1", "real"},
		},
		"Later": {
			"The later one reserves nothing new.",
			created(late, "clusterUID: real"), reachedAs("real"), "{}", []string{another("b", late, "real", 0), another("c", early, "real", 0)},
			exclusivity{"FALSE DuplicateCluster: " + duplicate("c"), "FALSE DuplicateCluster", "", "real"},
		},
		"LaterKeeps": {
			"What is reserved in the later one stays, also while it is out of reach.",
			created(late, "clusterUID: real"), unreachable(""), reserved, []string{another("c", early, "real", 0)},
			exclusivity{"FALSE DuplicateCluster: " + duplicate("c"), "FALSE DuplicateCluster", "s1", "real"},
		},
		"Earlier": {
			"The earlier one goes on while the later one has nothing.",
			created(early, "clusterUID: real"), reachedAs("real"), "{}", []string{another("a", late, "real", 0), another("b", "", "real", 0)},
			exclusivity{"TRUE NoOtherKnown: InferenceCluster a, InferenceCluster b: the same cluster, created later, and therefore refused", schedulableNow, "s1", "real"},
		},
		"EarlierWaits": {
			"The earlier one cannot count what the later one has reserved on its nodes.",
			created(early, "clusterUID: real"), reachedAs("real"), "{}", []string{another("a", late, "real", 1)},
			exclusivity{
				"FALSE DuplicateCluster: InferenceCluster a is the same cluster, and its reservations are on nodes that are counted here as free. Nothing new is reserved while it has any. Set its stopPolicy to Drain or Abandon, and delete it when its status.serviceCount is 0. If the pools of both have different nodes, set spec.sharing to ByPool in both instead",
				"FALSE DuplicateCluster", "", "real",
			},
		},
		"SameTime": {
			"Of two that were created at the same time, the first by name goes on.",
			created(early, "clusterUID: real"), reachedAs("real"), "{}", []string{another("us-a", early, "real", 0)},
			exclusivity{"FALSE DuplicateCluster: " + duplicate("us-a"), "FALSE DuplicateCluster", "", "real"},
		},
		"Shared": {
			"The platform team says that the two have different nodes.",
			strings.Replace(created(late, "clusterUID: real"), "pools:", "sharing: ByPool, pools:", 1), reachedAs("real"), "{}", []string{another("a", early, "real", 1)},
			exclusivity{"TRUE SharedByPool: spec.sharing is ByPool, so nobody checks who else uses the same nodes", schedulableNow, "s1", "real"},
		},
		"Replaced": {
			"Pods of reservations may still run in the old cluster, so somebody has to say that the new one is meant.",
			created(early, "clusterUID: old"), reachedAs("new"), reserved, nil,
			exclusivity{"FALSE UnexpectedCluster: " + wrong, "FALSE UnexpectedCluster", "s1", "old"},
		},
		"Confirmed": {
			"The new one is meant.",
			strings.Replace(created(early, "clusterUID: old"), "pools:", "clusterUID: new, pools:", 1), reachedAs("new"), reserved, nil,
			exclusivity{exclusive, schedulableNow, "s1", "new"},
		},
		"ReplacedEmpty": {
			"Without reservations, the cluster that answers is taken for the right one, as at first.",
			created(early, "clusterUID: old"), reachedAs("new"), "{}", nil,
			exclusivity{exclusive, "FALSE IdentityNotRecorded", "", "new"},
		},
		"Pinned": {
			"Another cluster than the spec names is refused from the beginning.",
			strings.Replace(created(early, ""), "pools:", "clusterUID: old, pools:", 1), reachedAs("new"), "{}", nil,
			exclusivity{
				"FALSE UnexpectedCluster: the cluster that answers has UID new, and spec.clusterUID is old. Nothing new is reserved",
				"FALSE UnexpectedCluster", "", "",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, request(t, tc.xr, map[string]string{keyLedger: ledgerOf(tc.ledger), keyProfile: profileOf(tc.xr), "object/reachable": tc.reachable},
				map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}, othersRequirement: tc.others}))
			if diff := cmp.Diff(tc.want, exclusivityOf(rsp)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const (
	keyMark = "object/control-plane"
	ours    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: extension-apiserver-authentication, namespace: kube-system, uid: ours}}"
)

// markOf is the Object of a mark that names a control plane.
func markOf(controlPlane string) string {
	return "{kind: Object, apiVersion: kubernetes.m.crossplane.io/v1alpha1, metadata: {name: mark-object}, spec: {forProvider: {manifest: {data: {controlPlane: ours}}}}, " +
		"status: {conditions: [{type: Synced, status: 'True'}], atProvider: {manifest: {kind: ConfigMap, data: {controlPlane: " + controlPlane + "}}}}}"
}

// TestMark shows that of two control planes with one cluster, the later one reserves nothing
// new.
func TestMark(t *testing.T) {
	const (
		theirs    = "another control plane uses the cluster: ConfigMap fusioninfer-control-plane in namespace kube-system there names theirs, and this control plane is ours. Nothing new is reserved, because both would count the same nodes. If the other one no longer uses the cluster, delete that ConfigMap"
		unwritten = "whether another control plane uses the cluster is not known: ConfigMap fusioninfer-control-plane in namespace kube-system there cannot be read or created, and Object mark-object says why"
	)
	failed := func(o string) string { return strings.Replace(o, "'True'", "'False'", 1) }
	cases := map[string]struct {
		reason string
		mark   string
		ledger string
		found  []string
		want   exclusivity
	}{
		"Ours":       {"A mark of this control plane.", markOf("ours"), "{}", []string{ours}, exclusivity{exclusive, schedulableNow, "s1", "real"}},
		"Theirs":     {"A mark of another one.", markOf("theirs"), "{}", []string{ours}, exclusivity{"FALSE OtherControlPlane: " + theirs, "FALSE OtherControlPlane", "", "real"}},
		"TheirsKept": {"What is reserved stays.", failed(markOf("theirs")), reserved, []string{ours}, exclusivity{"FALSE OtherControlPlane: " + theirs, "FALSE OtherControlPlane", "s1", "real"}},
		"Shared":     {"The two control planes have different nodes.", markOf("theirs"), "{}", []string{ours}, exclusivity{"TRUE SharedByPool: spec.sharing is ByPool, so nobody checks who else uses the same nodes", schedulableNow, "s1", "real"}},
		"NotYet":     {"Nothing is reserved for the first time before the mark was read.", "", "{}", []string{ours}, exclusivity{exclusive, "FALSE IdentityNotRecorded", "", "real"}},
		"Upgrade":    {"A cluster with reservations does not wait for it.", "", reserved, []string{ours}, exclusivity{exclusive, schedulableNow, "s1", "real"}},
		"NoRights":   {"Without the permission for the mark, everything else works.", failed(strings.Replace(markOf("x"), "atProvider: {manifest: {kind: ConfigMap, data: {controlPlane: x}}}", "atProvider: {}", 1)), "{}", []string{ours}, exclusivity{exclusive + ": " + unwritten, schedulableNow, "s1", "real"}},
		"NoIdentity": {"A control plane that does not know its own identity leaves no mark.", "", "{}", nil, exclusivity{exclusive, schedulableNow, "s1", "real"}},
		"Forgotten":  {"Its Object tells the identity when the control plane does not.", markOf("ours"), "{}", nil, exclusivity{exclusive, schedulableNow, "s1", "real"}},
		"Empty":      {"A mark without a name tells nothing.", markOf("''"), "{}", []string{ours}, exclusivity{exclusive + ": " + unwritten, schedulableNow, "s1", "real"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOf(tc.ledger), "object/reachable": reachedAs("real")}
			if tc.mark != "" {
				observed[keyMark] = tc.mark
			}
			xr := created(early, "clusterUID: real")
			observed[keyProfile] = profileOf(xr)
			if name == "Shared" {
				xr = strings.Replace(xr, "pools:", "sharing: ByPool, pools:", 1)
			}
			rsp := run(t, request(t, xr, observed,
				map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}, controlPlane: tc.found}))
			if diff := cmp.Diff(tc.want, exclusivityOf(rsp)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			got := rsp.GetDesired().GetResources()[keyMark]
			if want := tc.mark != "" || tc.found != nil; (got != nil) != want {
				t.Fatalf("%s The Object of the mark: want %t, got %v", tc.reason, want, got)
			}
			if got == nil {
				return
			}
			if got.GetReady() != fnv1.Ready_READY_TRUE {
				t.Errorf("the mark keeps the InferenceCluster from being ready")
			}
			spec := kube.AsMap(kube.Lookup(got.GetResource(), "spec").GetStructValue())
			delete(spec, "readiness")
			if diff := cmp.Diff(map[string]any{
				"managementPolicies": []any{"Observe", "Create"}, "providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "us-east"},
				"forProvider": map[string]any{"manifest": map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"controlPlane": "ours"},
					"metadata": map[string]any{"name": "fusioninfer-control-plane", "namespace": "kube-system", "labels": map[string]any{"fusioninfer.io/cluster": "us-east"}},
				}},
			}, spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSeen shows the numbers that kubectl get prints.
func TestSeen(t *testing.T) {
	rsp := run(t, request(t, typedIn, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached},
		map[string][]string{requests: {capacityRequest("u1", "team", 6, "u1"), capacityRequest("u2", "team", 4, "u2")}}))
	got := map[string]any{}
	for _, f := range []string{"deviceCount", "freeDeviceCount", "serviceCount", "pendingCount"} {
		got[f] = kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", f).AsInterface()
	}
	if diff := cmp.Diff(map[string]any{"deviceCount": 8.0, "freeDeviceCount": 2.0, "serviceCount": 1.0, "pendingCount": 1.0}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestUnprofiled shows that another InferenceCluster of the same real cluster counts before it has
// a profile, and that a cluster with reservations does not require it.
func TestUnprofiled(t *testing.T) {
	const old = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east, creationTimestamp: '2025-01-01T00:00:00Z'}, status: {clusterUID: real, serviceCount: 1}}`
	xr := created(early, "clusterUID: real")
	for ledger, requires := range map[string]bool{"{}": true, reserved: false} {
		rsp := run(t, request(t, xr, map[string]string{keyLedger: ledgerOf(ledger), keyProfile: profileOf(xr), "object/reachable": reachedAs("real")},
			map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}, unprofiledRequirement: {old}}))
		if got := rsp.GetRequirements().GetResources()[unprofiledRequirement] != nil; got != requires {
			t.Errorf("with the ledger %s, InferenceClusters are required: %t, want %t", ledger, got, requires)
		}
		if diff := cmp.Diff("FALSE DuplicateCluster", exclusivityOf(rsp).Schedulable); diff != "" {
			t.Errorf("with the ledger %s: -want, +got:\n%s", ledger, diff)
		}
	}
}
