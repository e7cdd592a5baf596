package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

const (
	adapting = `
model: {uri: "hf://Qwen/Qwen3-8B", name: qwen}
adapterCache: {size: 20Gi, tokenSecretRef: {name: hf}}
roles:
- {name: w, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: vllm}]}}}
`
	bound = `{phase: Bound}`
)

func withAdapters() string { return fixture.Service(adapting) }

func withoutAdapters() string {
	return fixture.Service(strings.Replace(adapting, "adapterCache: {size: 20Gi, tokenSecretRef: {name: hf}}\n", "", 1))
}

// clusters is what the status says of the claims for adapters.
func (l *loading) clusters() string {
	st := kube.Lookup(l.req.GetObserved().GetComposite().GetResource(), "status", "adapterCache", "clusters")
	var all []string
	for _, c := range st.GetListValue().GetValues() {
		f := c.GetStructValue().GetFields()
		all = append(all, f["name"].GetStringValue()+"/"+f["claimName"].GetStringValue()+" "+f["uid"].GetStringValue())
	}
	return strings.Join(all, ", ")
}

func (l *loading) wantClusters(reason, want string) {
	l.Helper()
	if got := l.clusters(); got != want {
		l.Errorf("%s\nwant %s\ngot  %s", reason, want, got)
	}
}

const claimed = "chat-adapters-cf7105df2d03"

// TestAdapters follows a running service that gets a claim for adapters, and loses it. Replicas are restarted
// one after the other, and the claim is there as long as one of them may mount it.
func TestAdapters(t *testing.T) {
	const claim, replica, kept, none = "PersistentVolumeClaim", "LeaderWorkerSet", "LeaderWorkerSet held", "TRUE NoCache"
	l := begin(t, withoutAdapters())
	l.want("Nothing is loaded.", none, replica, replica)
	l.settle()
	l.spec(withAdapters())
	l.want("Replicas are told of the claim.", none, kept, kept, claim)
	l.settle()
	l.want("One replica after the other mounts it.", none, replica, kept, claim)
	l.wantClusters("It has no volume yet.", "")
	l.set(claim, bound)
	l.settle()
	l.want("The second replica follows.", none, replica, replica, claim)
	l.wantClusters("The claim has a volume, and the second replica did not mount it so far.", "")
	l.settle()
	l.want("Both mount it.", none, replica, replica, claim)
	l.wantClusters("Adapters can be loaded.", "/"+claimed+" uid-persistentvolumeclaim/adapters")

	l.spec(withoutAdapters())
	l.want("Both still mount it.", none, kept, kept, claim)
	l.settle()
	l.want("One replica still mounts it, and the other may.", none, replica, kept, claim)
	l.wantClusters("No adapter is loaded any more.", "")
	l.settle()
	l.want("So may the second replica, which is restarted now.", none, replica, replica, claim)
	l.settle()
	l.want("Nobody mounts it.", none, replica, replica)
}

