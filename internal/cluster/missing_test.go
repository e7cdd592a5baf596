package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

const (
	longMissing     = "2026-03-01T11:50:00Z"
	objectsOfS1     = "objects/team/s1"
	anyObjectsOfS1  = "clusterobjects/s1"
	clusterScoped   = "kind/objects.kubernetes.crossplane.io"
	namespacedKind  = "kind/objects.kubernetes.m.crossplane.io"
	withConfigOfOld = head + "spec: {providerConfigRef: {name: us-east, apiGroup: kubernetes.crossplane.io}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}]}\n"
)

// definedAs is the definition of a kind of Objects.
func definedAs(version, status, more string) string {
	return fmt.Sprintf("{metadata: {name: d%s}, spec: {versions: [{name: %s, served: true}]}, status: {conditions: [{type: Established, status: '%s'}]}}", more, version, status)
}

// workload is an Object of service s1 that wraps a LeaderWorkerSet. Each replacement is a pair.
func workload(replacements ...string) string {
	const o = "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, metadata: {name: o, namespace: team, ownerReferences: [{controller: true, uid: u1}]}, " +
		"spec: {providerConfigRef: {kind: ClusterProviderConfig, name: us-east}, forProvider: {manifest: {kind: LeaderWorkerSet, metadata: {namespace: team}}}}}"
	return strings.NewReplacer(replacements...).Replace(o)
}

