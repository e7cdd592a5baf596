package servingprofile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

func document(tb testing.TB, doc string) *structpb.Struct {
	tb.Helper()
	b, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		tb.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := protojson.Unmarshal(b, s); err != nil {
		tb.Fatal(err)
	}
	return s
}

// profiles reads profiles as the Input has them.
func profiles(tb testing.TB, doc string) []inputv1alpha1.Profile {
	tb.Helper()
	in := inputv1alpha1.Input{}
	errs := kube.Decode(document(tb, `{profiles: `+doc+`}`), nil, &in)
	if errs = append(errs, inputv1alpha1.Validate(&in, nil)...); len(errs) > 0 {
		for _, e := range errs {
			if strings.HasPrefix(e.Field, "profiles") {
				tb.Fatal(errs.ToAggregate())
			}
		}
	}
	return in.Profiles
}

// worker is a profile p whose workers have a template with this spec.
func worker(spec string) string {
	return `[{name: p, roles: [{componentType: worker, template: {spec: ` + spec + `}}]}]`
}

// container is a worker's profile with one container.
func container(fields string) string { return worker(`{containers: [{name: vllm, ` + fields + `}]}`) }

// service is a spec that names profile p, with one worker that has this template's spec.
func service(spec string) string {
	return `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: ` + spec + `}}]}`
}

// with is a service whose container vllm has fields.
func with(fields string) string { return service(`{containers: [{name: vllm, ` + fields + `}]}`) }

