package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
	"github.com/fusioninfer/function-inferenceservice/test/oracle"
)

// withProfiles is an Input with the profile p, which has these roles, and others.
func withProfiles(roles string) string {
	return `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, profiles: [{name: other, roles: [{componentType: worker, template: {spec: {containers: [{name: other}]}}}]}, {name: p, roles: [` + roles + `]}]}`
}

// withoutProfile takes status.profile out of a response, and returns it.
func withoutProfile(rsp *fnv1.RunFunctionResponse) *structpb.Struct {
	xr := rsp.GetDesired().GetComposite()
	status := kube.Copy(kube.Lookup(xr.GetResource(), "status").GetStructValue())
	profile := status.GetFields()["profile"].GetStructValue()
	delete(status.GetFields(), "profile")
	xr.Resource = kube.With(xr.GetResource(), structpb.NewStructValue(status), "status")
	return profile
}

// TestProfileBesideEngine warns of an engine that gets nothing of the profile.
func TestProfileBesideEngine(t *testing.T) {
	xr := fixture.Service(`{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: server, image: "vllm/vllm-openai:v0.24.0", args: [--model, m]}]}}}]}`)
	in := withProfiles(`{componentType: worker, template: {spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.24.0", args: [--model, m], ports: [{name: http, containerPort: 8000}]}]}}}`)
	rsp := function.Start(t).Run(t, fixture.Request(t, xr, in))
	if fixture.IsFatal(rsp) {
		t.Fatal(fixture.Fatals(rsp))
	}
	const want = `spec.roles[0].template.spec.containers[0].name: "server" runs a second engine and gets nothing of profile p`
	for _, c := range rsp.GetConditions() {
		if c.GetType() == "NoWarnings" && !strings.Contains(c.GetMessage(), want) {
			t.Errorf("want %q, got %q", want, c.GetMessage())
		}
	}
	if got := fixture.Condition(rsp, "NoWarnings"); got != "FALSE Suspicious" {
		t.Errorf("NoWarnings is %s", got)
	}
}

