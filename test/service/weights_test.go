package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

const cached = `
model: {uri: "hf://Qwen/Qwen3-8B", revision: REVISION, tokenSecretRef: {name: hf}, cache: {size: 40Gi}}
roles:
- {name: w, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: vllm}]}}}
`

const loaderInput = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, `

func revision(of string) string { return fixture.Service(strings.ReplaceAll(cached, "REVISION", of)) }

// A loading is a service with a cache from call to call.
type loading struct {
	*testing.T

	fn  *function.Client
	req *fnv1.RunFunctionRequest
}

// call calls the function and applies its answer, as Crossplane does. It returns the kinds of what is
// desired, and the condition of the model.
func (l *loading) call() []string {
	l.Helper()
	rsp := l.fn.Run(l.T, l.req)
	if fixture.IsFatal(rsp) {
		l.Fatal(fixture.Fatals(rsp))
	}
	observed := map[string]*fnv1.Resource{}
	got := []string{}
	for key, r := range rsp.GetDesired().GetResources() {
		o := r.GetResource()
		for _, field := range []string{"uid", "creationTimestamp", "generation"} {
			if v := kube.Lookup(l.req.GetObserved().GetResources()[key].GetResource(), "metadata", field); v != nil {
				o = kube.With(o, v, "metadata", field)
			}
		}
		if kube.Lookup(o, "metadata", "uid") == nil {
			o = kube.With(o, structpb.NewStringValue("uid-"+key), "metadata", "uid")
			o = kube.With(o, structpb.NewStringValue("2026-05-04T08:00:00Z"), "metadata", "creationTimestamp")
		}
		if s := kube.Lookup(l.req.GetObserved().GetResources()[key].GetResource(), "status"); s != nil {
			o = kube.With(o, s, "status")
		}
		observed[key] = &fnv1.Resource{Resource: o}
		what := kindOf(o)
		switch {
		case what == "LeaderWorkerSet" && partition(o) > 0:
			what += " held"
		case what == "Service", what == "PodDisruptionBudget":
			continue
		}
		got = append(got, what)
	}
	slices.Sort(got)
	l.req.Observed.Resources = observed
	status := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"]
	l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), proto.CloneOf(status), "status")
	return append(got, fixture.Condition(rsp, "ModelReady"))
}

// set gives all observed objects of a kind a status.
func (l *loading) set(kind, status string) {
	for key, r := range l.req.GetObserved().GetResources() {
		path := []string{"status"}
		if kube.Lookup(r.GetResource(), "kind").GetStringValue() == "Object" {
			path = append(path, "of")
		}
		if kindOf(r.GetResource()) == kind {
			l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewStructValue(fixture.YAML(l.T, status)), path...)}
		}
	}
}

// without takes away what is observed with these keys.
func (l *loading) without(keys string) {
	for key := range l.req.GetObserved().GetResources() {
		if strings.HasPrefix(key, keys) {
			delete(l.req.GetObserved().GetResources(), key)
		}
	}
}

// settle makes all replicas ready, with the pods that they are to have.
func (l *loading) settle() {
	for key, r := range l.req.GetObserved().GetResources() {
		o := r.GetResource()
		if kube.Lookup(o, "kind").GetStringValue() != "LeaderWorkerSet" {
			continue
		}
		status := serves
		if partition(o) > 0 {
			status = held
		}
		l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStructValue(fixture.YAML(l.T, status)), "status")}
	}
}

func partition(o *structpb.Struct) float64 {
	return kube.Lookup(o, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue()
}

// kindOf is the kind of an object, or of the one that an Object carries.
func kindOf(o *structpb.Struct) string {
	if k := kube.Lookup(o, "spec", "forProvider", "manifest", "kind").GetStringValue(); k != "" {
		return k
	}
	return kube.Lookup(o, "kind").GetStringValue()
}

func (l *loading) spec(xr string) {
	spec := fixture.YAML(l.T, xr).GetFields()["spec"]
	l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), spec, "spec")
}

const (
	complete = `{conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-05-04T08:10:00Z"}]}`
	serves   = `{observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: "True"}]}`
	held     = `{observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 0, conditions: [{type: Available, status: "True"}]}`
)

func begin(t *testing.T, xr string) *loading {
	t.Helper()
	return &loading{T: t, fn: function.Start(t), req: fixture.Request(t, xr, "")}
}