func TestApply(t *testing.T) {
	cases := map[string]struct {
		reason   string
		profiles string
		spec     string
		want     string
	}{
		"NoProfile": {
			reason:   "A service without a profile stays as it is.",
			profiles: container(`image: a`),
			spec:     `{roles: [{name: w, componentType: worker}]}`,
			want:     `{roles: [{name: w, componentType: worker}]}`,
		},
		"NothingSaid": {
			reason:   "A role that says nothing has all of the profile.",
			profiles: `[{name: other, roles: [{componentType: worker}]}, {name: p, roles: [{componentType: worker, multinode: {nodeCount: 2, launcher: VLLM}, lifecycle: {drainSeconds: 5}, template: {spec: {containers: [{name: vllm, image: a}]}}}, {componentType: router, strategy: queue-size, endpointPicker: {kvConnector: x}}]}]`,
			spec:     `{profileName: p, roles: [{name: r, componentType: router}, {name: w, componentType: worker, replicas: 3}]}`,
			want:     `{profileName: p, roles: [{name: r, componentType: router, strategy: queue-size, endpointPicker: {kvConnector: x}}, {name: w, componentType: worker, replicas: 3, multinode: {nodeCount: 2, launcher: VLLM}, lifecycle: {drainSeconds: 5}, template: {spec: {containers: [{name: vllm, image: a}]}}}]}`,
		},
		"SeveralRoles": {
			reason:   "Each role of the type has the fragment, and other types have none.",
			profiles: container(`image: a`),
			spec:     `{profileName: p, roles: [{name: v, componentType: worker}, {name: w, componentType: worker}, {name: d, componentType: decoder, template: {}}]}`,
			want:     `{profileName: p, roles: [{name: v, componentType: worker, template: {spec: {containers: [{name: vllm, image: a}]}}}, {name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: a}]}}}, {name: d, componentType: decoder, template: {}}]}`,
		},
		"Fields": {
			reason:   "Fields of the service win one by one, and null leaves out the profile's.",
			profiles: `[{name: p, roles: [{componentType: worker, multinode: {nodeCount: 2, launcher: SGLang}, lifecycle: {drainSeconds: 5, startupSeconds: 60}}]}]`,
			spec:     `{profileName: p, roles: [{name: w, componentType: worker, template: {}, multinode: {nodeCount: 4}, lifecycle: {drainSeconds: null, startupSeconds: 30}}]}`,
			want:     `{profileName: p, roles: [{name: w, componentType: worker, template: {}, multinode: {nodeCount: 4, launcher: SGLang}, lifecycle: {startupSeconds: 30}}]}`,
		},
		"ByName": {
			reason:   "Containers, variables, mounts and volumes are merged by what identifies them.",
			profiles: worker(`{nodeSelector: {gpu: l40s}, containers: [{name: vllm, image: a, env: [{name: A, value: a}, {name: B, value: b}], resources: {limits: {gpu: 1, memory: 1Gi}}, volumeMounts: [{mountPath: /x, name: x}]}], volumes: [{name: x, emptyDir: {}}]}`),
			spec:     service(`{nodeSelector: {zone: a}, containers: [{name: vllm, env: [{name: B, value: c}], resources: {limits: {gpu: 2}}, volumeMounts: [{mountPath: /x, readOnly: true}, {mountPath: /z, name: z}]}, {name: proxy, image: p}], volumes: [{name: z, emptyDir: {}}]}`),
			want:     service(`{nodeSelector: {gpu: l40s, zone: a}, containers: [{name: vllm, image: a, env: [{name: A, value: a}, {name: B, value: c}], resources: {limits: {gpu: 2, memory: 1Gi}}, volumeMounts: [{mountPath: /x, name: x, readOnly: true}, {mountPath: /z, name: z}]}, {name: proxy, image: p}], volumes: [{name: x, emptyDir: {}}, {name: z, emptyDir: {}}]}`),
		},
		"Order": {
			reason:   "Variables of the service keep their order, so that they may refer to each other, and so do those of the profile.",
			profiles: container(`env: [{name: A, value: a}, {name: B, value: b}, {name: C, value: c}]`),
			spec:     with(`env: [{name: X, value: x}, {name: B, value: $(X)}, {name: Z, value: z}]`),
			want:     with(`env: [{name: A, value: a}, {name: X, value: x}, {name: B, value: $(X)}, {name: C, value: c}, {name: Z, value: z}]`),
		},
		"OtherOrder": {
			reason:   "The order of the service counts where the two differ.",
			profiles: container(`env: [{name: A, value: a}, {name: B, value: b}]`),
			spec:     with(`env: [{name: B, value: c}, {name: A, value: d}]`),
			want:     with(`env: [{name: B, value: c}, {name: A, value: d}]`),
		},
		"Null": {
			reason:   "A null leaves out what the profile has.",
			profiles: container(`image: a, readinessProbe: {exec: {command: [x]}}, resources: {limits: {gpu: 1, rdma: 1}}`),
			spec:     with(`readinessProbe: null, resources: {limits: {rdma: null}}`),
			want:     with(`image: a, resources: {limits: {gpu: 1}}`),
		},
		"Choices": {
			reason:   "What excludes the profile's choice replaces it.",
			profiles: container(`env: [{name: A, value: a}, {name: B, valueFrom: {fieldRef: {fieldPath: x}}}], readinessProbe: {periodSeconds: 5, httpGet: {path: /health}}`),
			spec:     with(`env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}], readinessProbe: {exec: {command: [x]}}`),
			want:     with(`env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}], readinessProbe: {periodSeconds: 5, exec: {command: [x]}}`),
		},
		"Volumes": {
			reason:   "A volume has one source. The same source is merged.",
			profiles: worker(`{volumes: [{name: a, emptyDir: {medium: Memory}}, {name: b, emptyDir: {medium: Memory}}]}`),
			spec:     service(`{volumes: [{name: a, persistentVolumeClaim: {claimName: c}}, {name: b, emptyDir: {sizeLimit: 1Gi}}]}`),
			want:     service(`{volumes: [{name: a, persistentVolumeClaim: {claimName: c}}, {name: b, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}`),
		},
		"Ports": {
			reason:   "Of two ports with the same number, the first is merged with the profile's, and the other is another.",
			profiles: container(`ports: [{containerPort: 53, name: dns}]`),
			spec:     with(`ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]`),
			want:     with(`ports: [{containerPort: 53, name: dns, protocol: TCP}, {containerPort: 53, protocol: UDP}]`),
		},
		"Atomic": {
			reason:   "A list without keys is replaced, as Kubernetes does it.",
			profiles: worker(`{tolerations: [{key: a}]}`),
			spec:     service(`{tolerations: [{key: b}]}`),
			want:     service(`{tolerations: [{key: b}]}`),
		},
		"Young": {
			reason:   "Fields that are younger than the types here are merged as objects, and their lists replaced.",
			profiles: worker(`{young: {a: 1, b: [x]}, containers: [{name: vllm, young: {c: {d: 1}}}]}`),
			spec:     service(`{young: {b: [y]}, containers: [{name: vllm, young: {c: {e: 2}}}]}`),
			want:     service(`{young: {a: 1, b: [y]}, containers: [{name: vllm, young: {c: {d: 1, e: 2}}}]}`),
		},
		"Mistyped": {
			reason:   "What cannot be merged is the service's, so that its error has the service's path.",
			profiles: container(`env: [{name: A, value: a}], image: a, args: [--a]`),
			spec:     with(`env: [{value: b}], image: 5, args: [1]`),
			want:     with(`env: [{value: b}], image: 5, args: [1]`),
		},
		"Args": {
			reason:   "Args are merged flag by flag.",
			profiles: container(`args: [--a=1, --b, "2"]`),
			spec:     with(`args: [model, --b=3, --c]`),
			want:     with(`args: [model, --a=1, --b=3, --c]`),
		},
		"ArgsAndCommand": {
			reason:   "Flags of the profile's command are flags, too.",
			profiles: container(`command: [vllm, serve, m, --a=1, --b=2]`),
			spec:     with(`args: [--a=3]`),
			want:     with(`command: [vllm, serve, m], args: [--b=2, --a=3]`),
		},
		"Command": {
			reason:   "A command of the service is a whole command line.",
			profiles: container(`command: [vllm, serve], args: [--a=1]`),
			spec:     with(`command: [bash, -c, exec vllm serve m]`),
			want:     with(`command: [bash, -c, exec vllm serve m]`),
		},
		"CommandAndArgs": {
			reason:   "So its args are those of the service alone.",
			profiles: container(`command: [vllm, serve], args: [--a=1]`),
			spec:     with(`command: [other], args: [--b]`),
			want:     with(`command: [other], args: [--b]`),
		},
		"NoArgs": {
			reason:   "A null leaves out the args of the profile.",
			profiles: container(`command: [vllm, serve], args: [--a=1]`),
			spec:     with(`args: null`),
			want:     with(`command: [vllm, serve]`),
		},
		"Leader": {
			reason:   "What the service says in its template holds for the profile's leaders.",
			profiles: `[{name: p, roles: [{componentType: worker, template: {spec: {containers: [{name: vllm, image: a}]}}, leaderTemplate: {spec: {containers: [{name: vllm, image: b}]}}}]}]`,
			spec:     with(`env: [{name: A, value: a}]`),
			want:     `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: a, env: [{name: A, value: a}]}]}}, leaderTemplate: {spec: {containers: [{name: vllm, image: b, env: [{name: A, value: a}]}]}}}]}`,
		},
		"OwnLeader": {
			reason:   "A leaderTemplate of the service is put over the profile's template.",
			profiles: container(`image: a`),
			spec:     `{profileName: p, roles: [{name: w, componentType: worker, leaderTemplate: {spec: {containers: [{name: vllm, stdin: true}]}}}]}`,
			want:     `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: a}]}}, leaderTemplate: {spec: {containers: [{name: vllm, image: a, stdin: true}]}}}]}`,
		},
		"NoLeader": {
			reason:   "A null leaves out the profile's leaderTemplate.",
			profiles: `[{name: p, roles: [{componentType: worker, template: {spec: {a: 1}}, leaderTemplate: {spec: {b: 2}}}]}]`,
			spec:     `{profileName: p, roles: [{name: w, componentType: worker, leaderTemplate: null}]}`,
			want:     `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {a: 1}}}]}`,
		},
		"Odd": {
			reason:   "What is no role is left to the decoder.",
			profiles: container(`image: a`),
			spec:     `{profileName: p, roles: [x, {componentType: 5}, null]}`,
			want:     `{profileName: p, roles: [x, {componentType: 5}, null]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, all := document(t, tc.spec), profiles(t, tc.profiles)
			got, _, errs := servingprofile.Apply(spec, all)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(kube.AsMap(document(t, tc.want)), kube.AsMap(got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(kube.AsMap(document(t, tc.spec)), kube.AsMap(spec)); diff != "" {
				t.Errorf("the service was changed: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(text(t, profiles(t, tc.profiles)), text(t, all)); diff != "" {
				t.Errorf("the profiles were changed: -want +got:\n%s", diff)
			}
		})
	}
}

func text(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestRefusals(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`{name: p%02d, roles: [{componentType: worker}]}`, i)
	}
	cases := map[string]struct {
		reason   string
		profiles string
		spec     string
		want     []string
	}{
		"Unknown": {
			reason:   "An unknown profile is refused with the list of those that exist.",
			profiles: `[{name: vllm, roles: [{componentType: worker}]}, {name: sglang, roles: [{componentType: worker}]}]`,
			spec:     `{profileName: vlm}`,
			want:     []string{`spec.profileName: Invalid value: "vlm": must be one of the profiles that the platform team has set in the Input: sglang, vllm (did you mean "vllm"?)`},
		},
		"Many": {
			reason:   "The list is bounded. What is meant may be beyond it.",
			profiles: `[` + strings.Join(many, ", ") + `]`,
			spec:     `{profileName: xp39}`,
			want: []string{`spec.profileName: Invalid value: "xp39": must be one of the profiles that the platform team has set in the Input: p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15, ` +
				`p16, p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31 and 8 more (did you mean "p39"?)`},
		},
		"NotNear": {
			reason:   "Nothing is meant that resembles no profile.",
			profiles: `[{name: vllm, roles: [{componentType: worker}]}, {name: sglang, roles: [{componentType: worker}]}]`,
			spec:     `{profileName: tensorrt}`,
			want:     []string{`spec.profileName: Invalid value: "tensorrt": must be one of the profiles that the platform team has set in the Input: sglang, vllm`},
		},
		"None": {
			reason:   "Without profiles in the Input, none can be named.",
			profiles: `[]`,
			spec:     `{profileName: p}`,
			want:     []string{`spec.profileName: Invalid value: "p": must be left out until the platform team sets profiles in the Input of the Composition`},
		},
		"Directives": {
			reason:   "A template says what is wanted, and not how to merge it.",
			profiles: container(`image: a`),
			spec:     `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {$retainKeys: [x], containers: [{name: vllm, $patch: delete}], $setElementOrder/volumes: []}}, leaderTemplate: {$deleteFromPrimitiveList/x: []}}]}`,
			want: []string{
				`spec.roles[0].template.spec.$retainKeys: Forbidden: is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have`,
				`spec.roles[0].template.spec.$setElementOrder/volumes: Forbidden: is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have`,
				`spec.roles[0].template.spec.containers[0].$patch: Forbidden: is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have`,
				`spec.roles[0].leaderTemplate.$deleteFromPrimitiveList/x: Forbidden: is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have`,
			},
		},
		"Script": {
			reason:   "A shell would ignore the service's args.",
			profiles: container(`command: [bash, -c], args: [exec vllm serve m]`),
			spec:     with(`args: [--a]`),
			want:     []string{`spec.roles[0].template.spec.containers[0].args: Forbidden: cannot be merged with the command line of profile p: it is a shell's script, into which no arguments can be put; set command, which replaces the profile's`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, a, errs := servingprofile.Apply(document(t, tc.spec), profiles(t, tc.profiles))
			if a != nil {
				t.Error("want no profile to be applied")
			}
			var got []string
			for _, e := range errs {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWithTemplate shows which profiles an error advises.
func TestWithTemplate(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`{name: p%02d, roles: [{componentType: decoder, template: {}}]}`, 39-i)
	}
	for name, tc := range map[string]struct{ reason, profiles, want string }{
		"Sorted":   {"Only those that have the role with a template, in the order of their names.", `[{name: c, roles: [{componentType: decoder, template: {}}]}, {name: b, roles: [{componentType: worker, template: {}}]}, {name: a, roles: [{componentType: prefiller}, {componentType: decoder, template: {}}]}]`, "a, c"},
		"Leader":   {"A leaderTemplate is none for workers.", `[{name: a, roles: [{componentType: decoder, leaderTemplate: {}}]}]`, ""},
		"Many":     {"The list is bounded.", `[` + strings.Join(many, ", ") + `]`, "p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31 and 8 more"},
		"Profiles": {"There may be none at all.", `[]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := servingprofile.WithTemplate(profiles(t, tc.profiles), "decoder"); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestHash shows that the hash changes with what the profile gives this service, and with nothing else.
