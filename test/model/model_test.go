// Package model has tests of one InferenceModel from call to call.
package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// xr returns the InferenceModel bot with these fields of the spec.
func xr(fields string) string {
	return `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceModel, metadata: {name: bot, namespace: team, uid: me, generation: 3}, spec: {serviceName: chat` + fields + `}}`
}

// The keys of what it composes beside itself, and in the cluster east.
const (
	lock          = "configmap/model-name"
	rewrite       = "inferencemodelrewrite"
	objective     = "inferenceobjective"
	rewriteEast   = "cluster/east/" + rewrite
	rewriteWest   = "cluster/west/" + rewrite
	objectiveEast = "cluster/east/" + objective
)

// service returns the service chat with these fields of the status.
func service(status string) string {
	return `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: chat, namespace: team, uid: of-chat}, status: {` + status + `}}`
}

const (
	ready = `conditions: [{type: Ready, status: "True"}], `
	// routing says that the router knows models, and which names the engines answer.
	routing = `modelRouting: {servedNames: [base], adapterNames: [v1, v2], complete: true}`
	inFleet = `clusters: [{name: east, state: Placed}, {name: west, state: Pending}], ` + routing
)

// pool is the service's pool in its own cluster.
const pool = `{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {name: chat-pool, namespace: team, annotations: {crossplane.io/composition-resource-name: inferencepool}, ownerReferences: [{uid: of-chat, controller: true, kind: InferenceService, name: chat}]}}`

// poolIn is the Object of the service's pool in another cluster, with more fields of the spec.
func poolIn(cluster, uid, spec string) string {
	return fmt.Sprintf(`{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, metadata: {name: chat-pool-of-%[1]s, namespace: team, annotations: {crossplane.io/composition-resource-name: cluster/%[1]s/inferencepool}, ownerReferences: [{uid: %[2]s, controller: true}]}, spec: {%[3]s providerConfigRef: {kind: ClusterProviderConfig, name: %[1]s}, forProvider: {manifest: {apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {name: chat-pool, namespace: team}}}}}`, cluster, uid, spec)
}

// A world is what a model finds, by the names of its requirements.
type world map[string][]string

func alone(status string) world { return world{"service": {service(status)}, "pool": {pool}} }

func fleet(pools ...string) world {
	return world{"service": {service(ready + inFleet)}, "pools": pools}
}

// reconciled calls the function until nothing changes any more, as Crossplane and provider-kubernetes do.
func reconciled(t *testing.T, fn fixture.Function, req *fnv1.RunFunctionRequest, w world) *fnv1.RunFunctionResponse {
	t.Helper()
	for range 5 {
		rsp, _ := fixture.Reconcile(t, fn, req, w)
		if fixture.IsFatal(rsp) {
			return rsp
		}
		before := proto.CloneOf(req)
		apply(t, req, rsp)
		if proto.Equal(before, req) {
			return rsp
		}
	}
	t.Fatal("the objects still change after five calls")
	return nil
}

// apply makes what is desired the observed objects. provider-kubernetes has applied each Object.
func apply(t *testing.T, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	t.Helper()
	req.Observed.Resources = map[string]*fnv1.Resource{}
	for k, r := range rsp.GetDesired().GetResources() {
		o := r.GetResource()
		if manifest := kube.Lookup(o, "spec", "forProvider", "manifest"); manifest != nil {
			o = kube.With(o, structpb.NewStructValue(fixture.YAML(t, `{conditions: [{type: Synced, status: "True"}]}`)), "status")
			o = kube.With(o, structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"manifest": manifest}}), "status", "atProvider")
		}
		req.Observed.Resources[k] = &fnv1.Resource{Resource: o}
	}
}

func keys(rsp *fnv1.RunFunctionResponse) []string {
	return fixture.Keys(rsp.GetDesired().GetResources())
}