// TestAdaptersClosed proves that no client loads adapters after spec.adapterCache was removed, as long as an engine may
// accept that: until each replica has the newest template and serves, and the claim has gone.
func TestAdaptersClosed(t *testing.T) {
	const claim = "persistentvolumeclaim/adapters"
	const router = "\n  - {name: r, componentType: router, httproute: {parentRefs: [{name: gw}]RULES}}\n"
	route := func(xr, rules string) string {
		return strings.TrimRight(xr, " \n") + strings.Replace(router, "RULES", rules, 1)
	}
	paused := func(xr string) string { return xr + "  rollout: {paused: true}\n" }
	with, without := route(withAdapters(), ""), route(withoutAdapters(), "")
	full := route(withoutAdapters(), ", rules: [{}"+strings.Repeat(", {}", 15)+"]")
	cases := map[string]struct {
		reason string
		// specs from call to call. After each one, replicas get ready.
		specs []string
		// leaves tells that the claim does not go before the last call. lost are what somebody deletes after each one.
		leaves bool
		lost   []string
		want   []string
		err    string
	}{
		"Never":   {reason: "There is nothing to load.", specs: []string{without, without}, want: []string{"open", "open"}},
		"Removed": {reason: "One replica after the other is replaced, and then the claim goes.", specs: []string{with, without, without, without, without, without}, want: []string{"closed", "closed", "closed", "closed", "closed", "open"}},
		"Paused":  {reason: "Former replicas go on.", specs: []string{with, paused(without), paused(without), paused(without), paused(without)}, want: []string{"closed", "closed", "closed", "closed", "closed"}},
		"Leaves":  {reason: "Pods that end hold the claim.", specs: []string{with, without, without, without, without, without}, leaves: true, want: []string{"closed", "closed", "closed", "closed", "closed", "closed"}},
		"FullRoute": {
			reason: "The route keeps room for the rule.", specs: []string{with, full}, want: []string{"closed"},
			err: "nothing was changed: spec.roles[1].httproute.rules: Invalid value: 16: must wait until no engine has spec.adapterCache any more and its claim is gone, " +
				"or the router's httproute may have at most 15 rules: the function adds a rule that keeps clients from loading adapters",
		},
		"LostStatus": {reason: "The claim is enough.", specs: []string{with, paused(without), paused(without)}, lost: []string{"status"}, want: []string{"closed", "closed", "closed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := begin(t, tc.specs[0])
			var got []string
			for _, spec := range tc.specs {
				l.spec(spec)
				before := l.req.GetObserved().GetResources()[claim]
				if why := fixture.Fatals(l.fn.Run(l, l.req)); why != "" {
					if diff := cmp.Diff(tc.err, why); diff != "" {
						t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
					}
					break
				}
				l.call()
				if tc.leaves && before != nil {
					l.req.Observed.Resources[claim] = before
				}
				l.settle()
				l.set("PersistentVolumeClaim", bound)
				got = append(got, l.loadingPaths())
				for _, lost := range tc.lost {
					if lost == "status" {
						l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), structpb.NewNullValue(), lost)
					}
					delete(l.req.GetObserved().GetResources(), lost)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// loadingPaths tells whether the route passes on requests that load adapters.
func (l *loading) loadingPaths() string {
	l.Helper()
	rules := kube.Lookup(l.req.GetObserved().GetResources()["httproute"].GetResource(), "spec", "rules").GetListValue().GetValues()
	if len(rules) == 0 {
		l.Fatal("there is no route")
	}
	for _, r := range rules {
		if f := r.GetStructValue().GetFields(); f["backendRefs"] == nil && strings.Contains(kube.Canonical(r.GetStructValue()), "/v1/load_lora_adapter") {
			return "closed"
		}
	}
	return "open"
}

// TestAdaptersStay proves that the claim stays as it is, whatever else changes.
func TestAdaptersStay(t *testing.T) {
	spec := func(size, storage string, replicas string) string {
		s := strings.Replace(withAdapters(), "size: 20Gi", "size: "+size+storage, 1)
		return strings.Replace(s, "replicas: 2", "replicas: "+replicas, 1)
	}
	cases := map[string]struct {
		reason string
		change func(*loading)
		size   string
	}{
		"StatusLost": {reason: "The claim does not depend on the status.", size: "20Gi", change: func(l *loading) {
			l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), structpb.NewNullValue(), "status")
		}},
		"Class": {reason: "A claim keeps its class.", size: "20Gi", change: func(l *loading) {
			l.req.Input = fixture.YAML(l, loaderInput+`modelCaches: {storageClassName: other}}`)
		}},
		"Grown": {reason: "Whoever grows the claim is not undone.", size: "50Gi", change: func(l *loading) {
			const key = "persistentvolumeclaim/adapters"
			o := l.req.GetObserved().GetResources()[key].GetResource()
			l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStringValue("50Gi"), "spec", "resources", "requests", "storage")}
		}},
		"Unnamed": {reason: "The service knows the name of its claim.", size: "20Gi", change: func(l *loading) {
			const key = "persistentvolumeclaim/adapters"
			o := l.req.GetObserved().GetResources()[key].GetResource()
			l.req.Observed.Resources[key] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStringValue(""), "metadata", "name")}
		}},
		"Stopped": {reason: "A service that is scaled to nothing keeps what is loaded.", size: "20Gi", change: func(l *loading) { l.spec(spec("20Gi", "", "0")) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := begin(t, withAdapters())
			l.call()
			l.settle()
			l.set("PersistentVolumeClaim", bound)
			l.call()
			tc.change(l)
			l.call()
			if name := kube.Lookup(l.req.GetObserved().GetResources()["persistentvolumeclaim/adapters"].GetResource(), "metadata", "name").GetStringValue(); name != claimed {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, claimed, name)
			}
			want := map[string]any{"accessModes": []any{"ReadWriteMany"}, "resources": map[string]any{"requests": map[string]any{"storage": tc.size}}}
			got := kube.AsMap(kube.Lookup(l.req.GetObserved().GetResources()["persistentvolumeclaim/adapters"].GetResource(), "spec").GetStructValue())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			l.wantClusters(tc.reason, "/"+claimed+" uid-persistentvolumeclaim/adapters")
		})
	}
}

