package remote

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestLoaderPods proves that a collection finds pods of one loader in one namespace only, and that its Objects are
// left to it: nothing of it can write.
func TestLoaderPods(t *testing.T) {
	jobs := []JobPods{{Job: "qwen-model-1-a", Failed: 2}}
	spec := func(ref map[string]any) map[string]any {
		return map[string]any{
			"observeObjects": map[string]any{
				"apiVersion": "v1", "kind": "Pod", "namespace": "models",
				"selector": map[string]any{"matchLabels": map[string]any{"fusioninfer.io/model-loader": "qwen-model-1"}},
			},
			"providerConfigRef": ref,
		}
	}
	cases := map[string]struct {
		reason  string
		service naming.Identity
		want    map[string]any
	}{
		"Namespaced": {
			reason: "A namespaced XR composes it in its namespace.", service: service,
			want: map[string]any{
				"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "ObservedObjectCollection",
				"metadata": map[string]any{
					"name": "qwen-model-1-pods-c264abc3d7ca", "namespace": "team-a",
					"labels": map[string]any{"fusioninfer.io/service": "qwen"}, "annotations": map[string]any{"fusioninfer.io/loading-jobs": "2ab6e67b"},
				},
				"spec": spec(map[string]any{"kind": "ClusterProviderConfig", "name": "east"}),
			},
		},
		"Claimed": {
			reason: "The XR behind a claim is cluster-scoped.", service: claimed,
			want: map[string]any{
				"apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "ObservedObjectCollection",
				"metadata": map[string]any{
					"name":   "qwen-model-1-pods-5a25b5957944",
					"labels": map[string]any{"fusioninfer.io/service": "qwen"}, "annotations": map[string]any{"fusioninfer.io/loading-jobs": "2ab6e67b"},
				},
				"spec": spec(map[string]any{"name": "east"}),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := LoaderPods(key.New("east", key.LoaderPods), "qwen-model-1", jobs, tc.service, east)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, kube.AsMap(got.Resource)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLoaderPodsNames proves that no two collections have one name, and that the provider can append to each. A
// collection is looked at anew when the Jobs with pods change.
func TestLoaderPodsNames(t *testing.T) {
	in := func(namespace, config string) scheduling.Target {
		target := east
		target.Namespace, target.ProviderConfig.Name = namespace, config
		return target
	}
	const long = "a-name-of-a-loader-that-is-as-long-as-a-label-may-be-0123456789"
	collections := func(s naming.Identity) []kube.Object {
		var all []kube.Object
		for _, loader := range []string{long, long[:62], "qwen"} {
			for _, target := range []scheduling.Target{in("models", "east"), in("models", "west"), in("other", "east")} {
				o, err := LoaderPods(key.New("east", key.LoaderPods), loader, nil, s, target)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, o)
			}
		}
		return all
	}
	for _, s := range []naming.Identity{service, claimed} {
		names := map[string]bool{}
		for _, o := range collections(s) {
			if len(validation.IsDNS1123Label(o.Name()+"-1234567")) > 0 || names[o.Name()] {
				t.Errorf("claimed: %t: %q is no name for a collection, or another one has it", s.Claimed, o.Name())
			}
			names[o.Name()] = true
		}
	}
	marks := map[string]bool{}
	for _, jobs := range [][]JobPods{nil, {{Job: "a"}}, {{Job: "a", Failed: 1}}, {{Job: "b"}}, {{Job: "a"}, {Job: "b"}}} {
		o, err := LoaderPods(key.New("east", key.LoaderPods), "qwen", jobs, service, east)
		if err != nil {
			t.Fatal(err)
		}
		marks[kube.Lookup(o.Resource, "metadata", "annotations", naming.AnnotationLoadingJobs).GetStringValue()] = true
	}
	if len(marks) != 5 {
		t.Errorf("5 states of Jobs have %d annotations: %v", len(marks), marks)
	}
}

// TestMembersOf proves that only Objects of the collection are read, and in the namespace of the XR.
func TestMembersOf(t *testing.T) {
	const label = "kubernetes.crossplane.io/owned-by-collection"
	collection := func(status map[string]any) incoming.Object {
		return incoming.ObjectOf(encode(t, map[string]any{"kind": "ObservedObjectCollection", "status": status}))
	}
	reported := collection(map[string]any{"membershipLabel": map[string]any{label: "c"}})
	type selected struct {
		APIVersion, Kind, Namespace string
		Labels                      map[string]string
	}
	cases := map[string]struct {
		reason   string
		observed incoming.Object
		service  naming.Identity
		want     *selected
	}{
		"Namespaced":  {"They are in the namespace of the XR.", reported, service, &selected{"kubernetes.m.crossplane.io/v1alpha1", "Object", "team-a", map[string]string{label: "c"}}},
		"Claimed":     {"They are cluster-scoped.", reported, claimed, &selected{"kubernetes.crossplane.io/v1alpha2", "Object", "", map[string]string{label: "c"}}},
		"NotReported": {"Nobody knows which they are: no label would select all.", collection(map[string]any{}), service, nil},
		"Absent":      {"There is no collection.", incoming.Object{}, service, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *selected
			if s := MembersOf(tc.observed, tc.service); s != nil {
				got = &selected{s.GetApiVersion(), s.GetKind(), s.GetNamespace(), s.GetMatchLabels().GetLabels()}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPodNames proves that only a few pods are observed, first those that may still load.
func TestPodNames(t *testing.T) {
	found := func(kind, name, phase string) incoming.Object {
		return incoming.ObjectOf(encode(t, map[string]any{
			"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
			"spec": map[string]any{"forProvider": map[string]any{"manifest": map[string]any{"kind": kind, "metadata": map[string]any{"name": name, "namespace": "secret"}}}},
			"status": map[string]any{
				"conditions": []any{map[string]any{"type": "Synced", "status": "True"}},
				"atProvider": map[string]any{"manifest": map[string]any{"kind": kind, "status": map[string]any{"phase": phase}}},
			},
		}))
	}
	cases := map[string]struct {
		reason  string
		members []incoming.Object
		want    []string
	}{
		"None":    {"Nothing has been found.", nil, []string{}},
		"Order":   {"The order of the members is any.", []incoming.Object{found("Pod", "b", "Running"), found("Pod", "a", "Pending")}, []string{"a", "b"}},
		"Ended":   {"Pods that have ended stay as long as their Job.", []incoming.Object{found("Pod", "a", "Failed"), found("Pod", "b", "Succeeded"), found("Pod", "d", ""), found("Pod", "c", "Running")}, []string{"c", "d"}},
		"Limit":   {"Anybody may have made pods with these labels.", []incoming.Object{found("Pod", "c", ""), found("Pod", "b", ""), found("Pod", "a", "")}, []string{"a", "b"}},
		"Twice":   {"Each is observed once.", []incoming.Object{found("Pod", "a", ""), found("Pod", "a", "Failed")}, []string{"a"}},
		"NoPod":   {"Only pods are read.", []incoming.Object{found("Secret", "a", "")}, []string{}},
		"NoName":  {"A name that nothing can have would stop Crossplane.", []incoming.Object{found("Pod", "../a", ""), found("Pod", "a.b", ""), found("Pod", "", "")}, []string{}},
		"Foreign": {"Fields of a wrong type count as absent.", []incoming.Object{incoming.ObjectOf(encode(t, map[string]any{"kind": "Object", "spec": "x"}))}, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PodNames(tc.members, 2)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
