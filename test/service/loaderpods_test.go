package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

const (
	collectionKind = "ObservedObjectCollection"
	collectionName = "qwen-model-pods"
	definedAs      = "kind/observedobjectcollections.kubernetes.m.crossplane.io"
)

// elsewhere is a service whose weights are loaded in the cluster east, by a Job that has a pod.
func elsewhere(t *testing.T, definition *fnv1.Resources) *loading {
	t.Helper()
	l := begin(t, revision("one")+"\n  placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}")
	l.req.Input = fixture.YAML(t, loaderInput+`allowedProviderConfigs: [{name: east}]}`)
	l.req.RequiredResources = map[string]*fnv1.Resources{"provider-configs": {}, definedAs: definition}
	l.call()
	l.answer("True")
	l.call()
	l.starts("True")
	return l
}

// starts gives the Job a pod, as far as the cluster answers.
func (l *loading) starts(synced string) {
	l.set("Job", `{active: 1}`)
	l.answer(synced)
}

// finds is what the provider has found by the collection.
func (l *loading) finds(pods ...string) {
	l.Helper()
	const label = "kubernetes.crossplane.io/owned-by-collection"
	l.set(collectionKind, `{membershipLabel: {`+label+`: `+collectionName+`}, conditions: [{type: Synced, status: "True"}]}`)
	type selected struct {
		APIVersion, Kind, Namespace string
		Labels                      map[string]string
	}
	requirement := ""
	for name, s := range l.fn.Run(l.T, l.req).GetRequirements().GetResources() {
		if s.GetMatchLabels().GetLabels()[label] == "" {
			continue
		}
		requirement = name
		want := selected{"kubernetes.m.crossplane.io/v1alpha1", "Object", "team", map[string]string{label: collectionName}}
		if diff := cmp.Diff(want, selected{s.GetApiVersion(), s.GetKind(), s.GetNamespace(), s.GetMatchLabels().GetLabels()}); diff != "" {
			l.Errorf("what the collection has found: -want +got:\n%s", diff)
		}
	}
	if requirement == "" {
		l.Fatal("what the collection has found is not required")
	}
	var all []string
	for _, name := range pods {
		all = append(all, `{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, metadata: {name: `+name+`}, spec: {forProvider: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: `+name+`, namespace: other}}}}}`)
	}
	l.req.RequiredResources[requirement] = fixture.Resources(l.T, all...)
}

// pod gives the pod of the Job this status.
func (l *loading) pod(status string) {
	l.Helper()
	var loader string
	for _, r := range l.req.GetObserved().GetResources() {
		if v := kube.Lookup(r.GetResource(), "spec", "observeObjects", "selector", "matchLabels", "fusioninfer.io/model-loader"); v != nil {
			loader = v.GetStringValue()
		}
	}
	for k, r := range l.req.GetObserved().GetResources() {
		if !strings.Contains(k, "/pod/loader/") {
			continue
		}
		there := kube.Lookup(r.GetResource(), "spec", "forProvider", "manifest").GetStructValue()
		there = kube.With(there, structpb.NewStructValue(fixture.YAML(l.T, `{fusioninfer.io/model-loader: "`+loader+`"}`)), "metadata", "labels")
		there = kube.With(there, structpb.NewStructValue(fixture.YAML(l.T, status)), "status")
		o := kube.With(fixture.YAML(l.T, `{conditions: [{type: Synced, status: "True"}]}`), structpb.NewStructValue(there), "atProvider", "manifest")
		l.req.Observed.Resources[k] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewStructValue(o), "status")}
	}
}

// TestLoaderPodsElsewhere follows what finds and observes the pod of a loading Job in another cluster. It comes once the
// Job has a pod, stays while the cluster does not answer, and goes with the Job's work.
func TestLoaderPodsElsewhere(t *testing.T) {
	const claim, replica, pod = "PersistentVolumeClaim", "LeaderWorkerSet", "Pod"
	l := elsewhere(t, fixture.Definition(t, "v1alpha1", ""))
	l.want("A collection finds the pod.", "FALSE Loading", "Job", collectionKind, claim)
	l.finds()
	l.want("It has found none so far.", "FALSE Loading", "Job", collectionKind, claim)
	l.finds("p-1", "p-2", "p-3", "p-4")
	l.want("A few are observed.", "FALSE Loading", "Job", collectionKind, claim, pod, pod, pod)
	l.finds("p-1")
	l.want("The others are gone.", "FALSE Loading", "Job", collectionKind, claim, pod)
	for k, r := range l.req.GetObserved().GetResources() {
		m := kube.Lookup(r.GetResource(), "spec", "forProvider", "manifest", "metadata")
		if strings.Contains(k, "/pod/") && kube.Lookup(m.GetStructValue(), "namespace").GetStringValue() != "team" {
			t.Errorf("a pod is read in another namespace than the service's: %v", m)
		}
	}
	l.pod(`{phase: Pending, containerStatuses: [{name: loader, state: {waiting: {reason: ImagePullBackOff, message: secret}}}]}`)
	rsp := l.fn.Run(t, l.req)
	const want = "LoadFailed: cluster east: pod p-1: container loader: ImagePullBackOff, and it tries again"
	if got := conditionOf(rsp, "ModelReady"); got != want {
		t.Errorf("the pod cannot start:\nwant %s\ngot  %s", want, got)
	}
	l.starts("False")
	l.want("The cluster does not answer, and nothing changes.", "FALSE Loading", "Job", collectionKind, claim, pod)
	l.set("Job", complete)
	l.answer("True")
	l.want("It is complete, and nothing is observed any more.", "TRUE Loaded", "Job", replica, replica, claim)
}

// TestNoCollections proves that weights are loaded where the provider has no collections, whatever missingKinds says.
func TestNoCollections(t *testing.T) {
	for _, missing := range []string{"Skip", "Fail"} {
		l := elsewhere(t, &fnv1.Resources{})
		l.req.Input = fixture.YAML(t, loaderInput+`missingKinds: `+missing+`, allowedProviderConfigs: [{name: east}]}`)
		l.req.RequiredResources["kind/objects.kubernetes.m.crossplane.io"] = fixture.Definition(t, "v1alpha1", "")
		l.want(missing+": the Job is there, and nothing finds its pod.", "FALSE Loading", "Job", "PersistentVolumeClaim")
	}
}