// TestAdaptersNamed proves that the claim stays without spec.adapterCache while a template mounts it, such as for --lora-modules.
func TestAdaptersNamed(t *testing.T) {
	const claim, replica = "PersistentVolumeClaim", "LeaderWorkerSet"
	l := begin(t, withAdapters())
	l.call()
	l.settle()
	l.set(claim, bound)
	l.call()
	l.spec(strings.Replace(withoutAdapters(), "{containers:", "{volumes: [{name: a, persistentVolumeClaim: {claimName: "+claimed+"}}], containers:", 1))
	for range 3 {
		l.call()
		l.settle()
	}
	l.want("The template mounts it.", "TRUE NoCache", replica, replica, claim)
	l.spec(withoutAdapters())
	for range 3 {
		l.call()
		l.settle()
	}
	l.want("Nothing mounts it.", "TRUE NoCache", replica, replica)
}

// TestAdaptersChanged proves that a claim which exists has to be what the spec says, and that the service
// keeps it until then. The schema refuses such a change, too.
func TestAdaptersChanged(t *testing.T) {
	const again = ": remove adapterCache, wait until the rollout is complete, and add it again. Requests for adapters fail meanwhile"
	cases := map[string]struct{ reason, change, want string }{
		"Mode":    {"A claim keeps its mode.", "size: 20Gi, accessMode: ReadWriteOnce", `nothing was changed: spec.adapterCache.accessMode: Invalid value: "ReadWriteOnce": must be "ReadWriteMany", as the claim ` + claimed + " has it" + again},
		"Class":   {"A claim keeps its class.", "size: 20Gi, storageClassName: fast", `nothing was changed: spec.adapterCache.storageClassName: Invalid value: "fast": must be "nfs", as the claim ` + claimed + " has it" + again},
		"Same":    {"Its class may be named.", "size: 20Gi, storageClassName: nfs", ""},
		"Smaller": {"Whoever has grown the claim need not say so.", "size: 10Gi", ""},
		"Larger":  {"Storage may not be able to grow.", "size: 0.5Ti", `nothing was changed: spec.adapterCache.size: Invalid value: "512Gi": must be at most 20Gi, as the claim ` + claimed + " has it: to grow it, change the PersistentVolumeClaim itself, in each cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := begin(t, withAdapters())
			l.req.Input = fixture.YAML(l, loaderInput+`modelCaches: {storageClassName: nfs, allowedStorageClassNames: [fast]}}`)
			l.call()
			l.spec(strings.Replace(withAdapters(), "size: 20Gi", tc.change, 1))
			if diff := cmp.Diff(tc.want, fixture.Fatals(l.fn.Run(l, l.req))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdaptersElsewhere proves that a cluster that does not answer takes back nothing.
func TestAdaptersElsewhere(t *testing.T) {
	const claim, replica = "PersistentVolumeClaim", "LeaderWorkerSet"
	const want = "east/" + claimed + " uid-cluster/east/persistentvolumeclaim/adapters"
	l := begin(t, withAdapters()+"\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}")
	l.req.Input = fixture.YAML(t, loaderInput+`allowedProviderConfigs: [{name: east}]}`)
	l.req.RequiredResources = map[string]*fnv1.Resources{"provider-configs": {}}
	l.want("Claim and replicas are made at once.", "TRUE NoCache", replica, replica, claim)
	l.wantClusters("The cluster has not answered.", "")
	l.set(claim, bound)
	l.answer("True")
	l.call()
	l.wantClusters("The claim has a volume.", want)
	l.answer("False")
	l.want("The cluster does not answer.", "TRUE NoCache", replica, replica, claim)
	l.wantClusters("The claim is where it was.", want)
	l.spec(withoutAdapters() + "\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}")
	l.want("Nobody knows which replicas mount it.", "TRUE NoCache", replica, replica, claim)
}

// TestClaimGrown proves that a claim which was grown in another cluster keeps its size, and that the spec may say so then.
// Kubernetes makes no claim smaller, so its Object would never be ready again.
func TestClaimGrown(t *testing.T) {
	const placement = "\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}"
	adapters, again := withAdapters(), strings.Replace(withAdapters(), "size: 20Gi", "size: 50Gi", 1)
	cases := map[string]struct{ reason, xr, synced, there, then, want string }{
		"Grown":     {reason: "Its cluster has told it.", xr: adapters, synced: "True", there: "50Gi", then: adapters, want: "50Gi"},
		"Refused":   {reason: "Its cluster has refused to make it smaller.", xr: adapters, synced: "False", there: "50Gi", then: adapters, want: "50Gi"},
		"Said":      {reason: "The spec says what the claim has.", xr: adapters, synced: "True", there: "50Gi", then: again, want: "50Gi"},
		"Weights":   {reason: "So it is with weights.", xr: revision("one"), synced: "True", there: "50Gi", then: revision("one"), want: "50Gi"},
		"OtherUnit": {reason: "It is the same size.", xr: adapters, synced: "True", there: "20480Mi", then: adapters, want: "20Gi"},
		"Stale":     {reason: "What was read before the claim was grown does not count.", xr: adapters, synced: "True", there: "10Gi", then: adapters, want: "20Gi"},
		"NoSize":    {reason: "What cannot be read changes nothing.", xr: adapters, synced: "True", there: "much", then: adapters, want: "20Gi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := begin(t, tc.xr+placement)
			l.req.Input = fixture.YAML(t, loaderInput+`allowedProviderConfigs: [{name: east}]}`)
			l.req.RequiredResources = map[string]*fnv1.Resources{"provider-configs": {}}
			l.call()
			l.answer(tc.synced)
			key, o := l.claim()
			size := []string{"spec", "resources", "requests", "storage"}
			grown := kube.With(o, structpb.NewStringValue(tc.there), append([]string{"status", "atProvider", "manifest"}, size...)...)
			l.req.Observed.Resources[key] = &fnv1.Resource{Resource: grown}
			l.spec(tc.then + placement)
			l.call()
			_, o = l.claim()
			if got := kube.Lookup(o, append([]string{"spec", "forProvider", "manifest"}, size...)...).GetStringValue(); got != tc.want {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, got)
			}
		})
	}
}

// claim is the only claim that exists, with its key.
func (l *loading) claim() (key string, claim *structpb.Struct) {
	l.Helper()
	for key, r := range l.req.GetObserved().GetResources() {
		if kindOf(r.GetResource()) == "PersistentVolumeClaim" {
			return key, r.GetResource()
		}
	}
	l.Fatal("there is no claim")
	return "", nil
}

// TestAdaptersModel proves that engines which serve adapters keep their model: an adapter names it, and some engines
// would know none of them during the rollout. Without engines, which the message advises, it changes.
func TestAdaptersModel(t *testing.T) {
	const want = "nothing was changed: spec.model: Forbidden: must stay Qwen/Qwen3-8B while engines serve adapters of spec.adapterCache, and is Qwen/Qwen3-8B-FP8: an adapter is for one model. " +
		"Make another service, or set replicas to 0 first%s"
	for name, tc := range map[string]struct{ replicas, more string }{
		"Static": {replicas: "replicas: 2"},
		"Scaled": {replicas: "scaling: {minReplicas: 2, maxReplicas: 4}", more: ", in place of scaling"},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(replicas, model string) string {
				return strings.NewReplacer("replicas: 2", replicas, "Qwen3-8B\"", model+"\"").Replace(withAdapters())
			}
			l := begin(t, with(tc.replicas, "Qwen3-8B"))
			l.call()
			l.settle()
			l.set("PersistentVolumeClaim", bound)
			l.call()
			l.settle()
			l.wantClusters("Adapters can be loaded.", "/"+claimed+" uid-persistentvolumeclaim/adapters")
			l.spec(with(tc.replicas, "Qwen3-8B-FP8"))
			if diff := cmp.Diff(fmt.Sprintf(want, tc.more), fixture.Fatals(l.fn.Run(l, l.req))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			l.spec(with("replicas: 0", "Qwen3-8B"))
			l.call()
			l.settle()
			l.call()
			l.spec(with("replicas: 0", "Qwen3-8B-FP8"))
			l.call()
			l.spec(with(tc.replicas, "Qwen3-8B-FP8"))
			l.call()
			if got := kube.Lookup(l.req.GetObserved().GetComposite().GetResource(), "status", "adapterCache", "modelName").GetStringValue(); got != "Qwen/Qwen3-8B-FP8" {
				t.Errorf("without engines, the model is still %s", got)
			}
		})
	}
}

// TestAdaptersSource proves that engines keep the model that their adapters are for, although all models have one
// path in a claim or an image. Its revision may change.
func TestAdaptersSource(t *testing.T) {
	const refused = "nothing was changed: spec.model: Forbidden: must stay %s while engines serve adapters of spec.adapterCache, and is %s: an adapter is for one model. " +
		"Make another service, or set replicas to 0 first"
	cases := map[string]struct{ reason, was, is, source, want string }{
		"Cache":    {reason: "Another model of the hub.", was: `"hf://Qwen/Qwen3-8B", cache: {size: 1Gi}`, is: `"hf://acme/base", cache: {size: 1Gi}`, want: fmt.Sprintf(refused, "hf://Qwen/Qwen3-8B", "hf://acme/base")},
		"Revision": {reason: "Adapters fit all revisions.", was: `"hf://Qwen/Qwen3-8B", cache: {size: 1Gi}`, is: `"hf://Qwen/Qwen3-8B", revision: two, cache: {size: 1Gi}`},
		"Bucket":   {reason: "Another prefix.", was: `"s3://models/qwen", cache: {size: 1Gi}`, is: `"s3://models/base", cache: {size: 1Gi}`, want: fmt.Sprintf(refused, "s3://models/qwen", "s3://models/base")},
		"Claim":    {reason: "Another directory.", was: `"pvc://weights/qwen"`, is: `"pvc://weights/base"`, want: fmt.Sprintf(refused, "pvc://weights/qwen", "pvc://weights/base")},
		"Image":    {reason: "Another image.", was: `"oci://registry:5000/qwen:v1"`, is: `"oci://registry:5000/base:v1"`, want: fmt.Sprintf(refused, "oci://registry:5000/qwen", "oci://registry:5000/base")},
		"Tag":      {reason: "A tag is a revision.", was: `"oci://registry:5000/qwen"`, is: `"oci://registry:5000/qwen:v2"`},
		"Digest":   {reason: "So is a digest.", was: `"oci://registry:5000/qwen:v1"`, is: `"oci://registry:5000/qwen@sha256:` + strings.Repeat("01", 32) + `"`},
		"Unknown":  {reason: "An earlier version has not said it.", was: `"pvc://weights/qwen"`, is: `"pvc://weights/base"`, source: "unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			with := func(uri string) string {
				return strings.Replace(withAdapters(), `"hf://Qwen/Qwen3-8B"`, uri, 1)
			}
			l := begin(t, with(tc.was))
			for range 4 {
				l.call()
				l.settle()
				l.set("PersistentVolumeClaim", bound)
				l.set("Job", complete)
			}
			l.wantClusters("Adapters can be loaded.", "/"+claimed+" uid-persistentvolumeclaim/adapters")
			if tc.source == "unknown" {
				l.req.Observed.Composite.Resource = kube.With(l.req.GetObserved().GetComposite().GetResource(), structpb.NewNullValue(), "status", "adapterCache", "modelSource")
			}
			l.spec(with(tc.is))
			if diff := cmp.Diff(tc.want, fixture.Fatals(l.fn.Run(l, l.req))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdaptersRemoved follows a service whose adapters get requests, after spec.adapterCache was removed. As long as the claim
// is there, the model stays, and the service warns.
func TestAdaptersRemoved(t *testing.T) {
	const (
		qwen, base = `"hf://Qwen/Qwen3-8B"`, `"hf://acme/base"`
		cached     = `, cache: {size: 1Gi}`
		warns      = "FALSE Suspicious spec.adapterCache: was removed, and each replica that is replaced loses its adapters: requests for InferenceModels that have some fail there. " +
			"Give these models other targets, or add adapterCache again"
		none    = "TRUE NothingSuspicious"
		known   = " map[modelName:Qwen/Qwen3-8B modelSource:hf://Qwen/Qwen3-8B]"
		refused = "nothing was changed: spec.model: Forbidden: must stay hf://Qwen/Qwen3-8B while engines serve adapters of spec.adapterCache, and is hf://acme/base: an adapter is for one model. "
		wait    = refused + "Remove adapterCache first, and change the model once the rollout is complete. Or make another service, or set replicas to 0 first"
	)
	with := func(uri string) string { return strings.Replace(withAdapters(), qwen, uri, 1) }
	without := func(uri string) string { return strings.Replace(withoutAdapters(), qwen, uri, 1) }
	paused := func(xr string) string { return strings.TrimRight(xr, " \n") + "\n  rollout: {paused: true}\n" }
	named := func(xr, model string) string {
		xr = strings.Replace(xr, `model: {uri: "hf://Qwen/Qwen3-8B", name: qwen}`, "", 1)
		return strings.Replace(xr, "image: vllm}", "image: vllm, args: [--model, "+model+"]}", 1)
	}
	stopped := func(xr string) string { return strings.Replace(xr, "replicas: 2", "replicas: 0", 1) }
	cases := map[string]struct {
		reason, first string
		// unbound tells that the claim has no volume.
		unbound     bool
		specs, want []string
	}{
		"Alone": {
			reason: "The warning and the model stay until no engine can serve adapters.", first: with(qwen),
			specs: []string{without(qwen), without(qwen), without(qwen), without(qwen), without(qwen)},
			want:  []string{warns + known, warns + known, warns + known, warns + known, none},
		},
		"Unbound": {reason: "No adapter was loaded.", first: with(qwen), unbound: true, specs: []string{without(base)}, want: []string{none}},
		"Other":   {reason: "Former replicas serve adapters of the former model.", first: with(qwen), specs: []string{without(base)}, want: []string{wait}},
		"Later":   {reason: "They do so as long as the rollout takes.", first: with(qwen), specs: []string{paused(without(qwen)), paused(without(base))}, want: []string{warns + known, wait}},
		"Again": {
			reason: "They do so if adapterCache is back.", first: with(qwen), specs: []string{paused(without(qwen)), paused(with(base))},
			want: []string{warns + known, strings.Replace(refused, "hf://", "", 2) + "Make another service, or set replicas to 0 first"},
		},
		"After": {
			reason: "They are gone.", first: with(qwen), specs: []string{without(qwen), without(qwen), without(qwen), without(qwen), without(qwen), without(base)},
			want: []string{warns + known, warns + known, warns + known, warns + known, none, none},
		},
		"Path": {
			reason: "Without adapterCache, the model of a cache has another path.", first: with(qwen + cached), specs: []string{without(qwen + cached)},
			want: []string{warns + strings.Replace(known, "Qwen/Qwen3-8B", "/mnt/models", 1)},
		},
		"OtherInCache": {reason: "Another model of a cache has another source.", first: with(qwen + cached), specs: []string{without(base + cached)}, want: []string{wait}},
		"Named": {
			reason: "Without spec.model, the names count.", first: named(withAdapters(), "Qwen/Qwen3-8B"), specs: []string{named(withoutAdapters(), "acme/base")},
			want: []string{strings.ReplaceAll(wait, "hf://", "")},
		},
		"NamedAlone": {
			reason: "They do not change.", first: named(withAdapters(), "Qwen/Qwen3-8B"), specs: []string{named(withoutAdapters(), "Qwen/Qwen3-8B")},
			want: []string{warns + " map[modelName:Qwen/Qwen3-8B]"},
		},
		"Stopped": {reason: "Nothing serves.", first: with(qwen), specs: []string{stopped(with(qwen)), stopped(without(base))}, want: []string{none, warns + known}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			released := func(xr string) string {
				return strings.Replace(xr, "image: vllm", "image: vllm/vllm-openai:v0.27.1", 1)
			}
			l := begin(t, released(tc.first))
			for range 5 {
				l.call()
				l.settle()
				l.set("Job", complete)
				if !tc.unbound {
					l.set("PersistentVolumeClaim", bound)
				}
			}
			var got []string
			for _, spec := range tc.specs {
				l.spec(released(spec))
				rsp := l.fn.Run(l, l.req)
				if fixture.IsFatal(rsp) {
					got = append(got, fixture.Fatals(rsp))
					break
				}
				said := noWarnings(rsp)
				l.call()
				l.settle()
				l.set("Job", complete)
				st := kube.Lookup(l.req.GetObserved().GetComposite().GetResource(), "status", "adapterCache").GetStructValue()
				if m := kube.AsMap(st); len(m) > 0 && m["runAsUser"] == nil {
					said += fmt.Sprint(" ", m)
				}
				got = append(got, said)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdaptersRank proves that a service warns once its engines may refuse adapters that are loaded: a lower
// --max-lora-rank is for adapters that are loaded from now on. The warning stays as long as these adapters do.
func TestAdaptersRank(t *testing.T) {
	const none = "TRUE NothingSuspicious"
	lower := func(now, before int) string {
		return fmt.Sprintf("FALSE Suspicious spec.adapterCache: engines serve adapters of a rank up to %d by --max-lora-rank, and served them up to %d: they refuse requests for an adapter that is loaded and has a higher rank. "+
			"Set the flag back to %d, or give names that have such an adapter other targets", now, before, before)
	}
	cases := map[string]struct {
		reason string
		// ranks are the flags from call to call, and want is what NoWarnings says at last.
		ranks    []string
		unloaded bool
		want     string
	}{
		"Same":     {reason: "Nothing changes.", ranks: []string{"64", "64"}, want: none},
		"Raised":   {reason: "All adapters fit.", ranks: []string{"64", "128"}, want: none},
		"Lowered":  {reason: "Adapters of rank 64 may be loaded.", ranks: []string{"64", "32"}, want: lower(32, 64)},
		"Left":     {reason: "vLLM's default is 16.", ranks: []string{"64", ""}, want: lower(16, 64)},
		"Later":    {reason: "They stay loaded.", ranks: []string{"64", "32", "32", "16"}, want: lower(16, 64)},
		"Back":     {reason: "All adapters fit again.", ranks: []string{"64", "32", "64"}, want: none},
		"Unknown":  {reason: "The command does not say it.", ranks: []string{"64", "$(RANK)"}, want: none},
		"Between":  {reason: "What was said before counts.", ranks: []string{"64", "$(RANK)", "16"}, want: lower(16, 64)},
		"Unloaded": {reason: "Without a volume there are no adapters.", ranks: []string{"64", "16"}, unloaded: true, want: none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			with := func(rank string) string {
				args := ""
				if rank != "" {
					args = `, args: [--max-lora-rank, "` + rank + `"]`
				}
				return strings.Replace(withAdapters(), "image: vllm}", "image: vllm/vllm-openai:v0.27.1"+args+"}", 1)
			}
			l := begin(t, with(tc.ranks[0]))
			l.call()
			l.settle()
			if !tc.unloaded {
				l.set("PersistentVolumeClaim", bound)
			}
			for _, rank := range tc.ranks {
				l.spec(with(rank))
				l.call()
				l.settle()
			}
			if diff := cmp.Diff(tc.want, noWarnings(l.fn.Run(l, l.req))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdaptersRankInRollout follows the rank that InferenceModels go by, from call to call. After each call, what is released
// gets ready. While a replica has a former template, adapters have to fit both.
func TestAdaptersRankInRollout(t *testing.T) {
	const paused = "paused"
	cases := map[string]struct {
		reason string
		// ranks are the flags from call to call. A rollout may be paused from a call on.
		ranks []string
		want  []string
	}{
		"First":   {reason: "Nothing has served before.", ranks: []string{"64", "64", "64"}, want: []string{"64", "64", "64"}},
		"Raised":  {reason: "The former replicas refuse rank 128.", ranks: []string{"64", "64", "128", "128", "128", "128"}, want: []string{"64", "64", "64", "64", "64", "128"}},
		"Paused":  {reason: "They stay.", ranks: []string{"64", "64", "128 " + paused, "128 " + paused, "128 " + paused}, want: []string{"64", "64", "64", "64", "64"}},
		"Lowered": {reason: "The new replicas refuse rank 64.", ranks: []string{"64", "64", "32", "32", "32"}, want: []string{"64", "64", "32 (64)", "32 (64)", "32 (64)"}},
		"Back":    {reason: "One replica has rank 32 so far, and the other one is held until it is known to have rank 64.", ranks: []string{"64", "64", "32", "32", "64", "64", "64", "64"}, want: []string{"64", "64", "32 (64)", "32 (64)", "32 (64)", "32 (64)", "32 (64)", "64"}},
		"Unknown": {reason: "The former replicas refuse rank 128, whatever the new ones do.", ranks: []string{"64", "64", "$(RANK)", "$(RANK)", "$(RANK)", "$(RANK)"}, want: []string{"64", "64", "64", "64", "64", "0 (64)"}},
		"Known":   {reason: "What the former replicas refuse is not known.", ranks: []string{"$(RANK)", "$(RANK)", "64", "64", "64"}, want: []string{"0", "0", "64", "64", "64"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			with := func(rank string) string {
				rank, pause := strings.CutSuffix(rank, " "+paused)
				xr := strings.Replace(withAdapters(), "image: vllm}", `image: vllm/vllm-openai:v0.27.1, args: [--max-lora-rank, "`+rank+`"]}`, 1)
				if pause {
					xr = strings.TrimRight(xr, " \n") + "\n  rollout: {paused: true}\n"
				}
				return xr
			}
			l := begin(t, with(tc.ranks[0]))
			var got []string
			for _, rank := range tc.ranks {
				l.spec(with(rank))
				l.call()
				l.settle()
				l.set("PersistentVolumeClaim", bound)
				st := kube.Lookup(l.req.GetObserved().GetComposite().GetResource(), "status", "adapterCache").GetStructValue().GetFields()
				now := fmt.Sprint(st["maxRank"].GetNumberValue())
				if before := st["formerMaxRank"].GetNumberValue(); before > 0 {
					now += fmt.Sprintf(" (%v)", before)
				}
				got = append(got, now)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// noWarnings is what the condition NoWarnings says, with its message.
func noWarnings(rsp *fnv1.RunFunctionResponse) string {
	i := slices.IndexFunc(rsp.GetConditions(), func(c *fnv1.Condition) bool { return c.GetType() == "NoWarnings" })
	return strings.TrimSpace(fixture.Condition(rsp, "NoWarnings") + " " + rsp.GetConditions()[max(i, 0)].GetMessage())
}