// loaded is a service whose weights are there, and whose replicas serve.
func loaded(t *testing.T) *loading {
	t.Helper()
	l := begin(t, revision("one"))
	l.call()
	l.call()
	l.set("Job", complete)
	l.call()
	l.settle()
	l.call()
	return l
}

func (l *loading) want(reason, model string, want ...string) {
	l.Helper()
	if diff := cmp.Diff(append(want, model), l.call()); diff != "" {
		l.Errorf("%s\n-want +got:\n%s", reason, diff)
	}
}

// TestWeights follows a service from its claim to a new revision, and proves that no replica is created
// before its weights are there, and that nothing which serves is taken away.
func TestWeights(t *testing.T) {
	const claim, replica, kept = "PersistentVolumeClaim", "LeaderWorkerSet", "LeaderWorkerSet held"
	l := begin(t, revision("one"))
	l.want("First the claim is made.", "FALSE Loading", claim)
	l.want("Then the Job.", "FALSE Loading", "Job", claim)
	l.set("Job", `{active: 1, ready: 1}`)
	l.want("Replicas wait for it.", "FALSE Loading", "Job", claim)
	l.set("Job", complete)
	l.want("It stays until the status has it.", "TRUE Loaded", "Job", replica, replica, claim)
	l.settle()
	l.want("Then it goes.", "TRUE Loaded", replica, replica, claim)

	l.spec(revision("two"))
	l.want("The new revision has a claim of its own.", "FALSE Loading", kept, kept, claim, claim)
	l.settle()
	l.want("Replicas keep their pods while it is loaded.", "FALSE Loading", "Job", kept, kept, claim, claim)
	l.set("Job", complete)
	l.want("One replica after the other gets it.", "TRUE Loaded", "Job", replica, kept, claim, claim)
	l.settle()
	l.want("The second replica follows, and the former claim stays meanwhile.", "TRUE Loaded", replica, replica, claim, claim)
	l.settle()
	l.want("Nobody uses the former claim.", "TRUE Loaded", replica, replica, claim)
}

// TestOwnClaimNamed proves that a claim stays which the service has made, and which its spec names in another way. The newest pods mount it.
func TestOwnClaimNamed(t *testing.T) {
	const claim, replica, role = "PersistentVolumeClaim", "LeaderWorkerSet", "{name: w, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: vllm}]}}}"
	cases := map[string]struct {
		reason, spec, model string
		warning             string
	}{
		"Cache":  {"The Job finds the weights in it.", "model: {uri: \"hf://Qwen/Qwen3-8B\", revision: one, cache: {claimName: CLAIM}}\nroles: [" + role + "]", "TRUE Loaded", "spec.model.cache.claimName"},
		"Source": {"The weights are where they were.", "model: {uri: \"pvc://CLAIM/qwen3-8b\"}\nroles: [" + role + "]", "TRUE NoCache", "spec.model.uri"},
		"Volume": {
			"A template may mount it.", "roles: [" + strings.Replace(role, "{containers:", "{volumes: [{name: m, persistentVolumeClaim: {claimName: CLAIM}}], containers:", 1) + "]",
			"TRUE NoCache", "spec.roles",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := loaded(t)
			of := ""
			for key, r := range l.req.GetObserved().GetResources() {
				if strings.HasPrefix(key, "persistentvolumeclaim/") {
					of = kube.Lookup(r.GetResource(), "metadata", "name").GetStringValue()
				}
			}
			l.spec(fixture.Service("\n" + strings.ReplaceAll(tc.spec, "CLAIM", of) + "\n"))
			for range 4 {
				l.call()
				l.set("Job", complete)
				l.settle()
			}
			l.want(tc.reason, tc.model, replica, replica, claim)
			warnings := ""
			for _, c := range l.fn.Run(t, l.req).GetConditions() {
				if c.GetType() == "NoWarnings" {
					warnings = c.GetMessage()
				}
			}
			if want := tc.warning + ": names claim " + of + ", which this service has made"; !strings.Contains(warnings, want) {
				t.Errorf("NoWarnings: want %q, got %q", want, warnings)
			}
			l.spec(revision("one"))
			for range 4 {
				l.call()
				l.set("Job", complete)
				l.settle()
			}
			l.want("The way back finds it, too.", "TRUE Loaded", replica, replica, claim)
		})
	}
}