// TestModel shows what a model composes, and what it says of it.
func TestModel(t *testing.T) {
	fn := function.Start(t)
	const targets = `, targets: [{name: v1, weight: 90}, {name: v2, weight: 10}]`
	cases := map[string]struct {
		reason   string
		spec     string
		input    string
		world    world
		want     []string
		answered string
		warnings string
	}{
		"Answered":        {reason: "The service is ready, and its pool has the model.", spec: targets, world: alone(ready + routing), want: []string{lock, rewrite}, answered: "TRUE Answered"},
		"Priority":        {reason: "A priority is an InferenceObjective.", spec: targets + `, criticality: Critical`, world: alone(ready + routing), want: []string{lock, rewrite, objective}, answered: "TRUE Answered"},
		"NotReady":        {reason: "The pool has the model, and the service is not ready.", spec: targets, world: alone(`conditions: [{type: Ready, status: "False", reason: Creating}], ` + routing), want: []string{lock, rewrite}, answered: "FALSE ServiceNotReady"},
		"NoService":       {reason: "The name is held before there is a service.", spec: targets, world: world{}, want: []string{lock}, answered: "FALSE ServiceNotFound"},
		"NoPool":          {reason: "The service has no pool yet.", spec: targets, world: world{"service": {service(ready + routing)}}, want: []string{lock}, answered: "FALSE NoPool"},
		"NotRouted":       {reason: "The endpoint picker does not go by the names of models.", spec: targets, world: world{"service": {service(ready)}}, want: []string{lock}, answered: "FALSE NotRouted"},
		"OtherController": {reason: "A pool of somebody else is not the service's.", spec: targets, world: world{"service": {service(ready + routing)}, "pool": {strings.Replace(pool, "of-chat", "of-other", 1)}}, want: []string{lock}, answered: "FALSE NoPool"},
		"UnknownTarget":   {reason: "A part of the requests is not answered.", spec: `, targets: [{name: v1}, {name: typo}]`, world: alone(ready + routing), want: []string{lock, rewrite}, answered: "FALSE UnknownTargets", warnings: "FALSE Suspicious"},
		"InCacheOnly":     {reason: "Only an adapter that somebody else has put into the claim would answer it.", spec: `, targets: [{name: v1}, {name: typo}]`, world: alone(ready + `modelRouting: {servedNames: [base], adapterNames: [v1], adapterCacheOnly: true}`), want: []string{lock, rewrite}, answered: "UNKNOWN UnknownTargets", warnings: "FALSE Suspicious"},
		"UnknownTargets":  {reason: "No request is answered.", world: alone(ready + routing), want: []string{lock, rewrite}, answered: "FALSE UnknownTargets", warnings: "FALSE Suspicious"},
		"MayAnswerMore":   {reason: "The engines may load adapters that nobody knows of.", world: alone(ready + `modelRouting: {servedNames: [base]}`), want: []string{lock, rewrite}, answered: "TRUE Answered"},
		"KindsMissing":    {reason: "The cluster has none of the kinds.", spec: targets, input: `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ModelInput, missingKinds: Skip}`, world: alone(ready + routing), want: []string{lock}, answered: "FALSE NoPool"},
		"Fleet":           {reason: "The model goes wherever the service has a pool.", spec: targets + ", priority: 5", world: fleet(poolIn("east", "of-chat", "")), want: []string{rewriteEast, objectiveEast, lock}, answered: "TRUE Answered"},
		"ForeignObject":   {reason: "An Object that the service does not control says nothing.", spec: targets, world: fleet(poolIn("east", "of-other", "")), want: []string{lock}, answered: "FALSE NoPool"},
		"ForgedCluster":   {reason: "A name that no cluster has is not used.", spec: targets, world: fleet(strings.Replace(poolIn("east", "of-chat", ""), "cluster/east/", "cluster/../", 1)), want: []string{lock}, answered: "FALSE NoPool"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, xr(tc.spec), tc.input)
			rsp := reconciled(t, fn, req, tc.world)
			if fixture.IsFatal(rsp) {
				t.Fatalf("%s\n%s", tc.reason, fixture.Fatals(rsp))
			}
			if diff := cmp.Diff(tc.want, keys(rsp)); diff != "" {
				t.Errorf("%s\ncomposed: -want, +got:\n%s", tc.reason, diff)
			}
			warnings := tc.warnings
			if warnings == "" {
				warnings = "TRUE NothingSuspicious"
			}
			got := []string{fixture.Condition(rsp, "Accepted"), fixture.Condition(rsp, "Answered"), fixture.Condition(rsp, "NoWarnings")}
			if diff := cmp.Diff([]string{"TRUE Accepted", tc.answered, warnings}, got); diff != "" {
				t.Errorf("%s\nconditions: -want, +got:\n%s\n%v", tc.reason, diff, rsp.GetConditions())
			}
			wantReady := fnv1.Ready_READY_FALSE
			if tc.answered == "TRUE Answered" {
				wantReady = fnv1.Ready_READY_UNSPECIFIED
			}
			if got := rsp.GetDesired().GetComposite().GetReady(); got != wantReady {
				t.Errorf("%s\nthe XR is %v, want %v", tc.reason, got, wantReady)
			}
		})
	}
}

