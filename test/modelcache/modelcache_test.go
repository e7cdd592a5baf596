// Package modelcache has tests of a ModelCache, and of services that share it, from call to call.
package modelcache

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// cache returns the ModelCache qwen with these fields of the spec beside its source.
func cache(fields string) string {
	return `{apiVersion: fusioninfer.io/v1alpha1, kind: ModelCache, metadata: {name: qwen, namespace: team, uid: of-qwen, generation: 1, creationTimestamp: "2026-05-04T08:00:00Z"}, spec: {uri: "hf://Qwen/Qwen3-8B", size: 40Gi` + fields + `}}`
}

// service returns a service that names the ModelCache qwen, with more fields of the spec.
func service(name, fields string) string {
	return `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: ` + name + `, namespace: team, uid: of-` + name + `, generation: 1, creationTimestamp: "2026-05-04T09:00:00Z"}, spec: {` + fields + `
  model: {cacheRef: {name: qwen}}, roles: [{name: w, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: vllm}]}}}]}}`
}

// A party is a composite resource from call to call.
type party struct {
	*testing.T

	fn  *function.Client
	req *fnv1.RunFunctionRequest
}

func begin(t *testing.T, fn *function.Client, xr string) *party {
	t.Helper()
	return &party{T: t, fn: fn, req: fixture.Request(t, xr, "")}
}

// call calls the function with what it requires, and returns its answer.
func (p *party) call(found map[string][]string) *fnv1.RunFunctionResponse {
	p.Helper()
	rsp, _ := fixture.Reconcile(p, p.fn, p.req, found)
	return rsp
}

// apply calls the function and applies its answer, as Crossplane and provider-kubernetes do. It returns the
// keys of what is desired.
func (p *party) apply(found map[string][]string) []string {
	p.Helper()
	rsp := p.call(found)
	if fixture.IsFatal(rsp) {
		p.Fatal(fixture.Fatals(rsp))
	}
	observed := map[string]*fnv1.Resource{}
	for k, r := range rsp.GetDesired().GetResources() {
		o := kube.With(r.GetResource(), structpb.NewStringValue("uid-"+k), "metadata", "uid")
		o = kube.With(o, structpb.NewStringValue("2026-05-04T08:00:00Z"), "metadata", "creationTimestamp")
		o = kube.With(o, structpb.NewStringValue("1"), "metadata", "resourceVersion")
		if manifest := kube.Lookup(o, "spec", "forProvider", "manifest"); manifest != nil {
			of := kube.With(manifest.GetStructValue(), structpb.NewStringValue("uid-of-"+k), "metadata", "uid")
			o = kube.With(o, structpb.NewStructValue(fixture.YAML(p, `{conditions: [{type: Synced, status: "True"}]}`)), "status")
			o = kube.With(o, structpb.NewStructValue(of), "status", "atProvider", "manifest")
		}
		observed[k] = &fnv1.Resource{Resource: o}
	}
	p.req.Observed.Resources = observed
	status := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"]
	p.req.Observed.Composite.Resource = kube.With(p.req.GetObserved().GetComposite().GetResource(), proto.CloneOf(status), "status")
	return fixture.Keys(rsp.GetDesired().GetResources())
}

// complete makes the loading Job complete, in the cluster or in another one.
func (p *party) complete() {
	p.Helper()
	for k, r := range p.req.GetObserved().GetResources() {
		if !strings.Contains(k, "job/") {
			continue
		}
		status := structpb.NewStructValue(fixture.YAML(p, `{conditions: [{type: Complete, status: "True"}]}`))
		o := kube.With(r.GetResource(), status, "status")
		if strings.HasPrefix(k, "cluster/") {
			o = kube.With(r.GetResource(), status, "status", "atProvider", "manifest", "status")
		}
		p.req.Observed.Resources[k] = &fnv1.Resource{Resource: o}
	}
}

// serve makes the replicas ready.
func (p *party) serve() {
	p.Helper()
	fixture.MakeReady(p, p.req)
}

// doc is the composite resource as others read it.
func (p *party) doc() []string {
	b, err := p.req.GetObserved().GetComposite().GetResource().MarshalJSON()
	if err != nil {
		p.Fatal(err)
	}
	return []string{string(b)}
}