// TestUnfinished proves that a revision which was never loaded leaves no claim behind once another one is wanted, and that
// what serves keeps its own. What may have been loaded stays.
func TestUnfinished(t *testing.T) {
	const claim, kept = "PersistentVolumeClaim", "LeaderWorkerSet held"
	three := []string{kept, kept, claim, claim, claim}
	cases := map[string]struct {
		reason string
		change func(*loading)
		want   []string
	}{
		"Loading": {reason: "Its Job runs.", change: func(l *loading) { l.set("Job", `{active: 1, ready: 1}`) }, want: []string{kept, kept, claim, claim}},
		"Failing": {reason: "Its Job has failed.", change: func(l *loading) { l.set("Job", `{conditions: [{type: Failed, status: "True"}]}`) }, want: []string{kept, kept, claim, claim}},
		"NoJob":   {reason: "Its Job is gone.", change: func(l *loading) { l.without("job/") }, want: []string{kept, kept, claim, claim}},
		"Loaded": {
			reason: "It has just been loaded, and the status does not have it yet.", want: three,
			change: func(l *loading) { l.set("Job", complete) },
		},
		"LoadedBefore": {
			reason: "It was loaded, and its claim was replaced. Pods may use it.", want: three,
			change: func(l *loading) {
				for _, c := range kube.Lookup(l.req.GetObserved().GetComposite().GetResource(), "status", "model", "caches").GetListValue().GetValues() {
					c.GetStructValue().Fields["claimUID"] = structpb.NewStringValue("former")
				}
			},
		},
		"StatusLost": {
			reason: "Nobody knows what was loaded.", want: three,
			change: func(l *loading) {
				l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), structpb.NewNullValue(), "status")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := loaded(t)
			l.spec(revision("two"))
			l.call()
			l.settle()
			l.want("Two loads.", "FALSE Loading", "Job", kept, kept, claim, claim)
			tc.change(l)
			l.spec(revision("three"))
			l.want(tc.reason, "FALSE Loading", tc.want...)
			l.settle()
			l.want("It stays so.", "FALSE Loading", append([]string{"Job"}, tc.want...)...)
			l.set("Job", complete)
			l.call()
			l.settle()
			l.call()
			l.settle()
			l.want("At last there is one claim.", "TRUE Loaded", "LeaderWorkerSet", "LeaderWorkerSet", claim)
		})
	}
}

// TestUnfinishedGoes proves that a claim which goes is not kept, because it would be made anew.
func TestUnfinishedGoes(t *testing.T) {
	l := loaded(t)
	l.spec(revision("two"))
	l.call()
	l.settle()
	l.call()
	former := map[string]*fnv1.Resource{}
	for k, r := range l.req.GetObserved().GetResources() {
		if strings.HasPrefix(k, "persistentvolumeclaim/") {
			former[k] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewStringValue("2026-05-04T08:20:00Z"), "metadata", "deletionTimestamp")}
		}
	}
	l.spec(revision("three"))
	l.call()
	for k, r := range former {
		if l.req.GetObserved().GetResources()[k] == nil {
			l.req.Observed.Resources[k] = r
		}
	}
	l.want("A pod of its Job still uses it.", "FALSE Loading", "Job", "LeaderWorkerSet held", "LeaderWorkerSet held", "PersistentVolumeClaim", "PersistentVolumeClaim")
}

// TestUnfinishedElsewhere proves that a claim in a cluster that does not answer stays.
func TestUnfinishedElsewhere(t *testing.T) {
	const claim, replica = "PersistentVolumeClaim", "LeaderWorkerSet"
	east := func(of string) string {
		return revision(of) + "\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}"
	}
	for synced, want := range map[string][]string{"True": {replica, replica, claim, claim}, "False": {replica, replica, claim, claim, claim}} {
		t.Run(synced, func(t *testing.T) {
			l := begin(t, east("one"))
			l.req.Input = fixture.YAML(t, loaderInput+`allowedProviderConfigs: [{name: east}]}`)
			l.req.RequiredResources = map[string]*fnv1.Resources{"provider-configs": {}}
			for range 2 {
				l.call()
				l.answer("True")
			}
			l.set("Job", complete)
			for range 2 {
				l.answer("True")
				l.call()
			}
			l.spec(east("two"))
			for range 2 {
				l.answer("True")
				l.call()
			}
			l.answer(synced)
			l.spec(east("three"))
			l.want("The next revision.", "FALSE Loading", want...)
		})
	}
}

