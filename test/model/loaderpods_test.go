package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// there gives an object of a cluster a status, and its labels too where there are some.
func (r *run) there(k, labels, status string) {
	r.Helper()
	o := r.req.GetObserved().GetResources()[k]
	if o == nil {
		r.Fatalf("there is no %s in %v", k, fixture.Keys(r.req.GetObserved().GetResources()))
	}
	manifest := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest").GetStructValue()
	if labels != "" {
		manifest = kube.With(manifest, structpb.NewStructValue(fixture.YAML(r, labels)), "metadata", "labels")
	}
	manifest = kube.With(manifest, structpb.NewStructValue(fixture.YAML(r, status)), "status")
	s := kube.With(fixture.YAML(r, `{conditions: [{type: Synced, status: "True"}]}`), structpb.NewStructValue(manifest), "atProvider", "manifest")
	o.Resource = kube.With(o.GetResource(), structpb.NewStructValue(s), "status")
}

// TestAdapterPodsElsewhere proves that a pod which cannot load an adapter in another cluster is named, and that nothing
// observes it any more once the adapter is loaded.
func TestAdapterPodsElsewhere(t *testing.T) {
	const (
		pods, requirement = "cluster/east/loaderpods", "cluster/east/loaderpods"
		pod, foreign      = "cluster/east/pod/loader/bot-1", "cluster/east/pod/loader/other"
		definition        = `{kind: CustomResourceDefinition, spec: {versions: [{name: v1alpha1, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`
	)
	r := begin(t, claims(), targets("v1 1"))
	r.w = world{
		"service": {service(ready + `clusters: [{name: east, state: Placed}], ` + claims("east=u1"))}, "pools": {poolIn("east", "of-chat", "")},
		"kind/observedobjectcollections.kubernetes.m.crossplane.io": {definition},
	}
	r.call()
	var job string
	for k := range r.req.GetObserved().GetResources() {
		if strings.HasPrefix(k, "cluster/east/job/") {
			job = k
		}
	}
	// once calls the function once, with a Job that has a pod.
	once := func(reason, condition, message string, want ...string) {
		t.Helper()
		r.there(job, "", `{active: 1}`)
		r.rsp, _ = fixture.Reconcile(t, r.fn, r.req, r.w)
		if diff := cmp.Diff(append(want, "configmap/model-name"), keys(r.rsp)); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", reason, diff)
		}
		for _, c := range r.rsp.GetConditions() {
			if c.GetType() == "AdaptersLoaded" && (c.GetReason() != condition || !strings.Contains(c.GetMessage(), message)) {
				t.Errorf("%s\nwant %s: %s\ngot  %s: %s", reason, condition, message, c.GetReason(), c.GetMessage())
			}
		}
		for k, o := range r.rsp.GetDesired().GetResources() {
			if (strings.Contains(k, "/pod/") || k == pods) && o.GetReady().String() != "READY_TRUE" {
				t.Errorf("%s\n%s is %s: nothing waits for it", reason, k, o.GetReady())
			}
			if labels := kube.Lookup(o.GetResource(), "metadata", "labels").GetStructValue().GetFields(); labels["fusioninfer.io/service"] != nil {
				t.Errorf("%s\n%s has the label of what a service runs: %v", reason, k, labels)
			}
		}
		apply(t, r.req, r.rsp)
	}
	once("A collection finds its pod.", "Loading", "see the pods of the Job there", job, pods)
	collection := r.req.GetObserved().GetResources()[pods]
	loader := kube.Lookup(collection.GetResource(), "spec", "observeObjects", "selector", "matchLabels", "fusioninfer.io/model-loader").GetStringValue()
	collection.Resource = kube.With(collection.GetResource(), structpb.NewStructValue(fixture.YAML(t, `{membershipLabel: {m: c}}`)), "status")
	member := func(name string) string {
		return `{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, spec: {forProvider: {manifest: {kind: Pod, metadata: {name: ` + name + `}}}}}`
	}
	r.w[requirement] = []string{member("bot-1"), member("other")}
	status := collection.GetResource().GetFields()["status"]
	known := func() {
		o := r.req.GetObserved().GetResources()[pods]
		o.Resource = kube.With(o.GetResource(), status, "status")
	}
	once("Each pod is observed.", "Loading", "see the pods of the Job there", job, pods, pod, foreign)
	known()
	labels := func(loader string) string {
		return `{fusioninfer.io/model-loader: ` + loader + `, batch.kubernetes.io/job-name: ` + strings.TrimPrefix(job, "cluster/east/job/") + `}`
	}
	r.there(foreign, labels("another"), `{containerStatuses: [{name: loader, state: {waiting: {reason: CrashLoopBackOff}}}]}`)
	once("Only its label tells that it is one of the Job.", "Loading", "see the pods of the Job there", job, pods, pod, foreign)
	known()
	r.there(pod, labels(loader), `{containerStatuses: [{name: loader, state: {waiting: {reason: ImagePullBackOff, message: secret}}}]}`)
	once("The pod is named with its reason.", "LoadFailed", `cluster east: target v1: pod bot-1: container loader: ImagePullBackOff, and it tries again`, job, pods, pod, foreign)
	r.done[job] = true
	r.call()
	if diff := cmp.Diff([]string{rewriteEast, "configmap/model-name"}, keys(r.rsp)); diff != "" {
		t.Errorf("It is loaded.\n-want +got:\n%s", diff)
	}
}

// TestAdapterNodeLost tells of a pod that has to go before the Job makes another one. Events of the Job do not say so.
func TestAdapterNodeLost(t *testing.T) {
	r := begin(t, claims("=u1"), targets("v1 1"))
	r.call()
	for k, o := range r.req.GetObserved().GetResources() {
		if strings.HasPrefix(k, "job/") {
			o.Resource = kube.With(o.GetResource(), structpb.NewStructValue(fixture.YAML(t, `{terminating: 1}`)), "status")
		}
	}
	r.rsp, _ = fixture.Reconcile(t, r.fn, r.req, r.w)
	got := ""
	for _, c := range r.rsp.GetConditions() {
		if c.GetType() == "AdaptersLoaded" {
			got = c.GetReason() + ": " + c.GetMessage()
		}
	}
	const want = "has a pod that is being deleted, and gets another one once that is gone: if that lasts, its node does not answer"
	if !strings.HasPrefix(got, "Loading: ") || !strings.HasSuffix(got, want) {
		t.Errorf("want Loading: ... %s\ngot  %s", want, got)
	}
}