// loaded returns a ModelCache whose weights are there.
func loaded(t *testing.T, fn *function.Client) *party {
	t.Helper()
	return loadedOf(t, fn, cache(""))
}

// loadedOf returns a ModelCache as loaded does, from its document.
func loadedOf(t *testing.T, fn *function.Client, xr string) *party {
	t.Helper()
	c := begin(t, fn, xr)
	c.apply(nil)
	c.apply(nil)
	c.complete()
	c.apply(nil)
	return c
}

func kinds(keys []string) []string {
	var all []string
	for _, k := range keys {
		kind, _, _ := strings.Cut(k, "/")
		all = append(all, kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// claims are the names of the claims that the pods of a response mount.
func claims(rsp *fnv1.RunFunctionResponse) []string {
	var all []string
	for _, r := range rsp.GetDesired().GetResources() {
		pod := kube.Lookup(r.GetResource(), "spec", "leaderWorkerTemplate", "workerTemplate", "spec").GetStructValue()
		for _, v := range kube.Elements(pod, "volumes") {
			if c := kube.Lookup(v.GetStructValue(), "persistentVolumeClaim"); c != nil {
				all = append(all, kube.Lookup(v.GetStructValue(), "persistentVolumeClaim", "claimName").GetStringValue())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestWarning warns of a ModelCache whose model the hub probably does not have, or that one node alone can mount. It is ready all the same.
func TestWarning(t *testing.T) {
	cases := map[string]struct{ xr, want string }{
		"None":         {cache(""), "TRUE NothingSuspicious"},
		"Organization": {strings.Replace(cache(""), "Qwen/", "", 1), `FALSE Suspicious: spec.uri: "Qwen3-8B" has no organization`},
		"OneNode":      {cache(", accessMode: ReadWriteOnce"), "FALSE Suspicious: spec.accessMode: lets only one node mount the claim"},
		"Commit":       {cache(", revision: 9c925d6"), `FALSE Suspicious: spec.revision: "9c925d6" looks like a part of a commit`},
	}
	fn := function.Start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := loadedOf(t, fn, tc.xr)
			rsp := c.call(nil)
			got := fixture.Condition(rsp, "NoWarnings")
			i := slices.IndexFunc(rsp.GetConditions(), func(c *fnv1.Condition) bool { return c.GetType() == "NoWarnings" && c.Message != nil })
			if i >= 0 {
				got += ": " + rsp.GetConditions()[i].GetMessage()
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("NoWarnings: want %q, got %q", tc.want, got)
			}
			if rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_FALSE {
				t.Error("it is not ready")
			}
		})
	}
}

// TestLoading follows a ModelCache until its weights are there: the claim, then the Job, which goes once the
// status has that it is complete.
func TestLoading(t *testing.T) {
	c := begin(t, function.Start(t), cache(""))
	const claim, job = "persistentvolumeclaim", "job"
	want := func(reason, model string, keys ...string) {
		t.Helper()
		rsp := c.call(nil)
		got := append(kinds(c.apply(nil)), fixture.Condition(rsp, "ModelReady"))
		if diff := cmp.Diff(append(keys, model), got); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", reason, diff)
		}
	}
	want("First the claim.", "FALSE Loading", claim)
	want("Then the Job.", "FALSE Loading", job, claim)
	c.complete()
	want("It stays until the status has it.", "TRUE Loaded", job, claim)
	want("Then it goes.", "TRUE Loaded", claim)
}

// TestShared proves that two services mount one claim, make neither a claim nor a Job, and that either of
// them comes and goes without the other.
func TestShared(t *testing.T) {
	fn := function.Start(t)
	c := begin(t, fn, cache(""))
	c.apply(nil)
	chat, code := begin(t, fn, service("chat", "")), begin(t, fn, service("code", ""))
	for _, s := range []*party{chat, code} {
		rsp := s.call(map[string][]string{"model-cache": c.doc()})
		if got := kinds(fixture.Keys(rsp.GetDesired().GetResources())); slices.Contains(got, "leaderworkerset") {
			t.Errorf("%s has replicas before the weights are there: %v", fixture.Name(s.req), got)
		}
		if diff := cmp.Diff("FALSE Loading", fixture.Condition(rsp, "ModelReady")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", fixture.Name(s.req), diff)
		}
	}
	c = loaded(t, fn)
	for _, s := range []*party{chat, code} {
		rsp := s.call(map[string][]string{"model-cache": c.doc()})
		if diff := cmp.Diff([]string{"leaderworkerset", "poddisruptionbudget", "service"}, kinds(fixture.Keys(rsp.GetDesired().GetResources()))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", fixture.Name(s.req), diff)
		}
		want := kube.Lookup(c.req.GetObserved().GetComposite().GetResource(), "status", "claimName").GetStringValue()
		if diff := cmp.Diff([]string{want}, claims(rsp)); diff != "" || want == "" {
			t.Errorf("%s: claims: -want +got:\n%s", fixture.Name(s.req), diff)
		}
	}
}

// TestUsable proves that services can use the weights of every source that a ModelCache may have.
func TestUsable(t *testing.T) {
	long := strings.Repeat("a", 254)
	cases := map[string]struct{ reason, uri, model, directory string }{
		"Hub":        {"The name in the hub is that of the model.", "hf://Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "qwen3-8b-"},
		"Bucket":     {"So is a bucket's without a prefix.", "s3://models", "models", "models-"},
		"Underscore": {"A prefix may begin with an underscore.", "s3://models/_x", "_x", "x-"},
		"NoLetter":   {"Nothing of it may suit a directory.", "s3://models/__", "__", "weights-"},
		"Long":       {"A prefix may be longer than a name of the API.", "s3://models/" + long, long, long[:63] + "-"},
	}
	fn := function.Start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := loadedOf(t, fn, strings.Replace(cache(""), "hf://Qwen/Qwen3-8B", tc.uri, 1))
			rsp := begin(t, fn, service("chat", "")).call(map[string][]string{"model-cache": c.doc()})
			if diff := cmp.Diff([]string{"leaderworkerset", "poddisruptionbudget", "service"}, kinds(fixture.Keys(rsp.GetDesired().GetResources()))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			shared := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "model", "shared")
			if got := kube.Lookup(shared.GetStructValue(), "modelName").GetStringValue(); got != tc.model {
				t.Errorf("%s\nname of the model: want %q, got %q", tc.reason, tc.model, got)
			}
			if got := kube.Lookup(shared.GetStructValue(), "directory").GetStringValue(); !strings.HasPrefix(got, tc.directory) {
				t.Errorf("%s\ndirectory: want %q and a hash, got %q", tc.reason, tc.directory, got)
			}
		})
	}
}

// TestWithout proves that nothing which runs changes while the ModelCache is missing, goes, or says nothing,
// and that new replicas wait.
func TestWithout(t *testing.T) {
	fn := function.Start(t)
	c := loaded(t, fn)
	edited := func(change func(*structpb.Struct) *structpb.Struct) []string {
		b, err := change(c.req.GetObserved().GetComposite().GetResource()).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return []string{string(b)}
	}
	cases := map[string]struct {
		reason string
		found  []string
	}{
		"Missing": {reason: "It was deleted.", found: nil},
		"Deleting": {reason: "It is being deleted.", found: edited(func(s *structpb.Struct) *structpb.Struct {
			return kube.With(s, structpb.NewStringValue("2026-05-05T08:00:00Z"), "metadata", "deletionTimestamp")
		})},
		"Silent": {reason: "It was made anew, and has no status.", found: edited(func(s *structpb.Struct) *structpb.Struct {
			return kube.With(s, structpb.NewNullValue(), "status")
		})},
		"Hostile": {reason: "A status that is no name is none.", found: edited(func(s *structpb.Struct) *structpb.Struct {
			return kube.With(s, structpb.NewStringValue("../../etc"), "status", "directory")
		})},
		"Wrong": {reason: "A status of another type is none.", found: edited(func(s *structpb.Struct) *structpb.Struct {
			return kube.With(s, structpb.NewStringValue("x"), "status")
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, fn, service("chat", ""))
			there := map[string][]string{"model-cache": c.doc()}
			s.apply(there)
			s.serve()
			before := s.call(there)
			after := s.call(map[string][]string{"model-cache": tc.found})
			if diff := cmp.Diff(before.GetDesired().GetResources(), after.GetDesired().GetResources(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\n-before +after:\n%s", tc.reason, diff)
			}
			s.req.Observed.Composite.Resource = kube.With(s.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, strings.ReplaceAll(service("chat", ""), "replicas: 2", "replicas: 3")).GetFields()["spec"], "spec")
			if got := kube.Lookup(s.req.GetObserved().GetComposite().GetResource(), "status", "model", "shared", "claimName").GetStringValue(); got == "" {
				t.Fatal("the status does not say which claim the service has")
			}
			grown := s.call(map[string][]string{"model-cache": tc.found})
			if diff := cmp.Diff(fixture.Keys(before.GetDesired().GetResources()), fixture.Keys(grown.GetDesired().GetResources())); diff != "" {
				t.Errorf("a new replica starts: -before +after:\n%s", diff)
			}
			if diff := cmp.Diff("FALSE Loading", fixture.Condition(grown, "ModelReady")); diff != "" {
				t.Errorf("ModelReady: -want +got:\n%s", diff)
			}
		})
	}
}

// TestAnother proves that a service which names another ModelCache keeps its pods until that is loaded, and
// that one which does not exist is refused.
func TestAnother(t *testing.T) {
	fn := function.Start(t)
	c := loaded(t, fn)
	s := begin(t, fn, strings.Replace(service("chat", ""), "cacheRef: {name: qwen}", `uri: "hf://a/b"`, 1))
	s.apply(nil)
	s.serve()
	s.req.Observed.Composite.Resource = kube.With(s.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, service("chat", "")).GetFields()["spec"], "spec")
	rsp := s.call(nil)
	if diff := cmp.Diff(`nothing was changed: spec.model.cacheRef.name: Invalid value: "qwen": there is no ModelCache qwen in the namespace of the service: what runs stays as it is`, fixture.Fatals(rsp)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	loading := begin(t, fn, cache(""))
	loading.apply(nil)
	for _, step := range []struct {
		name  string
		found []string
		held  float64
	}{{"held", loading.doc(), 2}, {"updated", c.doc(), 1}} {
		got := 0.0
		for k, r := range s.call(map[string][]string{"model-cache": step.found}).GetDesired().GetResources() {
			if strings.HasPrefix(k, "leaderworkerset/") {
				got += kube.Lookup(r.GetResource(), "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue()
			}
		}
		if got != step.held {
			t.Errorf("%s: %v replicas are held, want %v", step.name, got, step.held)
		}
		s.apply(map[string][]string{"model-cache": step.found})
		s.serve()
		for k, r := range s.req.GetObserved().GetResources() {
			if strings.HasPrefix(k, "leaderworkerset/") { // It serves as it was before.
				r.Resource = kube.With(r.GetResource(), structpb.NewNumberValue(0), "status", "updatedReplicas")
			}
		}
	}
}

// TestRoutedMeanwhile proves that a service which InferenceModels may name does not forget them while it has no pods and waits for its
// ModelCache. Another endpoint picker would read none of them. One that has servedModels keeps its endpoint picker anyway.
func TestRoutedMeanwhile(t *testing.T) {
	const refusal = `nothing was changed: spec.model.cacheRef.name: Invalid value: "qwen": there is no ModelCache qwen in the namespace of the service: InferenceModels may name this service, and its endpoint picker would not read them any more`
	fn := function.Start(t)
	served := `servedModels: [{name: chat, targets: [{name: "a/b"}]}]`
	with := func(router string) string {
		return strings.Replace(service("chat", ""), "roles: [", `roles: [{name: r, componentType: router, `+router+`}, `, 1)
	}
	for router, want := range map[string]string{"": refusal, served: ""} {
		s := begin(t, fn, strings.Replace(with(served), "cacheRef: {name: qwen}", `uri: "hf://a/b"`, 1))
		s.apply(nil)
		for k := range s.req.GetObserved().GetResources() {
			if strings.HasPrefix(k, "leaderworkerset/") {
				delete(s.req.GetObserved().GetResources(), k)
			}
		}
		s.req.Observed.Composite.Resource = kube.With(s.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, with(router)).GetFields()["spec"], "spec")
		if diff := cmp.Diff(want, fixture.Fatals(s.call(nil))); diff != "" {
			t.Errorf("%q: -want +got:\n%s", router, diff)
		}
	}
}

// TestNamesUnknown proves that a service says which models its engines serve only once it knows its ModelCache. Otherwise
// an InferenceModel could get the name of the model itself.
func TestNamesUnknown(t *testing.T) {
	fn := function.Start(t)
	xr := strings.Replace(service("chat", ""), "roles: [", `roles: [{name: r, componentType: router, servedModels: [{name: chat, targets: [{name: "Qwen/Qwen3-8B"}]}]}, `, 1)
	cases := map[string]struct {
		found []string
		want  string
	}{
		"NotFound": {want: "null"},
		"Deleted":  {found: []string{strings.Replace(cache(""), "uid: of-qwen", `uid: of-qwen, deletionTimestamp: "2026-05-04T08:30:00Z"`, 1)}, want: "null"},
		"Loaded":   {found: loaded(t, fn).doc(), want: `{"complete":true,"servedNames":["Qwen/Qwen3-8B"]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := begin(t, fn, xr).call(map[string][]string{"model-cache": tc.found})
			for _, r := range rsp.GetResults() {
				if strings.Contains(r.GetMessage(), "no engine answers") {
					t.Error(r.GetMessage())
				}
			}
			got, err := json.Marshal(kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "modelRouting").AsInterface())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("status.modelRouting: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestRefused shows what a ModelCache, and a service that names one, may not say.
func TestRefused(t *testing.T) {
	fn := function.Start(t)
	cases := map[string]struct {
		reason, xr, input, want string
	}{
		"Class": {
			reason: "The policy for spec.model.cache holds for a ModelCache, too.", xr: cache(`, storageClassName: fast`),
			want: `spec.storageClassName: Invalid value: "fast": must be left out: none is allowed in namespace team (modelCaches.allowedStorageClassNames in the Composition's input)`,
		},
		"Size": {
			reason: "So does the largest size, for each tenant.", xr: cache(``),
			input: `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, tenants: [{namespaces: [team], modelCaches: {maxSize: 10Gi}}]}`,
			want:  `spec.size: Invalid value: "40Gi": must be at most 10Gi (modelCaches.maxSize in the Composition's input)`,
		},
		"Both": {
			reason: "The ModelCache alone says where the weights come from.", xr: strings.Replace(service("chat", ""), "cacheRef:", `uri: "hf://a/b", cache: {size: 1Gi}, cacheRef:`, 1),
			want: "spec.model.cache: Forbidden: must be left out with cacheRef: the ModelCache says where the weights come from; spec.model.uri: Forbidden: must be left out with cacheRef: the ModelCache says where the weights come from",
		},
		"OutsideFleet": {
			reason: "A ModelCache knows nothing of such a cluster.", xr: service("chat", `placement: {clusters: [{name: edge, providerConfigRef: {name: edge}}]},`),
			input: `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: edge}]}`,
			want:  `spec.model.cacheRef: Forbidden: must be left out while cluster "edge" has a providerConfigRef: a ModelCache is in clusters of the fleet, or in that of its object`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp, err := fn.RunFunction(t.Context(), fixture.Request(t, tc.xr, tc.input))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("nothing was changed: "+tc.want, fixture.Fatals(rsp)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOtherWeights proves that a ModelCache keeps what its weights are, and its claim with it.
func TestOtherWeights(t *testing.T) {
	c := loaded(t, function.Start(t))
	c.req.Observed.Composite.Resource = kube.With(c.req.GetObserved().GetComposite().GetResource(), structpb.NewStringValue("other"), "spec", "revision")
	want := "nothing was changed: spec: Forbidden: uri, revision, size, storageClassName and accessMode cannot be changed: make another ModelCache, and name it in the services"
	if diff := cmp.Diff(want, fixture.Fatals(c.call(nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMoved proves that weights in the cluster of the ModelCache do not go because it gets clusters.
func TestMoved(t *testing.T) {
	c := loaded(t, function.Start(t))
	c.req.Observed.Composite.Resource = kube.With(c.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, cache(`, clusters: [east]`)).GetFields()["spec"], "spec")
	want := "nothing was changed: spec.clusters: Forbidden: neither clusters nor clusterSelector can be added once the weights are in the cluster of this object: make another ModelCache, and name it in the services"
	if diff := cmp.Diff(want, fixture.Fatals(c.call(nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestClustersRemoved proves that weights in clusters do not go because the ModelCache names none any more.
func TestClustersRemoved(t *testing.T) {
	f := newFleet(t)
	c := f.add("qwen", cache(`, clusters: [east]`))
	for range 4 {
		f.round()
	}
	c.req.Observed.Composite.Resource = kube.With(c.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, cache("")).GetFields()["spec"], "spec")
	want := "nothing was changed: spec.clusters: Required value: clusters or clusterSelector must stay once the weights are in clusters of the fleet: make another ModelCache, and name it in the services"
	if diff := cmp.Diff(want, fixture.Fatals(c.call(f.found()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAnew proves that a ModelCache which is made anew has another claim. The former one is there until no pod
// uses it any more.
func TestAnew(t *testing.T) {
	fn := function.Start(t)
	name := func(uid string) string {
		rsp := begin(t, fn, strings.Replace(cache(""), "of-qwen", uid, 1)).call(nil)
		return kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "claimName").GetStringValue()
	}
	if one, two := name("one"), name("two"); one == two || one == "" {
		t.Errorf("the claims are %q and %q", one, two)
	}
}

// TestRestored proves that a ModelCache which was restored from a backup goes on with its claim. It has another UID and no status then. Its
// Job finds the weights in the claim, which the services have.
func TestRestored(t *testing.T) {
	cases := map[string]struct{ reason, fields string }{
		"Here":      {"The claim is beside the ModelCache.", ""},
		"Elsewhere": {"An Object has the claim of another cluster.", ", clusters: [east]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			c := f.add("qwen", cache(tc.fields))
			// claim is the name of the claim, mounted the one that Jobs fill, and said the one that services are told.
			claim, mounted, said := "", "", ""
			load := func() {
				for range 6 {
					f.round()
					for k, r := range c.req.GetObserved().GetResources() {
						o := r.GetResource()
						if manifest := kube.Lookup(o, "spec", "forProvider", "manifest"); manifest != nil {
							o = manifest.GetStructValue()
						}
						switch {
						case strings.Contains(k, "persistentvolumeclaim/"):
							claim = kube.Lookup(o, "metadata", "name").GetStringValue()
						case strings.Contains(k, "job/"):
							volume := kube.Elements(kube.Lookup(o, "spec", "template", "spec").GetStructValue(), "volumes")[0]
							mounted = kube.Lookup(volume.GetStructValue(), "persistentVolumeClaim", "claimName").GetStringValue()
						}
					}
					c.complete()
				}
				said = kube.Lookup(c.req.GetObserved().GetComposite().GetResource(), "status", "claimName").GetStringValue()
			}
			load()
			before := claim
			mounted = ""
			xr := kube.With(c.req.GetObserved().GetComposite().GetResource(), structpb.NewStringValue("restored"), "metadata", "uid")
			c.req.Observed.Composite.Resource = kube.With(xr, structpb.NewNullValue(), "status")
			load()
			if diff := cmp.Diff([]string{before, before, before}, []string{claim, mounted, said}); diff != "" || before == "" {
				t.Errorf("%s\nthe claim, what the Job fills, what services are told: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff("TRUE Loaded", fixture.Condition(c.call(f.found()), "ModelReady")); diff != "" {
				t.Errorf("ModelReady: -want +got:\n%s", diff)
			}
		})
	}
}

// TestRequirements shows what is read: nothing of other namespaces, in either flavour.
func TestRequirements(t *testing.T) {
	fn := function.Start(t)
	claimed := func(xr string) string {
		return strings.NewReplacer("kind: ", "kind: X", "namespace: team", `labels: {crossplane.io/claim-name: mine, crossplane.io/claim-namespace: team}`).Replace(xr)
	}
	cases := map[string]struct{ xr, name, want string }{
		"Service":        {xr: service("chat", ""), name: "model-cache", want: `{apiVersion: fusioninfer.io/v1alpha1, kind: ModelCache, matchName: qwen, namespace: team}`},
		"ClaimedService": {xr: claimed(service("chat", "")), name: "model-cache", want: `{apiVersion: fusioninfer.io/v1alpha1, kind: XModelCache, matchLabels: {labels: {crossplane.io/claim-name: qwen, crossplane.io/claim-namespace: team}}}`},
		"Cache":          {xr: cache(`, clusters: [east], loadPolicy: OnDemand`), name: "model-cache-users", want: `{apiVersion: v1, kind: ConfigMap, matchLabels: {labels: {fusioninfer.io/uses-model-cache: qwen}}, namespace: team}`},
		"ClaimedCache":   {xr: claimed(cache(`, clusters: [east], loadPolicy: OnDemand`)), name: "model-cache-users", want: `{apiVersion: v1, kind: ConfigMap, matchLabels: {labels: {fusioninfer.io/uses-model-cache: mine}}, namespace: team}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp, err := fn.RunFunction(t.Context(), fixture.Request(t, tc.xr, ""))
			if err != nil {
				t.Fatal(err)
			}
			b, err := protojson.Marshal(rsp.GetRequirements().GetResources()[tc.name])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fixture.YAML(t, tc.want), fixture.YAML(t, string(b)), protocmp.Transform()); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, fixture.Fatals(rsp))
			}
		})
	}
}

// TestAdapters proves that engines which serve adapters keep their model behind a ModelCache, too, and may get another
// revision of it, which is another ModelCache.
func TestAdapters(t *testing.T) {
	fn := function.Start(t)
	of := func(name, uri, fields string) []string {
		xr := strings.NewReplacer("name: qwen", "name: "+name, "hf://Qwen/Qwen3-8B", uri).Replace(cache(fields))
		return loadedOf(t, fn, xr).doc()
	}
	cases := map[string]struct {
		reason, model string
		found         []string
		want          string
	}{
		"Revision":  {reason: "Adapters fit all revisions.", model: `{cacheRef: {name: other}}`, found: of("other", "hf://Qwen/Qwen3-8B", ", revision: two")},
		"Own":       {reason: "So they do in a cache of its own.", model: `{uri: "hf://Qwen/Qwen3-8B", cache: {size: 40Gi}}`},
		"Unknown":   {reason: "The ModelCache is not there yet.", model: `{cacheRef: {name: other}}`},
		"Unchanged": {reason: "A ModelCache that is missing changes nothing.", model: `{cacheRef: {name: qwen}}`},
		"Other": {
			reason: "Another model.", model: `{cacheRef: {name: other}}`, found: of("other", "hf://acme/base", ""),
			want: "nothing was changed: spec.model: Forbidden: must stay hf://Qwen/Qwen3-8B while engines serve adapters of spec.adapterCache, and is hf://acme/base: an adapter is for one model. " +
				"Make another service, or set replicas to 0 first",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, fn, service("chat", "adapterCache: {size: 1Gi},"))
			found := map[string][]string{"model-cache": of("qwen", "hf://Qwen/Qwen3-8B", "")}
			const claim = "persistentvolumeclaim/adapters"
			for range 3 {
				s.apply(found)
				s.serve()
				o := s.req.GetObserved().GetResources()[claim].GetResource()
				s.req.Observed.Resources[claim] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStructValue(fixture.YAML(t, `{phase: Bound}`)), "status")}
			}
			xr := s.req.GetObserved().GetComposite().GetResource()
			if len(kube.Lookup(xr, "status", "adapterCache", "clusters").GetListValue().GetValues()) == 0 {
				t.Fatal("no adapters can be loaded")
			}
			s.req.Observed.Composite.Resource = kube.With(xr, structpb.NewStructValue(fixture.YAML(t, tc.model)), "spec", "model")
			if diff := cmp.Diff(tc.want, fixture.Fatals(s.call(map[string][]string{"model-cache": tc.found}))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