// TestExtraWaits proves that an extra replica keeps its pods, too, until newer weights are there.
func TestExtraWaits(t *testing.T) {
	const claim, kept = "PersistentVolumeClaim", "LeaderWorkerSet held"
	surge := func(of string) string { return revision(of) + "\n  rollout: {maxSurge: 1, maxUnavailable: 0}" }
	l := loaded(t)
	l.spec(surge("two"))
	l.call()
	l.settle()
	l.call()
	l.set("Job", complete)
	l.want("An extra replica starts with the second revision.", "TRUE Loaded", "Job", "LeaderWorkerSet", kept, kept, claim, claim)
	l.settle()
	l.spec(surge("three"))
	l.want("It serves while the third one is loaded.", "FALSE Loading", kept, kept, kept, claim, claim, claim)
}

// TestWeightsStay proves that nothing is loaded again, and no replica is withheld, when something
// changes that has nothing to do with the weights.
func TestWeightsStay(t *testing.T) {
	const claim, replica = "PersistentVolumeClaim", "LeaderWorkerSet"
	cases := map[string]struct {
		reason string
		change func(*loading)
		model  string
		want   []string
	}{
		"Loader": {
			reason: "Another image is for weights that are not loaded.", model: "TRUE Loaded", want: []string{replica, replica, claim},
			change: func(l *loading) { l.req.Input = fixture.YAML(l, loaderInput+`modelLoader: {hubImage: other}}`) },
		},
		"Class": {
			reason: "A claim keeps its class.", model: "TRUE Loaded", want: []string{replica, replica, claim},
			change: func(l *loading) { l.req.Input = fixture.YAML(l, loaderInput+`modelCaches: {storageClassName: other}}`) },
		},
		"Token": {
			reason: "Other credentials load the same.", model: "TRUE Loaded", want: []string{replica, replica, claim},
			change: func(l *loading) { l.spec(strings.ReplaceAll(revision("one"), "name: hf", "name: other")) },
		},
		"StatusLost": {
			reason: "The Job finds the weights there.", model: "FALSE Loading", want: []string{"Job", replica, replica, claim},
			change: func(l *loading) {
				l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), structpb.NewNullValue(), "status")
			},
		},
		"ClaimLost": {
			reason: "A claim that was made anew is empty.", model: "FALSE Loading", want: []string{"Job", replica, replica, claim},
			change: func(l *loading) {
				for key, r := range l.req.GetObserved().GetResources() {
					if strings.HasPrefix(key, "persistentvolumeclaim/") {
						l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewStringValue("another"), "metadata", "uid")}
					}
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := loaded(t)
			tc.change(l)
			l.want(tc.reason, tc.model, tc.want...)
		})
	}
}

// TestVolumeLost proves that no replica starts with a claim whose volume was deleted, and that the replicas which run stay. If the volume is
// there again, the Job finds the weights.
func TestVolumeLost(t *testing.T) {
	const claim, replica = "PersistentVolumeClaim", "LeaderWorkerSet"
	l := loaded(t)
	l.set(claim, `{phase: Lost}`)
	l.spec(strings.Replace(revision("one"), "replicas: 2", "replicas: 3", 1))
	l.want("The volume is gone.", "FALSE LoadFailed", replica, replica, claim)
	l.set(claim, `{phase: Bound}`)
	l.want("It is back.", "FALSE Loading", "Job", replica, replica, claim)
	l.set("Job", complete)
	l.want("The third replica starts.", "TRUE Loaded", "Job", replica, replica, replica, claim)
}

