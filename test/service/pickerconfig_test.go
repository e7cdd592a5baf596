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
						w.req.Observed.Resources[key] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
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
	fixture.Observe(w.req, w.withStrategy("prefix-cache", 2))
	delete(w.req.Observed.Resources, "deployment/epp")
	if !pickerPaused(t, w.withStrategy("queue-size", 2)) {
		t.Error("the new Deployment starts while the ConfigMap has the former configuration")
	}
}

// TestPausedIsNotReady shows that an endpoint picker is not ready while it waits, although the former one serves.
func TestPausedIsNotReady(t *testing.T) {
	w := newWorld(t, fixture.TwoNodes)
	ready := func(rsp *fnv1.RunFunctionResponse) string {
		return rsp.GetDesired().GetResources()["deployment/epp"].GetReady().String()
	}
	fixture.Observe(w.req, w.withStrategy("prefix-cache", 0))
	picker := w.req.GetObserved().GetResources()["deployment/epp"]
	status := fixture.YAML(t, `{observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: "True"}]}`)
	picker.Resource = kube.With(kube.With(picker.GetResource(), structpb.NewStructValue(status), "status"), structpb.NewNumberValue(1), "metadata", "generation")
	got := []string{ready(w.withStrategy("prefix-cache", 0)), ready(w.withStrategy("queue-size", 0))}
	if diff := cmp.Diff([]string{"READY_TRUE", "READY_FALSE"}, got); diff != "" {
		t.Errorf("before and after an edit: -want, +got:\n%s", diff)
	}
}