// TestRefused shows which models are refused, with the path and the reason, whether or not they serve already.
// What they have composed stays.
func TestRefused(t *testing.T) {
	fn := function.Start(t)
	const input = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ModelInput, priorities: {maximum: 5}, tenants: [{namespaces: ["team*"], priorities: {minimum: 0}}]}`
	held := `{apiVersion: v1, kind: ConfigMap, metadata: {name: chat-bot, namespace: team, annotations: {crossplane.io/composition-resource-name: configmap/model-name}, ownerReferences: [{uid: other, controller: true, kind: InferenceModel, name: first}]}}`
	cases := map[string]struct {
		spec, input string
		world       world
		reason      string
		want        []string
	}{
		"Empty":        {spec: `, serviceName: "", targets: [{name: ""}, {name: a, weight: -1}], criticality: High`, want: []string{"spec.criticality", "spec.serviceName", "spec.targets[0].name", "spec.targets[1].weight"}, reason: "InvalidSpec"},
		"NoTarget":     {spec: `, targets: [{name: a, weight: 0}]`, want: []string{"spec.targets"}, reason: "InvalidSpec"},
		"Both":         {spec: `, priority: 1, criticality: Standard`, want: []string{"spec.criticality"}, reason: "InvalidSpec"},
		"TooHigh":      {spec: `, criticality: Critical`, input: input, want: []string{"spec.criticality"}, reason: "InvalidSpec"},
		"TooLow":       {spec: `, priority: -1`, input: input, want: []string{"spec.priority"}, reason: "InvalidSpec"},
		"Default":      {spec: `, priority: 11`, want: []string{"spec.priority"}, reason: "InvalidSpec"},
		"Input":        {input: `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ModelInput, priorities: {minimum: 1, maximum: 0}, tenant: []}`, want: []string{"input.priorities.minimum", "input.tenant"}, reason: "InvalidInput"},
		"OtherInput":   {input: `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input}`, want: []string{"input.kind"}, reason: "InvalidInput"},
		"Taken":        {world: world{"existing/configmap/model-name": {held}}, want: []string{"spec.modelName"}, reason: "NameConflict"},
		"OfService":    {world: alone(ready + `servedModels: [{name: bot}], ` + routing), want: []string{"spec.modelName"}, reason: "NameConflict"},
		"Redirect":     {spec: `, modelName: base, targets: [{name: v1}]`, world: alone(ready + routing), want: []string{"spec.targets"}, reason: "InvalidSpec"},
		"RedirectTo":   {spec: `, modelName: base, targets: [{name: base, adapter: {uri: "hf://evil/x"}}]`, world: alone(ready + routing), want: []string{"spec.targets"}, reason: "InvalidSpec"},
		"RedirectLoRA": {spec: `, modelName: v1, targets: [{name: v2}]`, world: alone(ready + routing), want: []string{"spec.targets"}, reason: "InvalidSpec"},
		"RedirectOne":  {spec: `, modelName: base, targets: [{name: base}, {name: v1}]`, world: alone(ready + routing), want: []string{"spec.targets"}, reason: "InvalidSpec"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc := xr(tc.spec)
			if strings.Contains(tc.spec, "serviceName") {
				doc = strings.Replace(doc, "serviceName: chat, ", "", 1)
			}
			rsp, _ := fixture.Reconcile(t, fn, fixture.Request(t, doc, tc.input), tc.world)
			fatal := fixture.Fatals(rsp)
			for _, path := range tc.want {
				if !strings.Contains(fatal, path+": ") {
					t.Errorf("want a problem at %s, got %q", path, fatal)
				}
			}
			if got := fixture.Condition(rsp, "Accepted"); got != "FALSE "+tc.reason {
				t.Errorf("Accepted is %s, want False %s", got, tc.reason)
			}
		})
	}
}

// TestChanges follows a model that serves.
func TestChanges(t *testing.T) {
	fn := function.Start(t)
	const spec = `, targets: [{name: v1}]`
	east, west := poolIn("east", "of-chat", ""), poolIn("west", "of-chat", "")
	cases := map[string]struct {
		reason        string
		before, after world
		spec          string
		// want are the keys afterwards, or the path of a refusal.
		want    []string
		refused string
	}{
		"Unchanged":      {reason: "Nothing changes.", before: alone(ready + routing), after: alone(ready + routing), want: []string{lock, rewrite}},
		"ServiceMissing": {reason: "The pool is there, so the model stays.", before: alone(ready + routing), after: world{"pool": {pool}}, want: []string{lock, rewrite}},
		"PoolGone":       {reason: "The service has left with its pool.", before: alone(ready + routing), after: world{"service": {service(ready + routing)}}, want: []string{lock}},
		"ServiceGone":    {reason: "The service is gone, and its pool too. The name stays the model's.", before: alone(ready + routing), after: world{}, want: []string{lock}},
		"RouterChanged":  {reason: "The pool is there, though its endpoint picker no longer goes by names.", before: alone(ready + routing), after: alone(ready), want: []string{lock, rewrite}},
		"Moves":          {reason: "The model is in the new cluster before it leaves the old one.", before: fleet(east), after: fleet(east, west), want: []string{rewriteEast, rewriteWest, lock}},
		"Moved":          {reason: "The old pool is gone.", before: fleet(east, west), after: fleet(west), want: []string{rewriteWest, lock}},
		"FleetMissing":   {reason: "The service is missing, and its pools are not.", before: fleet(east), after: world{"pools": {east}}, want: []string{rewriteEast, lock}},
		"PoolForeign":    {reason: "A model that serves stays, whoever controls the pool now.", before: fleet(east), after: fleet(poolIn("east", "of-other", "")), want: []string{rewriteEast, lock}},
		"Repointed":      {reason: "Another cluster has the name now: the model leaves the old one first.", before: fleet(east), after: fleet(strings.Replace(east, "name: east}", "name: elsewhere}", 1)), want: []string{rewriteEast, lock}},
		"OtherName":      {reason: "The schema refuses it, too.", before: alone(ready + routing), after: alone(ready + routing), spec: `, modelName: other`, refused: "spec.modelName"},
		"NameOfService":  {reason: "The service has got the name: both say so, and nothing goes.", before: alone(ready + routing), after: alone(ready + `servedModels: [{name: bot}], ` + routing), refused: "spec.modelName"},
		"BaseModel":      {reason: "The engines serve their own model under this name now.", before: alone(ready + routing), after: alone(ready + `modelRouting: {servedNames: [bot]}`), refused: "spec.targets"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, xr(spec), "")
			reconciled(t, fn, req, tc.before)
			req.Observed.Composite.Resource = fixture.YAML(t, xr(spec+tc.spec))
			rsp := reconciled(t, fn, req, tc.after)
			if tc.refused != "" {
				if fatal := fixture.Fatals(rsp); !strings.Contains(fatal, tc.refused+": ") {
					t.Errorf("%s\nwant a refusal at %s, got %q", tc.reason, tc.refused, fatal)
				}
				return
			}
			if diff := cmp.Diff(tc.want, keys(rsp)); diff != "" {
				t.Errorf("%s\ncomposed: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPoolRefEdited proves that a model stays in its pool, and leads to it again, if somebody edits what refers to the pool.
func TestPoolRefEdited(t *testing.T) {
	beside, east := alone(ready+routing), fleet(poolIn("east", "of-chat", ""))
	const targets, priority = `, targets: [{name: v1}]`, `, criticality: Critical`
	ref := []string{"spec", "poolRef", "name"}
	refEast := append([]string{"spec", "forProvider", "manifest"}, ref...)
	cases := map[string]struct {
		reason, spec, key string
		before, after     world
		path              []string
		edited            string
	}{
		"Rewrite":       {"The pool follows from the service.", targets, rewrite, beside, beside, ref, "another-pool"},
		"Objective":     {"It is read beside the rewrite.", targets + priority, objective, beside, beside, ref, "another-pool"},
		"NoName":        {"No service says that the pool is its own.", targets, rewrite, beside, world{"pool": {pool}}, ref, "-"},
		"RewriteEast":   {"The pool has one name in a namespace.", targets, rewriteEast, east, east, refEast, "another-pool"},
		"ObjectiveEast": {"It is read beside the rewrite.", targets + priority, objectiveEast, east, east, refEast, "another-pool"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fn, req := function.Start(t), fixture.Request(t, xr(tc.spec), "")
			want := reconciled(t, fn, req, tc.before).GetDesired().GetResources()
			r := req.GetObserved().GetResources()[tc.key]
			if kube.Lookup(r.GetResource(), tc.path...).GetStringValue() == "" {
				t.Fatal("there is none")
			}
			r.Resource = kube.With(r.GetResource(), structpb.NewStringValue(tc.edited), tc.path...)
			rsp, _ := fixture.Reconcile(t, fn, req, tc.after)
			if diff := cmp.Diff(want, rsp.GetDesired().GetResources(), protocmp.Transform(), protocmp.IgnoreFields(&fnv1.Resource{}, "ready")); diff != "" {
				t.Errorf("%s\ndesired: -before the edit, +after it:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestObjects shows what the Objects of a model say: the model gets into the namespace of the service's pool, by
// the credentials of the pool. In an abandoned cluster, nothing waits for the cluster.
func TestObjects(t *testing.T) {
	fn := function.Start(t)
	const claimedXR = `{apiVersion: fusioninfer.io/v1alpha1, kind: XInferenceModel, metadata: {name: bot-x1, uid: me, labels: {crossplane.io/claim-name: bot, crossplane.io/claim-namespace: team}}, spec: {serviceName: chat}}`
	claimedPool := strings.NewReplacer("kubernetes.m.crossplane.io/v1alpha1", "kubernetes.crossplane.io/v1alpha2", "kind: ClusterProviderConfig, ", "").Replace(poolIn("east", "of-chat", ""))
	cases := map[string]struct {
		reason, xr, pool string
		want             string
	}{
		"Namespaced": {
			reason: "The Object is in the tenant's namespace.", xr: xr(", targets: [{name: v1}]"), pool: poolIn("east", "of-chat", ""),
			want: "kubernetes.m.crossplane.io/v1alpha1 team ClusterProviderConfig east team",
		},
		"Claimed": {
			reason: "The Object is cluster-scoped.", xr: claimedXR, pool: claimedPool,
			want: "kubernetes.crossplane.io/v1alpha2   east team",
		},
		"RemoteNamespace": {
			reason: "The model is in the namespace of the pool.", xr: xr(", targets: [{name: v1}]"), pool: strings.Replace(poolIn("east", "of-chat", ""), "name: chat-pool, namespace: team}}}", "name: chat-0123456789-pool, namespace: shared}}}", 1),
			want: "kubernetes.m.crossplane.io/v1alpha1 team ClusterProviderConfig east shared",
		},
		"Abandoned": {
			reason: "Nothing waits for the cluster.", xr: xr(", targets: [{name: v1}]"), pool: poolIn("east", "of-chat", "managementPolicies: [Observe, Create, Update, LateInitialize],"),
			want: "kubernetes.m.crossplane.io/v1alpha1 team ClusterProviderConfig east team orphaned",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := reconciled(t, fn, fixture.Request(t, tc.xr, ""), world{"service": {service(ready + inFleet)}, "pools": {tc.pool}})
			o := rsp.GetDesired().GetResources()[rewriteEast].GetResource()
			text := func(path ...string) string { return kube.Lookup(o, path...).GetStringValue() }
			got := strings.Join([]string{
				text("apiVersion"), text("metadata", "namespace"), text("spec", "providerConfigRef", "kind"), text("spec", "providerConfigRef", "name"),
				text("spec", "forProvider", "manifest", "metadata", "namespace"),
			}, " ")
			if kube.Lookup(o, "spec", "managementPolicies") != nil {
				got += " orphaned"
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if kube.Lookup(o, "metadata", "labels", "fusioninfer.io/service") != nil {
				t.Error("the Object has the label by which an InferenceCluster looks for workloads of the service")
			}
		})
	}
}

// TestRequirements proves that what a model requires is bounded: the service, its pools, and what may have
// the names of its own objects. Each is stable after few calls.
func TestRequirements(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, xr(", targets: [{name: v1}], priority: 1"), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ModelInput, missingKinds: Skip}`)
	w := alone(ready + routing)
	for _, kind := range []string{"inferencepools.inference.networking.k8s.io/v1", "inferenceobjectives.llm-d.ai/v1alpha2", "inferencemodelrewrites.llm-d.ai/v1alpha2"} {
		name, version, _ := strings.Cut(kind, "/")
		w["kind/"+name] = []string{`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: ` + version + `, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`}
	}
	first, calls := fixture.Reconcile(t, fn, req, w)
	if got := fixture.Keys(first.GetRequirements().GetResources()); calls != 2 || !cmp.Equal(got, []string{"existing/" + lock, "service"}) {
		t.Errorf("before the name is held: %d calls, requires %v", calls, got)
	}
	apply(t, req, first)
	second, calls := fixture.Reconcile(t, fn, req, w)
	want := []string{"existing/" + rewrite, "existing/" + objective, "kind/inferencemodelrewrites.llm-d.ai", "kind/inferenceobjectives.llm-d.ai", "kind/inferencepools.inference.networking.k8s.io", "pool", "service"}
	if diff := cmp.Diff(want, fixture.Keys(second.GetRequirements().GetResources())); diff != "" || calls > 6 {
		t.Errorf("once it is held, after %d calls: -want, +got:\n%s", calls, diff)
	}
	apply(t, req, second)
	third, _ := fixture.Reconcile(t, fn, req, w)
	if got := fixture.Keys(third.GetRequirements().GetResources()); !cmp.Equal(got, []string{"pool", "service"}) {
		t.Errorf("when it serves, it requires %v", got)
	}
}