// TestLoadingJob proves that the Job that loads is another one when the platform team changes it, and
// that a Job from before the claim says nothing about the claim.
func TestLoadingJob(t *testing.T) {
	job := func(l *loading) string {
		for key := range l.req.GetObserved().GetResources() {
			if strings.HasPrefix(key, "job/") {
				return key
			}
		}
		return ""
	}
	l := begin(t, revision("one"))
	l.call()
	l.call()
	first := job(l)
	l.req.Input = fixture.YAML(t, loaderInput+`modelLoader: {hubImage: other}}`)
	l.want("Another image.", "FALSE Loading", "Job", "PersistentVolumeClaim")
	if second := job(l); first == "" || second == first {
		t.Errorf("the Job is %q after a change of its image, and was %q", second, first)
	}
	l.set("Job", complete)
	for key, r := range l.req.GetObserved().GetResources() {
		if strings.HasPrefix(key, "persistentvolumeclaim/") {
			l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewStringValue("2026-05-04T09:00:00Z"), "metadata", "creationTimestamp")}
		}
	}
	l.want("The Job is older than the claim.", "FALSE Loading", "PersistentVolumeClaim")
	l.want("It is made anew.", "FALSE Loading", "Job", "PersistentVolumeClaim")
}

// TestWeightsElsewhere follows a service in another cluster: there the claim and the Job are in Objects,
// and a cluster that does not answer takes nothing back.
func TestWeightsElsewhere(t *testing.T) {
	const claim, replica = "PersistentVolumeClaim", "LeaderWorkerSet"
	l := begin(t, revision("one")+"\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}")
	l.req.Input = fixture.YAML(t, loaderInput+`allowedProviderConfigs: [{name: east}]}`)
	l.req.RequiredResources = map[string]*fnv1.Resources{"provider-configs": {}}
	l.want("First the claim is made.", "FALSE Loading", claim)
	l.answer("True")
	l.want("Then the Job.", "FALSE Loading", "Job", claim)
	l.want("It stays while the cluster has not reported it.", "FALSE Loading", "Job", claim)
	l.answer("True")
	l.want("Replicas wait for it.", "FALSE Loading", "Job", claim)
	l.set("Job", complete)
	l.answer("True")
	l.want("It is complete.", "TRUE Loaded", "Job", replica, replica, claim)
	l.answer("False")
	l.want("The cluster does not answer.", "TRUE Loaded", replica, replica, claim)
}

// answer is what provider-kubernetes says of all Objects: whether it reaches their cluster.
func (l *loading) answer(synced string) {
	for key, r := range l.req.GetObserved().GetResources() {
		o := r.GetResource()
		there := kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
		if there == nil {
			continue
		}
		there = kube.With(there, structpb.NewStringValue("uid-"+key), "metadata", "uid")
		there = kube.With(there, structpb.NewStringValue("2026-05-04T08:00:00Z"), "metadata", "creationTimestamp")
		if s := kube.Lookup(o, "status", "of"); s != nil {
			there = kube.With(there, s, "status")
		}
		status := fixture.YAML(l.T, `{conditions: [{type: Synced, status: "`+synced+`"}]}`)
		status = kube.With(status, structpb.NewStructValue(there), "atProvider", "manifest")
		l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStructValue(status), "status")}
	}
}

// TestNamedClaim proves that weights are loaded again into a claim of others that was made anew, once that is
// known, and that what is not known changes nothing.
func TestNamedClaim(t *testing.T) {
	const replica = "LeaderWorkerSet"
	xr := strings.ReplaceAll(revision("one"), "size: 40Gi", "claimName: shared")
	cases := map[string]struct {
		xr, input string
		claim     func(l *loading, uid string)
		// observes is what is desired besides.
		observes []string
	}{
		"Here": {
			xr: xr,
			claim: func(l *loading, uid string) {
				requirement := ""
				for name, s := range l.fn.Run(l.T, l.req).GetRequirements().GetResources() {
					if s.GetKind() == "PersistentVolumeClaim" && s.GetMatchName() == "shared" && s.GetNamespace() != "" {
						requirement = name
					}
				}
				if requirement == "" {
					l.Fatal("the claim is not required")
				}
				l.req.RequiredResources[requirement] = &fnv1.Resources{}
				if uid != "" {
					l.req.RequiredResources[requirement].Items = []*fnv1.Resource{{Resource: namedClaim(l, uid)}}
				}
			},
		},
		"Elsewhere": {
			xr: xr + "\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}", input: loaderInput + `allowedProviderConfigs: [{name: east}]}`,
			claim: func(l *loading, uid string) {
				l.answer("True")
				for key, r := range l.req.GetObserved().GetResources() {
					if !strings.Contains(key, "namedclaim/") {
						continue
					}
					status := fixture.YAML(l.T, `{conditions: [{type: Synced, status: "False"}]}`)
					if uid != "" {
						status = kube.With(fixture.YAML(l.T, `{conditions: [{type: Synced, status: "True"}]}`), structpb.NewStructValue(namedClaim(l, uid)), "atProvider", "manifest")
					}
					l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewStructValue(status), "status")}
				}
			},
			observes: []string{"PersistentVolumeClaim"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := begin(t, tc.xr)
			if tc.input != "" {
				l.req.Input = fixture.YAML(t, tc.input)
			}
			l.req.RequiredResources = map[string]*fnv1.Resources{"provider-configs": {}}
			with := func(kinds ...string) []string { return append(kinds, tc.observes...) }
			l.want("The Job is made, whatever is known of the claim.", "FALSE Loading", with("Job")...)
			tc.claim(l, "first")
			l.set("Job", complete)
			tc.claim(l, "first")
			l.want("It is complete.", "TRUE Loaded", with("Job", replica, replica)...)
			tc.claim(l, "first")
			l.want("It goes.", "TRUE Loaded", with(replica, replica)...)
			tc.claim(l, "")
			l.want("Nothing is known of the claim.", "TRUE Loaded", with(replica, replica)...)
			tc.claim(l, "second")
			l.want("It was made anew, so it is empty.", "FALSE Loading", with("Job", replica, replica)...)
			tc.claim(l, "second")
			l.set("Job", complete)
			tc.claim(l, "second")
			l.want("It is filled again.", "TRUE Loaded", with("Job", replica, replica)...)
			tc.claim(l, "second")
			l.want("The Job goes.", "TRUE Loaded", with(replica, replica)...)
		})
	}
}