// TestShortForm shows that a service with a profile is answered as the service that says everything
// itself.
func TestShortForm(t *testing.T) {
	const engine = `name: vllm, image: vllm/vllm-openai:v0.11.0`
	cases := map[string]struct {
		reason      string
		roles       string
		short, long string
	}{
		"TenLines": {
			reason: "A service may say no more than how many replicas there are.",
			roles: `{componentType: router, strategy: queue-size, endpointPicker: {resources: {requests: {cpu: 2}}}},
				{componentType: worker, lifecycle: {startupSeconds: 900}, template: {spec: {nodeSelector: {gpu: l40s}, containers: [{` + engine + `, args: [m, --a=1], resources: {limits: {nvidia.com/gpu: 1}}}]}}}`,
			short: `{profileName: p, roles: [{name: router, componentType: router}, {name: serve, componentType: worker, replicas: 4}]}`,
			long: `{roles: [{name: router, componentType: router, strategy: queue-size, endpointPicker: {resources: {requests: {cpu: 2}}}},
				{name: serve, componentType: worker, replicas: 4, lifecycle: {startupSeconds: 900}, template: {spec: {nodeSelector: {gpu: l40s}, containers: [{` + engine + `, args: [m, --a=1], resources: {limits: {nvidia.com/gpu: 1}}}]}}}]}`,
		},
		"Model": {
			reason: "The model's arguments and the variable of its token are what the long form has.",
			roles: `{componentType: router, strategy: queue-size},
				{componentType: worker, template: {spec: {nodeSelector: {gpu: l40s}, containers: [{` + engine + `, command: [vllm, serve], args: [--max-model-len=8192], resources: {limits: {nvidia.com/gpu: 1}}}]}}}`,
			short: `{model: {uri: "hf://Qwen/Qwen3-8B", revision: 9c925d64d72725edaf899c6cb9c377fd0709d9c5, tokenSecretRef: {name: hf-token}}, profileName: p, roles: [{name: router, componentType: router}, {name: serve, componentType: worker, replicas: 4}]}`,
			long: `{roles: [{name: router, componentType: router, strategy: queue-size},
				{name: serve, componentType: worker, replicas: 4, template: {spec: {nodeSelector: {gpu: l40s}, containers: [{` + engine + `,
					command: [vllm, serve], args: [Qwen/Qwen3-8B, --max-model-len=8192, --served-model-name, Qwen/Qwen3-8B, --revision, 9c925d64d72725edaf899c6cb9c377fd0709d9c5],
					env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: token}}}], resources: {limits: {nvidia.com/gpu: 1}}}]}}}]}`,
		},
		"ModelOnSeveralNodes": {
			reason: "Leader and workers of a launcher get the same model.",
			roles:  `{componentType: worker, multinode: {nodeCount: 2, launcher: VLLM}, template: {spec: {containers: [{` + engine + `, args: [--tensor-parallel-size=8, --pipeline-parallel-size=2], resources: {limits: {nvidia.com/gpu: 8}}}]}}}`,
			short:  `{model: {uri: "hf://Qwen/Qwen3-8B", name: qwen, tokenSecretRef: {name: hf-token}}, profileName: p, roles: [{name: serve, componentType: worker}]}`,
			long: `{roles: [{name: serve, componentType: worker, multinode: {nodeCount: 2, launcher: VLLM}, template: {spec: {containers: [{` + engine + `,
				args: [--tensor-parallel-size=8, --pipeline-parallel-size=2, --model, Qwen/Qwen3-8B, --served-model-name, qwen],
				env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: token}}}], resources: {limits: {nvidia.com/gpu: 8}}}]}}}]}`,
		},
		"Overrides": {
			reason: "What the service says is put over the profile.",
			roles:  `{componentType: worker, template: {spec: {containers: [{` + engine + `, command: [vllm, serve], args: [--a=1, --b], env: [{name: A, value: a}], resources: {limits: {nvidia.com/gpu: 1}}}], volumes: [{name: cache, emptyDir: {}}]}}}`,
			short:  `{profileName: p, replicas: 2, roles: [{name: serve, componentType: worker, template: {spec: {containers: [{name: vllm, args: [m, --a=2], env: [{name: A, value: b}], resources: {limits: {nvidia.com/gpu: 2}}}], volumes: [{name: cache, hostPath: null, persistentVolumeClaim: {claimName: c}}]}}}]}`,
			long:   `{replicas: 2, roles: [{name: serve, componentType: worker, template: {spec: {containers: [{` + engine + `, command: [vllm, serve], args: [m, --b, --a=2], env: [{name: A, value: b}], resources: {limits: {nvidia.com/gpu: 2}}}], volumes: [{name: cache, persistentVolumeClaim: {claimName: c}}]}}}]}`,
		},
		"SeveralNodes": {
			reason: "The launcher and the leader are the profile's, the number of nodes is the service's.",
			roles:  `{componentType: worker, multinode: {nodeCount: 2, launcher: VLLM}, template: {spec: {containers: [{` + engine + `, args: [m]}]}}, leaderTemplate: {spec: {containers: [{` + engine + `, args: [m, --x]}]}}}`,
			short:  `{profileName: p, roles: [{name: serve, componentType: worker, multinode: {nodeCount: 4}, template: {metadata: {labels: {a: b}}}}]}`,
			long:   `{roles: [{name: serve, componentType: worker, multinode: {nodeCount: 4, launcher: VLLM}, template: {metadata: {labels: {a: b}}, spec: {containers: [{` + engine + `, args: [m]}]}}, leaderTemplate: {metadata: {labels: {a: b}}, spec: {containers: [{` + engine + `, args: [m, --x]}]}}}]}`,
		},
		"PrefillAndDecode": {
			reason: "Each type of role has its own fragment.",
			roles: `{componentType: router, endpointPicker: {kvConnector: mooncake}}, {componentType: prefiller, template: {spec: {containers: [{` + engine + `, args: [m, --p]}]}}},
				{componentType: decoder, template: {spec: {containers: [{` + engine + `, args: [m, --d]}]}}}`,
			short: `{profileName: p, roles: [{name: r, componentType: router}, {name: p, componentType: prefiller}, {name: d, componentType: decoder}], schedulingStrategy: {gang: {minRoleReplicas: {p: 1}}}}`,
			long: `{roles: [{name: r, componentType: router, endpointPicker: {kvConnector: mooncake}}, {name: p, componentType: prefiller, template: {spec: {containers: [{` + engine + `, args: [m, --p]}]}}},
				{name: d, componentType: decoder, template: {spec: {containers: [{` + engine + `, args: [m, --d]}]}}}], schedulingStrategy: {gang: {minRoleReplicas: {p: 1}}}}`,
		},
		"Unused": {
			reason: "A service that says everything itself is rendered the same with a profile.",
			roles:  `{componentType: worker, template: {spec: {containers: [{` + engine + `, args: [m], stdin: true}]}}}`,
			short:  `{profileName: p, roles: [{name: serve, componentType: worker, multinode: {nodeCount: 1}, template: {spec: {containers: [{name: vllm, image: i, command: [vllm, serve, org/n], args: [--a], stdin: false}]}}}]}`,
			long:   `{roles: [{name: serve, componentType: worker, multinode: {nodeCount: 1}, template: {spec: {containers: [{name: vllm, image: i, command: [vllm, serve, org/n], args: [--a], stdin: false}]}}}]}`,
		},
	}
	fn := function.Start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := withProfiles(tc.roles)
			req := fixture.Request(t, fixture.Service(tc.short), in)
			long := fn.Run(t, fixture.Request(t, fixture.Service(tc.long), in))
			short := fn.Run(t, req)
			if got := fixture.Fatals(long) + fixture.Fatals(short); got != "" {
				t.Fatal(got)
			}
			oracle.Check(t, req, short)
			if profile := withoutProfile(short); profile.GetFields()["name"].GetStringValue() != "p" || len(profile.GetFields()["hash"].GetStringValue()) != 8 {
				t.Errorf("want the profile in the status, got %v", profile)
			}
			if profile := withoutProfile(long); profile != nil {
				t.Errorf("want no profile in the status, got %v", profile)
			}
			for _, c := range short.GetConditions() {
				if c.GetType() == "ModelReady" {
					c.Message = nil // The long form does not say where its weights come from, so nothing is said of them.
				}
			}
			if diff := cmp.Diff(long, short, protocmp.Transform()); diff != "" {
				t.Errorf("%s\n-long +short:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProfileRefusals shows what a service with a profile is refused for.
func TestProfileRefusals(t *testing.T) {
	cases := map[string]struct {
		reason string
		roles  string
		spec   string
		want   string
	}{
		"Unknown": {
			reason: "The list says which profiles there are. What the template lacks is not known then.",
			roles:  `{componentType: worker}`,
			spec:   `{profileName: othr, roles: [{name: w, componentType: worker}, {name: v, componentType: worker, template: {spec: {containers: [{name: vllm}]}}}]}`,
			want:   `spec.profileName: Invalid value: "othr": must be one of the profiles that the platform team has set in the Input: other, p (did you mean "other"?)`,
		},
		"NoTemplate": {
			reason: "A profile may lack a template. The list says which profiles have one.",
			roles:  `{componentType: decoder, template: {}}, {componentType: prefiller, leaderTemplate: {}}`,
			spec:   `{profileName: other, roles: [{name: d, componentType: decoder}, {name: p, componentType: prefiller}]}`,
			want: `spec.roles[0].template: Required value: must be the template of the pods of a decoder, unless spec.profileName names a profile that has one: p; ` +
				`spec.roles[1].template: Required value: must be the template of the pods of a prefiller, unless spec.profileName names a profile that has one: so far, the Input has none`,
		},
		"NoProfile": {
			reason: "The same helps a service that names none.",
			roles:  `{componentType: worker, template: {}}`,
			spec:   `{roles: [{name: w, componentType: worker}]}`,
			want:   `spec.roles[0].template: Required value: must be the template of the pods of a worker, unless spec.profileName names a profile that has one: other, p`,
		},
		"Policy": {
			reason: "A tenant may use no more with a profile than without one.",
			roles:  `{componentType: worker, template: {spec: {containers: [{name: vllm, image: i, securityContext: {privileged: true}}]}}}`,
			spec:   `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, args: [m]}]}}}]}`,
			want: `spec.roles[0].template.spec.containers[0]: Forbidden: violates PodSecurity "baseline:latest": privileged (container "vllm" must not set securityContext.privileged=true); ` +
				`the platform team sets the standard (podSecurity in the Composition's input) (in the service merged with profile p)`,
		},
		"Incomplete": {
			reason: "What profile and service lack together is an error at the service's path.",
			roles:  `{componentType: worker, template: {spec: {containers: [{name: vllm}]}}}`,
			spec:   `{profileName: p, roles: [{name: w, componentType: worker}]}`,
			want:   `spec.roles[0].template.spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it (this comes from profile p)`,
		},
		"OtherContainer": {
			reason: "A container of another name is another container, which the error says.",
			roles:  `{componentType: worker, template: {spec: {containers: [{name: vllm, image: i, args: [m]}]}}}`,
			spec:   `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: engine, args: [--a]}]}}}]}`,
			want:   `spec.roles[0].template.spec.containers[0].name: Invalid value: "engine": profile p has only container "vllm": use that name to change it, or set an image to add another container`,
		},
		"OtherContainers": {
			reason: "The path is the service's own, also for leaders that only the profile has.",
			roles:  `{componentType: worker, leaderTemplate: {spec: {containers: [{name: vllm, image: i}, {name: logs, image: j}]}}}`,
			spec:   `{profileName: p, roles: [{name: w, componentType: worker, multinode: {nodeCount: 2}, template: {spec: {containers: [{name: vllm, image: i, args: [m]}, {name: engine}]}}}]}`,
			want: `spec.roles[0].template.spec.containers[1].image: Required value: must be set: Kubernetes creates no pod without it; ` +
				`spec.roles[0].template.spec.containers[1].name: Invalid value: "engine": profile p has only containers "vllm", "logs": use one of these names to change it, or set an image to add another container`,
		},
		"BadProfile": {
			reason: "A profile that cannot be one is an error of the Input, also for services that do not name it.",
			roles:  `{componentType: worker, template: {spec: {containers: [{name: vllm, args: x, $patch: delete}]}}}`,
			spec:   `{roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: i}]}}}]}`,
			want: `input.profiles[1].roles[0].template.spec.containers[0].$patch: Forbidden: is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have; ` +
				`input.profiles[1].roles[0].template.spec.containers[0].args: Invalid value: "x": must be a list`,
		},
		"TooLarge": {
			reason: "The bounds of a spec hold for the merged one.",
			roles:  `{componentType: worker, template: {spec: {containers: [{name: vllm, image: i, args: [` + strings.Repeat("a, ", 999) + `a], env: [` + strings.Repeat("{name: a, value: b}, ", 999) + `{name: a}]}]}}}`,
			spec:   `{profileName: p, roles: [` + strings.Repeat(`{name: w, componentType: worker}, `, 20) + `{name: w, componentType: worker}]}`,
			want:   `spec: Invalid value: "more than 50000 values": must have at most 50000 values in all`,
		},
	}
	fn := function.Start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fixture.Fatals(fn.Run(t, fixture.Request(t, fixture.Service(tc.spec), withProfiles(tc.roles))))
			if diff := cmp.Diff("nothing was changed: "+tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProfileForbidsWhatServes changes a profile in a way that what serves forbids. The service itself has not changed, so the error
// says where the value comes from.
func TestProfileForbidsWhatServes(t *testing.T) {
	worker := func(args string) string {
		return `{componentType: worker, template: {spec: {containers: [{name: vllm, image: v1, command: [vllm, serve], args: [` + args + `]}]}}}`
	}
	pair := sglangPair()
	cases := map[string]struct{ spec, before, after, want string }{
		"Port": {
			"{profileName: p, roles: [{name: w, componentType: worker, replicas: 2}]}", worker("/m"), worker("/m, --port=9000"),
			"spec.roles[0]: Forbidden: must answer on port 8000, and not on 9000, while pods of its former template serve: requests are sent to one port of all pods. " +
				"To change it, set replicas to 0 first (in the service merged with profile p)",
		},
		"Strategy": {
			"{profileName: p, roles: [{name: r, componentType: router}, {name: a, componentType: prefiller}, {name: b, componentType: decoder}]}",
			"{componentType: router}" + pair, "{componentType: router, strategy: queue-size}" + pair,
			"spec.roles[0].strategy: Forbidden: must be pd-disaggregation while prefill and decode serve: neither answers whole requests alone. " +
				"Add a role of workers and wait until it serves, or set the replicas of all roles to 0 first (this comes from profile p)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.req.Input = fixture.YAML(t, withProfiles(tc.before))
			w.rollOut(tc.spec)
			w.req.Input = fixture.YAML(t, withProfiles(tc.after))
			if diff := cmp.Diff("nothing was changed: "+tc.want, fixture.Fatals(w.fn.Run(t, w.req))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// sglangPair are the fragments of a profile for prefill and decode of SGLang.
func sglangPair() string {
	const role = `, {componentType: %s, template: {spec: {containers: [{name: sglang, image: v1, command: [python3, -m, sglang.launch_server], args: [--model-path=/m, --port=8000]}]}}}`
	return fmt.Sprintf(role, "prefiller") + fmt.Sprintf(role, "decoder")
}

// TestProfileRollsOut shows that a change of a profile reaches one replica after the other, unless the
// service is paused, and that a profile that disappears changes nothing.
func TestProfileRollsOut(t *testing.T) {
	const roles = `{componentType: worker, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}`
	const spec = `{profileName: p, roles: [{name: w, componentType: worker, replicas: 4}]}`
	w := newWorld(t, spec)
	w.req.Input = fixture.YAML(t, withProfiles(fmt.Sprintf(roles, "v1")))
	_, before := w.rollOut(spec)
	paused := strings.TrimSuffix(spec, "}") + `, rollout: {paused: true}}`
	w.req.Input = fixture.YAML(t, withProfiles(fmt.Sprintf(roles, "v2")))
	fewest, waits := w.rollOut(paused)
	if got := fixture.Condition(waits, "RolledOut"); fewest != 4 || w.images() != "v1,v1,v1,v1" || len(w.restarts) != 0 || got != "FALSE Paused" {
		t.Errorf("want a service that is paused to keep v1, got %s, restarts %v, and RolledOut %s", w.images(), w.restarts, got)
	}
	fewest, after := w.rollOut(spec)
	if fewest != 3 || w.images() != "v2,v2,v2,v2" {
		t.Errorf("want one replica after the other to get v2, got %s with at least %d serving", w.images(), fewest)
	}
	was, is := withoutProfile(before), withoutProfile(after)
	if diff := cmp.Diff(was, is, protocmp.Transform()); diff == "" {
		t.Errorf("want another hash of the profile, got %v", is)
	}
	w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input}`)
	rsp := w.fn.Run(t, w.req)
	if diff := cmp.Diff(`nothing was changed: spec.profileName: Invalid value: "p": must be left out until the platform team sets profiles in the Input of the Composition`, fixture.Fatals(rsp)); diff != "" {
		t.Errorf("a profile that is gone: -want +got:\n%s", diff)
	}
}