// TestStopsOnceRequestsWait shows that a role which may go to 0 for lack of requests from now on keeps a replica until an
// endpoint picker runs in which requests wait. Later changes of the endpoint picker leave the minimum at 0.
func TestStopsOnceRequestsWait(t *testing.T) {
	const (
		input  = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedTriggers: [cron], scaling: {prometheus: {serverAddress: "http://prometheus:9090"}}}`
		target = "minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}"
	)
	spec := func(scaling, strategy string) string {
		return fmt.Sprintf("roles:\n- {name: r, componentType: router, strategy: %s}\n- {name: w, componentType: worker, "+
			"scaling: {%s}, template: {spec: {containers: [{name: vllm, image: vllm/vllm-openai:v1, command: [vllm, serve, m]}]}}}\n", strategy, scaling)
	}
	cases := map[string]struct {
		reason, former string
		// want are the minimums: one before the edit, five while the endpoint picker is replaced, and two after another edit of it.
		want []float64
	}{
		"Minimum":  {reason: "It has run at least one replica.", former: "minReplicas: 1, maxReplicas: 4, target: {waitingRequests: 3}", want: []float64{1, 1, 1, 1, 0, 0, 0, 0}},
		"Triggers": {reason: "What stopped it so far starts it again without a request.", former: "minReplicas: 0, maxReplicas: 4, triggers: [{type: cron, metadata: {desiredReplicas: '2'}}]", want: []float64{0, 1, 1, 1, 0, 0, 0, 0}},
		"Named":    {reason: "A tenant names triggers, too.", former: "minReplicas: 0, maxReplicas: 4, triggers: [{type: cron, name: requests, metadata: {desiredReplicas: '2'}}]", want: []float64{0, 1, 1, 1, 0, 0, 0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec(tc.former, "prefix-cache"))
			w.req.Input = fixture.YAML(t, input)
			// It applies all of an answer, and returns the minimum in it. The new endpoint picker runs, or the former one still does.
			apply := func(runs bool) float64 {
				t.Helper()
				rsp, _ := fixture.Reconcile(t, w.fn, w.req, nil)
				if fatal := fixture.Fatals(rsp); fatal != "" {
					t.Fatal(fatal)
				}
				fixture.Observe(w.req, rsp)
				status := `{observedGeneration: 1, replicas: 1, availableReplicas: 1, updatedReplicas: 1}`
				if !runs {
					status = `{observedGeneration: 1, replicas: 2, availableReplicas: 1, updatedReplicas: 1}`
				}
				picker := w.req.GetObserved().GetResources()["deployment/epp"]
				picker.Resource = kube.With(kube.With(picker.GetResource(), structpb.NewStructValue(fixture.YAML(t, status)), "status"), structpb.NewNumberValue(1), "metadata", "generation")
				return kube.Lookup(rsp.GetDesired().GetResources()[kedaOfW].GetResource(), "spec", "minReplicaCount").GetNumberValue()
			}
			apply(true)
			got := []float64{apply(true)}
			w.edit(spec(target, "prefix-cache"))
			got = append(got, apply(false), apply(false), apply(true), apply(true), apply(true))
			w.edit(spec(target, "queue-size"))
			got = append(got, apply(false), apply(false))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s minReplicaCount: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// withStrategy answers a service of one role of workers whose router has a strategy.
func (w *world) withStrategy(strategy string, replicas int) *fnv1.RunFunctionResponse {
	w.tb.Helper()
	w.edit("roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n" + roleOf("w", "worker", replicas, "v1"))
	rsp, _ := fixture.Reconcile(w.tb, w.fn, w.req, nil)
	return rsp
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

// TestRouterReadyAfterEdit shows that RouterReady is False in the call that changes endpoint pickers. Their Deployment still says that the
// former ones are ready.
func TestRouterReadyAfterEdit(t *testing.T) {
	const (
		input     = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: east}]%s}"
		available = "{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: \"True\"}]}"
	)
	cases := map[string]struct {
		reason        string
		router, input string
		want          []string
	}{
		"Resources": {reason: "They need more memory.", router: "endpointPicker: {resources: {limits: {memory: 8Gi}}}", want: []string{"TRUE AllReady", "FALSE Updating", "TRUE AllReady"}},
		"Replicas":  {reason: "There are more of them.", router: "replicas: 2", want: []string{"TRUE AllReady", "FALSE Updating", "TRUE AllReady"}},
		"Labels":    {reason: "The platform team changes their labels.", input: ", labels: {team: a}", want: []string{"TRUE AllReady", "FALSE Updating", "TRUE AllReady"}},
		"Failure":   {reason: "It is of the InferencePool.", router: "endpointPicker: {failureMode: FailClose}", want: []string{"TRUE AllReady", "TRUE AllReady", "TRUE AllReady"}},
		"Nothing":   {reason: "Nothing changes.", want: []string{"TRUE AllReady", "TRUE AllReady", "TRUE AllReady"}},
	}
	for name, tc := range cases {
		for where, placement := range map[string]string{"Here": "", "Elsewhere": "placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}\n"} {
			t.Run(name+where, func(t *testing.T) {
				w := newWorld(t, placement+fixture.TwoNodes)
				call := func(router, more string) string {
					if router != "" {
						router = ", " + router
					}
					w.req.Input = fixture.YAML(t, fmt.Sprintf(input, more))
					w.edit(placement + "roles:\n- {name: r, componentType: router" + router + "}\n" + roleOf("w", "worker", 1, "v1"))
					rsp, _ := fixture.Reconcile(t, w.fn, w.req, nil)
					if fatal := fixture.Fatals(rsp); fatal != "" {
						t.Fatal(fatal)
					}
					fixture.Observe(w.req, rsp)
					for key, r := range w.req.GetObserved().GetResources() {
						path := []string{"status"}
						if where == "Elsewhere" {
							r.Resource, path = readyThere(t, r.GetResource()), []string{"status", "atProvider", "manifest", "status"}
						}
						if strings.HasSuffix(key, "deployment/epp") {
							r.Resource = kube.With(r.GetResource(), structpb.NewStructValue(fixture.YAML(t, available)), path...)
						}
					}
					return fixture.Condition(rsp, "RouterReady")
				}
				call("", "")
				got := []string{call("", ""), call(tc.router, tc.input), call(tc.router, tc.input)}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}