// TestNamedClaimOfOthers warns of a claim that another service or a ModelCache has made, and so deletes.
func TestNamedClaimOfOthers(t *testing.T) {
	cases := map[string]struct{ reason, labels, want string }{
		"Nobody": {"It belongs to the user.", "{}", ""},
		"Itself": {"The service has made it. It keeps the claim, and another warning says so.", "{fusioninfer.io/service: chat}", ""},
		"Service": {
			"A new revision there has another claim.", "{fusioninfer.io/service: code}",
			"spec.model.cache.claimName: names claim shared, which service code has made, and deletes with its next revision: name one ModelCache in both services",
		},
		"ModelCache": {
			"There is a field for it.", "{fusioninfer.io/model-cache: qwen}",
			"spec.model.cache.claimName: names claim shared, which ModelCache qwen has made, and which goes with it: name it in spec.model.cacheRef",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := begin(t, strings.NewReplacer("size: 40Gi", "claimName: shared", "image: vllm}", "image: \"vllm/vllm-openai:v0.27.1\"}").Replace(revision("one")))
			claim := kube.With(namedClaim(l, "first"), structpb.NewStructValue(fixture.YAML(t, tc.labels)), "metadata", "labels")
			l.req.RequiredResources = map[string]*fnv1.Resources{}
			for name, s := range l.fn.Run(t, l.req).GetRequirements().GetResources() {
				if s.GetKind() == "PersistentVolumeClaim" && s.GetMatchName() == "shared" {
					l.req.RequiredResources[name] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: claim}}}
				}
			}
			got := strings.TrimPrefix(strings.TrimPrefix(noWarnings(l.fn.Run(t, l.req)), "TRUE NothingSuspicious"), "FALSE Suspicious ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func namedClaim(l *loading, uid string) *structpb.Struct {
	return fixture.YAML(l.T, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shared, uid: `+uid+`, creationTimestamp: "2026-05-04T07:00:00Z"}}`)
}

// TestGangDuringLoading scales a service up while newer weights load. Its gang counts only what there is, so Volcano schedules a
// replica that serves again after an eviction. The new replica starts a call after the gang counts it.
func TestGangDuringLoading(t *testing.T) {
	spec := func(revision string, replicas int) string {
		return fixture.Service(fmt.Sprintf(`