func TestHash(t *testing.T) {
	hash := func(profile, spec string) string {
		_, a, errs := servingprofile.Apply(document(t, spec), profiles(t, profile))
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		return a.Hash
	}
	of := func(image, decoder string) string {
		return `[{name: p, roles: [{componentType: worker, template: {spec: {containers: [{image: ` + image + `, name: vllm}]}}}, {componentType: decoder, template: {spec: {hostname: ` + decoder + `}}}]}]`
	}
	first := hash(of("a", "x"), with(`stdin: true`))
	for name, tc := range map[string]struct {
		reason string
		got    string
		same   bool
	}{
		"Same":    {"The order of fields does not matter, nor does what the service says.", hash(of("a", "x"), with(`tty: true`)), true},
		"Unused":  {"What the service does not use does not matter.", hash(of("a", "z"), with(`stdin: true`)), true},
		"Changed": {"Another image is another hash.", hash(of("b", "x"), with(`stdin: true`)), false},
	} {
		if (tc.got == first) != tc.same {
			t.Errorf("%s: %s Got %s and %s", name, tc.reason, first, tc.got)
		}
	}
}

func TestOrigins(t *testing.T) {
	spec, a, errs := servingprofile.Apply(
		document(t, `{profileName: p, roles: [{name: w, componentType: worker, template: {spec: {nodeSelector: {a.b/c: x}, containers: [{name: vllm, args: [m, --b=2], env: [{name: A, value: b}], volumeMounts: []}]}}}]}`),
		profiles(t, worker(`{nodeSelector: {d: z}, containers: [{name: vllm, image: i, args: [--a=1, --b=1], env: [{name: A, value: a}, {name: B, value: b}]}]}`)),
	)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	var got []string
	for _, o := range servingprofile.Origins(spec, a) {
		got = append(got, o.Path+" "+o.Value+" "+o.Profile)
	}
	want := []string{
		`spec.roles[0].componentType "worker" `,
		`spec.roles[0].name "w" `,
		`spec.roles[0].template.spec.containers[0].args[0] "m" `,
		`spec.roles[0].template.spec.containers[0].args[1] "--a=1" p`,
		`spec.roles[0].template.spec.containers[0].args[2] "--b=2" `,
		`spec.roles[0].template.spec.containers[0].env[0].name "A" `,
		`spec.roles[0].template.spec.containers[0].env[0].value "b" `,
		`spec.roles[0].template.spec.containers[0].env[1].name "B" p`,
		`spec.roles[0].template.spec.containers[0].env[1].value "b" p`,
		`spec.roles[0].template.spec.containers[0].image "i" p`,
		`spec.roles[0].template.spec.containers[0].name "vllm" `,
		`spec.roles[0].template.spec.containers[0].volumeMounts [] `,
		`spec.roles[0].template.spec.nodeSelector[a.b/c] "x" `,
		`spec.roles[0].template.spec.nodeSelector.d "z" p`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	_, a, errs := servingprofile.Apply(
		document(t, with(`env: [{name: X, value: z}], resources: {limits: {gpu: 2}}`)),
		profiles(t, container(`image: i, env: [{name: A, value: a}], resources: {limits: {memory: 1Gi, gpu: 1}}`)),
	)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	const mine, merged = " (this comes from profile p)", " (in the service merged with profile p)"
	for path, want := range map[string]string{
		"spec.roles[0].template.spec.containers[0].image":                    mine,
		"spec.roles[0].template.spec.containers[0].env[0].value":             mine,
		"spec.roles[0].template.spec.containers[0].env[1].value":             "",
		"spec.roles[0].template.spec.containers[0].env":                      merged,
		"spec.roles[0].template.spec.containers[0].resources.limits[memory]": mine,
		"spec.roles[0].template.spec.containers[0].resources.limits[gpu]":    "",
		"spec.roles[0].template.spec.containers[0].command":                  merged,
		"spec.roles[0].name":   "",
		"spec.roles[9].name":   "",
		"spec.roles":           "",
		"spec.rolesx[0].image": "",
		"metadata.name":        "",
	} {
		e := field.Invalid(field.NewPath("x"), "", "wrong")
		e.Field = path
		a.Explain(field.ErrorList{e})
		if diff := cmp.Diff("wrong"+want, e.Detail); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
}
