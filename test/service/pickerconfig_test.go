package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestPickerWaitsForConfiguration shows that an endpoint picker is replaced once its ConfigMap has the new
// configuration, in the cluster of the service and in another one. It would read the old one otherwise.
func TestPickerWaitsForConfiguration(t *testing.T) {
	all, deployment, configMap := []string{""}, []string{"deployment/epp"}, []string{"configmap/epp"}
	// What is applied of the answer to a spec, one after the other.
	steps := []struct {
		strategy string
		applied  []string
		paused   bool
	}{
		{"prefix-cache", all, false},
		{"prefix-cache", all, false},
		{"queue-size", deployment, true},
		{"queue-size", deployment, true},
		{"queue-size", configMap, true},
		{"queue-size", all, false},
		{"prefix-cache", configMap, true},
		{"prefix-cache", all, false},
	}
	for name, placement := range map[string]string{"Here": "", "Elsewhere": "placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}\n"} {
		t.Run(name, func(t *testing.T) {
			var want, got []bool
			w := newWorld(t, placement+fixture.TwoNodes)
			w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: east}]}`)
			for _, s := range steps {
				w.edit(placement + "roles:\n- {name: r, componentType: router, strategy: " + s.strategy + "}\n" + roleOf("w", "worker", 2, "v1"))
				rsp, _ := fixture.Reconcile(t, w.fn, w.req, nil)
				if fatal := fixture.Fatals(rsp); fatal != "" {
					t.Fatal(fatal)
				}
				want, got = append(want, s.paused), append(got, pickerPaused(t, rsp))
				for key, r := range rsp.GetDesired().GetResources() {
					if slices.ContainsFunc(s.applied, func(suffix string) bool { return strings.HasSuffix(key, suffix) }) {
						w.req.Observed.Resources[key] = &fnv1.Resource{Resource: asRead(r.GetResource())}
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("paused: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestPickerMadeAnew shows that the same goes for a Deployment that was deleted by hand.
func TestPickerMadeAnew(t *testing.T) {
	w := newWorld(t, fixture.TwoNodes)
	answer := func(strategy string) *fnv1.RunFunctionResponse {
		w.edit("roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n" + roleOf("w", "worker", 2, "v1"))
		rsp, _ := fixture.Reconcile(t, w.fn, w.req, nil)
		return rsp
	}
	fixture.Observe(w.req, answer("prefix-cache"))
	delete(w.req.Observed.Resources, "deployment/epp")
	if !pickerPaused(t, answer("queue-size")) {
		t.Error("the new Deployment starts while the ConfigMap has the former configuration")
	}
}

// TestPausedIsNotReady shows that an endpoint picker is not ready while it waits, although the former one serves.
func TestPausedIsNotReady(t *testing.T) {
	w := newWorld(t, fixture.TwoNodes)
	answer := func(strategy string) *fnv1.RunFunctionResponse {
		w.edit("roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n" + roleOf("w", "worker", 0, "v1"))
		rsp, _ := fixture.Reconcile(t, w.fn, w.req, nil)
		return rsp
	}
	ready := func(rsp *fnv1.RunFunctionResponse) string {
		return rsp.GetDesired().GetResources()["deployment/epp"].GetReady().String()
	}
	fixture.Observe(w.req, answer("prefix-cache"))
	picker := w.req.GetObserved().GetResources()["deployment/epp"]
	status := fixture.YAML(t, `{observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: "True"}]}`)
	picker.Resource = kube.With(kube.With(picker.GetResource(), structpb.NewStructValue(status), "status"), structpb.NewNumberValue(1), "metadata", "generation")
	got := []string{ready(answer("prefix-cache")), ready(answer("queue-size"))}
	if diff := cmp.Diff([]string{"READY_TRUE", "READY_FALSE"}, got); diff != "" {
		t.Errorf("before and after an edit: -want, +got:\n%s", diff)
	}
}

// pickerPaused tells whether the Deployment of the endpoint picker is paused.
func pickerPaused(t *testing.T, rsp *fnv1.RunFunctionResponse) bool {
	t.Helper()
	for key, r := range rsp.GetDesired().GetResources() {
		if strings.HasSuffix(key, "deployment/epp") {
			path := []string{"spec", "paused"}
			if kube.Lookup(r.GetResource(), "kind").GetStringValue() == "Object" {
				path = append([]string{"spec", "forProvider", "manifest"}, path...)
			}
			return kube.Lookup(r.GetResource(), path...).GetBoolValue()
		}
	}
	t.Fatalf("there is no Deployment: %v", fixture.Keys(rsp.GetDesired().GetResources()))
	return false
}

// asRead is an object as it is observed once it is applied. An Object has the remote object in its status.
func asRead(o *structpb.Struct) *structpb.Struct {
	if kube.Lookup(o, "kind").GetStringValue() != "Object" {
		return o
	}
	o = kube.With(o, kube.Lookup(o, "spec", "forProvider", "manifest"), "status", "atProvider", "manifest")
	return kube.With(o, structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"type": structpb.NewStringValue("Synced"), "status": structpb.NewStringValue("True"),
	}})}}), "status", "conditions")
}