model: {uri: "hf://Qwen/Qwen3-8B", revision: %s, cache: {size: 40Gi}}
roles:
- {name: w, componentType: worker, replicas: %d, multinode: {nodeCount: 2, launcher: VLLM}, template: {spec: {containers: [{name: vllm, image: vllm}]}}}
`, revision, replicas))
	}
	l := begin(t, spec("one", 2))
	gang := func() string {
		l.call()
		sets := 0
		for key := range l.req.GetObserved().GetResources() {
			if strings.HasPrefix(key, "leaderworkerset/") {
				sets++
			}
		}
		pg := kube.Lookup(l.req.GetObserved().GetResources()["podgroup"].GetResource(), "spec").GetStructValue()
		return fmt.Sprintf("%d replicas, %s of %v pods", sets, strings.Join(fixture.Keys(kube.Lookup(pg, "minTaskMember").GetStructValue().GetFields()), " "), kube.Lookup(pg, "minMember").GetNumberValue())
	}
	got := []string{}
	note := func() { got = append(got, gang()) }
	note()
	note()
	l.set("Job", complete)
	note()
	l.settle()
	l.spec(spec("two", 3))
	note()
	note()
	l.set("Job", complete)
	note()
	note()
	want := []string{
		"0 replicas,  of 0 pods",
		"0 replicas,  of 0 pods",
		"2 replicas, w-0 w-1 of 4 pods",
		"2 replicas, w-0 w-1 of 4 pods",
		"2 replicas, w-0 w-1 of 4 pods",
		"2 replicas, w-0 w-1 w-2 of 6 pods",
		"3 replicas, w-0 w-1 w-2 of 6 pods",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWeightsOfSleeper proves that a new revision is loaded while its only role sleeps, so that the request that wakes it does not
// wait for a download. The former weights stay until then. A role that its user has stopped loads nothing.
func TestWeightsOfSleeper(t *testing.T) {
	const claim, replica, role = "PersistentVolumeClaim", "LeaderWorkerSet", "InferenceRole"
	sleeps := func(of string) string {
		return strings.Replace(revision(of), "replicas: 2", "scaling: {minReplicas: 0, maxReplicas: 2}", 1)
	}
	l := begin(t, sleeps("one"))
	want := func(replicas float64, reason, model string, want ...string) {
		t.Helper()
		if r := l.req.GetObserved().GetResources()["inferencerole/w"]; r != nil {
			r.Resource = kube.With(r.GetResource(), structpb.NewNumberValue(replicas), "spec", "replicas")
		}
		l.want(reason, model, append([]string{role}, want...)...)
	}
	l.call()
	want(1, "Its weights are loaded for a replica.", "FALSE Loading", "Job", claim)
	l.set("Job", complete)
	want(1, "It runs.", "TRUE Loaded", "Job", replica, claim)
	l.settle()
	want(0, "It sleeps, with its weights.", "TRUE Loaded", claim)

	l.spec(sleeps("two"))
	want(0, "The new revision has a claim of its own.", "FALSE Loading", claim, claim)
	want(0, "It is loaded while the role sleeps.", "FALSE Loading", "Job", claim, claim)
	l.spec(sleeps("one"))
	want(0, "A revision that is taken back finds its weights.", "TRUE Loaded", claim)
	l.spec(sleeps("two"))
	want(0, "It comes again.", "FALSE Loading", claim, claim)
	want(0, "It is loaded again.", "FALSE Loading", "Job", claim, claim)
	want(1, "A request wakes the role.", "FALSE Loading", "Job", claim, claim)
	l.set("Job", complete)
	want(1, "The former weights go.", "TRUE Loaded", "Job", replica, claim)
	l.settle()
	want(0, "It sleeps again.", "TRUE Loaded", claim)

	l.spec(strings.Replace(revision("three"), "replicas: 2", "replicas: 0", 1))
	l.want("Nothing wakes a role without scaling.", "TRUE Loaded")
}

// TestWeightsNeverLoaded proves that a claim goes at once whose weights were never complete, as with a mistyped name. Otherwise two
// claims would have to fit, although nothing runs with the first.
func TestWeightsNeverLoaded(t *testing.T) {
	const claim, role = "PersistentVolumeClaim", "InferenceRole"
	sleeps := func(of string) string {
		return strings.Replace(revision(of), "replicas: 2", "scaling: {minReplicas: 0, maxReplicas: 2}", 1)
	}
	l := begin(t, sleeps("mistyped"))
	l.call()
	l.want("Its weights are loaded for a replica.", "FALSE Loading", role, "Job", claim)
	l.spec(sleeps("right"))
	l.want("Only the new claim is left.", "FALSE Loading", role, claim)
	l.want("It is filled.", "FALSE Loading", role, "Job", claim)
}