// TestMissing proves which Objects keep the grants of a service whose request is missing for
// longer than the grace time.
func TestMissing(t *testing.T) {
	const none = clusterScoped
	cases := map[string]struct {
		reason   string
		xr       string
		away     bool
		required map[string][]string
		kept     bool
	}{
		"None":         {reason: "It has no Objects.", required: map[string][]string{none: nil, objectsOfS1: nil}},
		"Some":         {reason: "Its pods may run.", required: map[string][]string{none: nil, objectsOfS1: {workload()}}, kept: true},
		"Deleted":      {reason: "Its pods may still run.", required: map[string][]string{none: nil, objectsOfS1: {workload("metadata: {name: o", "metadata: {deletionTimestamp: '2026-03-01T11:55:00Z', name: o")}}, kept: true},
		"NotAnswered":  {reason: "Its Objects are not known yet.", required: map[string][]string{none: nil}, kept: true},
		"OtherCluster": {reason: "They are for another cluster.", required: map[string][]string{none: nil, objectsOfS1: {workload("name: us-east", "name: us-west")}}},
		"OtherConfig":  {reason: "The tenant has a configuration of the same name.", required: map[string][]string{none: nil, objectsOfS1: {workload("ClusterProviderConfig", "ProviderConfig")}}},
		"OtherKind":    {reason: "They take no capacity.", required: map[string][]string{none: nil, objectsOfS1: {workload("LeaderWorkerSet", "Service")}}},
		"OtherService": {reason: "They belong to a service that was created anew with the same name.", required: map[string][]string{none: nil, objectsOfS1: {workload("uid: u1", "uid: u2")}}},
		"Orphan":       {reason: "The service was deleted without its Objects.", required: map[string][]string{none: nil, objectsOfS1: {workload("controller: true, ", "")}}, kept: true},
		"Unreadable":   {reason: "An Object that cannot be read counts.", required: map[string][]string{none: nil, objectsOfS1: {workload("kind: LeaderWorkerSet", "kind: [x]")}}, kept: true},
		"AndAnother":   {reason: "One of several counts.", required: map[string][]string{none: nil, objectsOfS1: {workload("LeaderWorkerSet", "Service"), workload()}}, kept: true},
		"Claim": {
			reason:   "Objects of a claim are cluster-scoped, and do not name the kind of their configuration.",
			required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}, objectsOfS1: nil, anyObjectsOfS1: {workload("kind: ClusterProviderConfig, ", "", "name: o, namespace: team", "name: o")}}, kept: true,
		},
		"OtherClaim": {
			reason:   "They belong to a claim of the same name in another namespace.",
			required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}, objectsOfS1: nil, anyObjectsOfS1: {workload("uid: u1", "uid: u2", "kind: ClusterProviderConfig, ", "", "name: o, namespace: team", "name: o")}},
		},
		"OrphanOfClaim": {
			reason:   "Nobody controls it, and it is for the namespace of the service.",
			required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}, objectsOfS1: nil, anyObjectsOfS1: {workload("controller: true, ", "", "name: o, namespace: team", "name: o")}}, kept: true,
		},
		"OrphanOfOther": {
			reason:   "Nobody controls it, and it is for another namespace.",
			required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}, objectsOfS1: nil, anyObjectsOfS1: {workload("controller: true, ", "", "name: o, namespace: team", "name: o", "namespace: team", "namespace: other")}},
		},
		"ClaimUnknown":   {reason: "Its cluster-scoped Objects are not known yet.", required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}, objectsOfS1: nil}, kept: true},
		"KindUnknown":    {reason: "It is not known yet whether there are cluster-scoped Objects.", required: map[string][]string{objectsOfS1: nil}, kept: true},
		"KindNotReady":   {reason: "The kind is installed just now, or its objects are being deleted.", required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "False", "")}, objectsOfS1: nil}, kept: true},
		"OnlyClaims":     {reason: "The cluster is observed with cluster-scoped Objects, and there are no others.", xr: withConfigOfOld, required: map[string][]string{namespacedKind: nil, anyObjectsOfS1: nil}},
		"OnlyClaimsRuns": {reason: "The cluster is observed with cluster-scoped Objects.", xr: withConfigOfOld, required: map[string][]string{namespacedKind: nil, anyObjectsOfS1: {workload("kind: ClusterProviderConfig, ", "")}}, kept: true},
		"NotObserved":    {reason: "Nothing observes the cluster yet, so the kind may not exist.", away: true, required: map[string][]string{none: nil}, kept: true},
		"Abandoned":      {reason: "The Object may wait for the cluster for ever.", xr: strings.Replace(typedIn, "pools:", "stopPolicy: Abandon, pools:", 1), required: map[string][]string{none: nil, objectsOfS1: {workload("metadata: {name: o", "metadata: {deletionTimestamp: '2026-03-01T11:55:00Z', name: o")}}},
		"AbandonedRuns":  {reason: "The service has not left the abandoned cluster.", xr: strings.Replace(typedIn, "pools:", "stopPolicy: Abandon, pools:", 1), required: map[string][]string{none: nil, objectsOfS1: {workload()}}, kept: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr, observed := typedIn, map[string]string{keyLedger: ledgerOf(missingSince(longMissing)), "object/reachable": reached}
			if tc.xr != "" {
				xr = tc.xr
			}
			if tc.xr == withConfigOfOld {
				observed["clusterobject/reachable"] = strings.Replace(reached, "kubernetes.m.crossplane.io/v1alpha1", "kubernetes.crossplane.io/v1alpha2", 1)
			}
			if tc.away {
				delete(observed, "object/reachable")
			}
			required := map[string][]string{requests: nil}
			maps.Copy(required, tc.required)
			got := outcomeOf(run(t, request(t, xr, observed, required)))
			if diff := cmp.Diff(tc.kept, len(got.allocated) == 1); diff != "" {
				t.Errorf("%s It keeps its grants: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWithdrawn proves which Objects keep the grant of a replica that was started and is not requested
// any more.
func TestWithdrawn(t *testing.T) {
	named := func(key string) string {
		return workload("metadata: {name: o", "metadata: {annotations: {crossplane.io/composition-resource-name: "+key+"}, name: o")
	}
	cases := map[string]struct {
		reason  string
		objects []string
		kept    bool
	}{
		"None":    {reason: "It has no Object."},
		"Itself":  {reason: "It has one.", objects: []string{named("cluster/us/leaderworkerset/w/0")}, kept: true},
		"Other":   {reason: "Another replica has one.", objects: []string{named("cluster/us/leaderworkerset/w/1")}},
		"Unnamed": {reason: "It may be the one.", objects: []string{workload()}, kept: true},
		"NoName":  {reason: "It may be the one.", objects: []string{named("'x'")}, kept: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ledger := strings.NewReplacer(`"shapes"`, `"missingSince":"`+longMissing+`","shapes"`, `"started":true`, `"started":true,"leaving":true`).Replace(runs)
			withdrawn := strings.Replace(capacityRequest("u1", "team", 8, "u1"), `{"name":"0","replicas":[{"name":"w/0","pods":{"w":1}}]}`, "", 1)
			got := outcomeOf(run(t, request(t, typedIn, map[string]string{keyLedger: ledgerOf(ledger), "object/reachable": reached}, map[string][]string{
				requests: {withdrawn}, clusterScoped: nil, objectsOfS1: tc.objects,
			})))
			if diff := cmp.Diff(tc.kept, len(got.allocated) == 1); diff != "" {
				t.Errorf("%s It keeps its grant: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMissingIsSaid proves that the condition names the services that keep their grants.
func TestMissingIsSaid(t *testing.T) {
	const kept = "the capacity requests of these services are missing or cannot be read, and they keep their reservations because they have Objects of LeaderWorkerSets for this cluster: team/s1"
	cases := map[string]struct {
		reason, want string
		required     map[string][]string
	}{
		"Missing":  {reason: "The request is missing.", required: map[string][]string{requests: nil, objectsOfS1: {workload()}}, want: kept},
		"Garbled":  {reason: "The request cannot be read.", required: map[string][]string{requests: {"{metadata: {name: bad, namespace: team}}"}, objectsOfS1: {workload()}}, want: "these capacity requests are ignored: team/bad: cannot decode a capacity request: unexpected end of JSON input; " + kept},
		"Deleted":  {reason: "A service that is deleted leaves by itself.", required: map[string][]string{requests: nil, objectsOfS1: {workload("metadata: {name: o", "metadata: {deletionTimestamp: '2026-03-01T11:55:00Z', name: o")}}},
		"Back":     {reason: "The request is back, and the ledger does not say so yet.", required: map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}, objectsOfS1: {workload()}}},
		"NoObject": {reason: "It has no Objects.", required: map[string][]string{requests: nil, objectsOfS1: nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, request(t, typedIn, map[string]string{keyLedger: ledgerOf(missingSince(longMissing)), "object/reachable": reached}, tc.required))
			got := ""
			for _, c := range rsp.GetConditions() {
				if c.GetType() == RequestsResolved {
					got = c.GetMessage()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ledgerOfMany is the ledger of services whose requests are missing.
func ledgerOfMany(t *testing.T, all ...reservation.Service) string {
	t.Helper()
	for i := range all {
		all[i].Grants = []reservation.Grant{{Replicas: []key.ReplicaID{"w/0"}}}
	}
	compressed, _, err := reservation.Compress(&reservation.Ledger{Services: all})
	if err != nil {
		t.Fatal(err)
	}
	return ledgerOfBytes(compressed)
}

func missingService(namespace, name string, since time.Duration) reservation.Service {
	return reservation.Service{ServiceID: reservation.ServiceID{Namespace: namespace, Name: name, UID: "u-" + name}, MissingSince: noon.Add(-since)}
}

// TestRequireMissing proves what is required because of missing requests: as little as possible,
// never a kind that may not exist, and the same in all calls with the same answers.
func TestRequireMissing(t *testing.T) {
	one := []reservation.Service{missingService("team", "s1", time.Minute)}
	here := reservation.Service{ServiceID: reservation.ServiceID{Namespace: "team", Name: "here", UID: "u"}}
	cases := map[string]struct {
		reason   string
		services []reservation.Service
		away     bool
		required map[string][]string
		want     []string
	}{
		"Nobody":     {reason: "Nothing is required while no request is missing.", services: []reservation.Service{here}},
		"First":      {reason: "The cluster is observed with namespaced Objects, so their kind exists.", services: one, want: []string{clusterScoped, objectsOfS1}},
		"NoClaims":   {reason: "There are no cluster-scoped Objects.", services: one, required: map[string][]string{clusterScoped: nil}, want: []string{clusterScoped, objectsOfS1}},
		"Claims":     {reason: "There are both.", services: one, required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}}, want: []string{anyObjectsOfS1, clusterScoped, objectsOfS1}},
		"Deleted":    {reason: "The kind is being deleted.", services: one, required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", ", deletionTimestamp: '2026-03-01T11:55:00Z'")}}, want: []string{clusterScoped, objectsOfS1}},
		"NotKnown":   {reason: "Nothing observes the cluster yet.", services: one, away: true, want: []string{clusterScoped, namespacedKind}},
		"Known":      {reason: "Nothing observes the cluster yet, and the kind exists.", services: one, away: true, required: map[string][]string{namespacedKind: {definedAs("v1alpha1", "True", "")}}, want: []string{clusterScoped, namespacedKind, objectsOfS1}},
		"NoLabel":    {reason: "Somebody wrote a request with a name that no service has.", services: []reservation.Service{missingService("team", "no label!", time.Minute)}, want: []string{clusterScoped}},
		"SameNames":  {reason: "Cluster-scoped Objects are found for all namespaces at once.", services: append(one, missingService("other", "s1", time.Minute)), required: map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}}, want: []string{anyObjectsOfS1, clusterScoped, "objects/other/s1", objectsOfS1}},
		"TooMany":    {reason: "One tenant gets a small part of a call: those that are missing for the longest.", services: []reservation.Service{missingService("team", "s1", 1*time.Minute), missingService("team", "s2", 2*time.Minute), missingService("team", "s3", 3*time.Minute), missingService("team", "s4", 4*time.Minute), missingService("team", "s5", 5*time.Minute), missingService("other", "s6", time.Second)}, want: []string{clusterScoped, "objects/other/s6", "objects/team/s2", "objects/team/s3", "objects/team/s4", "objects/team/s5"}},
		"OneIsThere": {reason: "Only the missing one is required.", services: append([]reservation.Service{here}, one...), want: []string{clusterScoped, objectsOfS1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOfMany(t, tc.services...), "object/reachable": reached}
			if tc.away {
				delete(observed, "object/reachable")
			}
			first := run(t, request(t, typedIn, observed, tc.required)).GetRequirements()
			var got []string
			for _, name := range slices.Sorted(maps.Keys(first.GetResources())) {
				if strings.HasPrefix(name, "kind/") || strings.Contains(name, "objects/") {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMissingSelectors proves how Objects and their definition are selected.
func TestMissingSelectors(t *testing.T) {
	observed := map[string]string{keyLedger: ledgerOfMany(t, missingService("team", "s1", time.Minute)), "object/reachable": reached}
	all := run(t, request(t, typedIn, observed, map[string][]string{clusterScoped: {definedAs("v1alpha2", "True", "")}})).GetRequirements().GetResources()
	got := map[string]string{}
	for _, name := range []string{clusterScoped, objectsOfS1, anyObjectsOfS1} {
		got[name] = selectorText(all[name])
	}
	if diff := cmp.Diff(map[string]string{
		clusterScoped:  "apiextensions.k8s.io/v1 CustomResourceDefinition  objects.kubernetes.crossplane.io map[]",
		objectsOfS1:    "kubernetes.m.crossplane.io/v1alpha1 Object team  map[fusioninfer.io/service:s1]",
		anyObjectsOfS1: "kubernetes.crossplane.io/v1alpha2 Object   map[fusioninfer.io/service:s1]",
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func selectorText(s *fnv1.ResourceSelector) string {
	return fmt.Sprintf("%s %s %s %s %v", s.GetApiVersion(), s.GetKind(), s.GetNamespace(), s.GetMatchName(), s.GetMatchLabels().GetLabels())
}

// TestManyMissing proves that every service has its turn, however many are missing for ever.
// Those that have no Objects lose their grants in the end, and the others keep them.
func TestManyMissing(t *testing.T) {
	const services, namespaces = 300, 20
	ledger := reservation.Ledger{}
	for i := range services {
		s := missingService(fmt.Sprintf("team-%d", i%namespaces), fmt.Sprintf("s%d", i), reservation.Grace)
		s.Grants = []reservation.Grant{{Replicas: []key.ReplicaID{"w/0"}}}
		ledger.Services = append(ledger.Services, s)
	}
	runs := func(s reservation.ServiceID) bool { return len(s.Name)%2 == 0 }
	want := 0
	for _, s := range ledger.Services {
		if runs(s.ServiceID) {
			want++
		}
	}
	looked := map[reservation.ServiceID]bool{}
	for call := range 30 {
		turn, takesTurns := missing(&ledger, noon.Add(time.Duration(call)*time.Second))
		if len(turn) > maxMissing {
			t.Fatalf("call %d looks at %d services", call, len(turn))
		}
		inUse := map[reservation.ServiceID]map[key.ReplicaID]bool{}
		for _, s := range turn {
			looked[s], inUse[s] = true, map[key.ReplicaID]bool{}
			if runs(s) {
				inUse[s][""] = true
			}
		}
		// The calls follow each other faster than the grace time ends.
		ledger = reservation.Reserve(reservation.Input{Ledger: ledger, InUse: inUse, TakesTurns: takesTurns, Now: noon.Add(time.Duration(call) * time.Second)}).Ledger
	}
	if len(looked) != services || len(ledger.Services) != want {
		t.Errorf("%d of %d were looked at, and %d of %d keep their grants", len(looked), services, len(ledger.Services), want)
	}
}

// TestMissingIsTooMuch proves that a call reads fewer services while nothing arrives in the ledger: it may have been too large to be sent.
func TestMissingIsTooMuch(t *testing.T) {
	for after, want := range map[time.Duration]int{0: maxMissing, reservation.Grace + 59*time.Second: maxMissing, reservation.Grace + time.Minute: maxMissing / 4, reservation.Grace + 2*time.Minute: maxMissing / 16, time.Hour: 1} {
		ledger := reservation.Ledger{}
		for i := range 100 {
			ledger.Services = append(ledger.Services, missingService(fmt.Sprintf("team-%d", i), "s", after+time.Duration(i%10)*time.Hour))
		}
		turn, takesTurns := missing(&ledger, noon)
		if len(turn) != want || !takesTurns {
			t.Errorf("after %s a call reads %d services, want %d", after, len(turn), want)
		}
	}
}
