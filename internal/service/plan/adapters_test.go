package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// adapted is a service of one replica with a claim for adapters.
func adapted(model, container string) string {
	return "adapterCache: {size: 20Gi}\n" + model + "\nroles:\n- {name: w, componentType: worker, template: {spec: {containers: [{name: vllm, " + container + "}]}}}\n"
}

// TestAdapters shows what engines get, and the name of the model that adapters have.
func TestAdapters(t *testing.T) {
	type want struct {
		Model  string
		Args   []string
		Mounts []corev1.VolumeMount
		Env    []string
	}
	adapters := corev1.VolumeMount{Name: "adapters", MountPath: "/mnt/adapters", ReadOnly: true}
	model := func(subPath string) corev1.VolumeMount {
		return corev1.VolumeMount{Name: "model", MountPath: "/mnt/models", ReadOnly: true, SubPath: subPath}
	}
	env := []string{"VLLM_ALLOW_RUNTIME_LORA_UPDATING=true", "VLLM_LORA_RESOLVER_CACHE_DIR=/mnt/adapters"}
	cases := map[string]struct {
		reason, spec string
		want         want
	}{
		"Template": {
			reason: "The template names the model.", spec: adapted("", `image: vllm, command: [vllm, serve], args: [Qwen/Qwen3-8B, --enable_lora], env: [{name: VLLM_ALLOW_RUNTIME_LORA_UPDATING, value: "1"}]`),
			want: want{
				Model: "Qwen/Qwen3-8B", Args: []string{"Qwen/Qwen3-8B", "--enable_lora"}, Mounts: []corev1.VolumeMount{adapters},
				Env: []string{"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1", "VLLM_LORA_RESOLVER_CACHE_DIR=/mnt/adapters"},
			},
		},
		"Hub": {
			reason: "Engines download the model by its name.", spec: adapted(`model: {uri: "hf://Qwen/Qwen3-8B", name: qwen, revision: main}`, `image: "vllm/vllm-openai:v0.9.0"`),
			want: want{
				Model: "Qwen/Qwen3-8B", Args: []string{"--model", "Qwen/Qwen3-8B", "--served-model-name", "qwen", "--revision", "main", "--enable-lora"},
				Mounts: []corev1.VolumeMount{adapters}, Env: env,
			},
		},
		"Cache": {
			reason: "The path is the same for all revisions.", spec: adapted(`model: {uri: "hf://Qwen/Qwen3-8B", revision: main, cache: {size: 40Gi}}`, `image: vllm`),
			want: want{
				Model: "/mnt/models", Args: []string{"--model", "/mnt/models", "--served-model-name", "Qwen/Qwen3-8B", "--enable-lora"},
				Mounts: []corev1.VolumeMount{model("qwen3-8b-333aff3ef395"), adapters}, Env: env,
			},
		},
		"Claim": {
			reason: "So is that of a claim.", spec: adapted(`model: {uri: "pvc://weights/qwen/8b"}`, `image: vllm`),
			want: want{
				Model: "/mnt/models", Args: []string{"--model", "/mnt/models", "--served-model-name", "8b", "--enable-lora"},
				Mounts: []corev1.VolumeMount{model("qwen/8b"), adapters}, Env: env,
			},
		},
		"Image": {
			reason: "Not every release of Kubernetes mounts a directory of an image.", spec: adapted(`model: {uri: "oci://ghcr.io/acme/qwen:8b", path: models}`, `image: vllm`),
			want: want{
				Model: "/mnt/models/models", Args: []string{"--model", "/mnt/models/models", "--served-model-name", "qwen", "--enable-lora"},
				Mounts: []corev1.VolumeMount{model(""), adapters}, Env: env,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, "")
			if err != nil {
				t.Fatal(err)
			}
			engine := p.Roles[0].Leader.engine()
			got := want{Model: p.Adapters.ModelName, Args: engine.Args, Mounts: engine.VolumeMounts}
			for _, e := range engine.Env {
				got.Env = append(got.Env, e.Name+"="+e.Value)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			volumes := p.Roles[0].Leader.Spec.Volumes
			if claim := volumes[len(volumes)-1].PersistentVolumeClaim; claim == nil || claim.ClaimName != p.Adapters.ClaimName || !claim.ReadOnly {
				t.Errorf("the volume is %+v, and the claim %s", volumes[len(volumes)-1], p.Adapters.ClaimName)
			}
			if p.Roles[0].names.Complete || !p.Roles[0].names.CacheAlone {
				t.Error("the engine is not said to answer the names of its command and those of adapters in the claim")
			}
		})
	}
}

// TestAdaptersRefused shows what cannot load adapters at run time, and what a tenant may not have.
func TestAdaptersRefused(t *testing.T) {
	const at = "spec.roles[0].template.spec.containers[0]."
	const remedy = "leave spec.adapterCache out, and list adapters in the engine's args, which spec.rollout paces"
	serve := func(args string) string { return adapted("", `image: vllm, command: [vllm, serve], args: [m`+args+`]`) }
	onNodes := func(spec string) string {
		return strings.Replace(spec, "componentType: worker, ", "componentType: worker, multinode: {nodeCount: 2, launcher: VLLMDataParallel}, ", 1)
	}
	cases := map[string]struct{ reason, spec, err string }{
		"SGLang": {
			reason: "Only vLLM has the resolver.", spec: adapted("", `image: sglang, command: [python3, -m, sglang.launch_server]`),
			err: at + `image: Invalid value: "sglang": must be vLLM, because only vLLM is known to load adapters of spec.adapterCache at run time: ` + remedy,
		},
		"Release": {
			reason: "Earlier releases have none.", spec: adapted("", `image: "vllm/vllm-openai:v0.8.5", args: [--model=m]`),
			err: at + `image: Invalid value: "vllm/vllm-openai:v0.8.5": must be vLLM v0.9.0 or later, which loads adapters of spec.adapterCache at run time: or ` + remedy,
		},
		"OtherProgram": {
			reason: "A flag may be unknown to another program.", spec: adapted("", `image: vllm, command: [python3, serve.py]`),
			err: at + `command: Invalid value: "python3 serve.py": it is unknown whether "python3" takes --enable-lora, which spec.adapterCache needs: start vLLM, or leave spec.adapterCache out`,
		},
		"Off": {
			reason: "A flag contradicts.", spec: serve(", --no-enable-lora"),
			err: at + `args: Invalid value: "m --no-enable-lora": spec.adapterCache needs LoRA adapters: leave --no-enable-lora out, or leave spec.adapterCache out`,
		},
		"NoModel": {
			reason: "An adapter has to name the model.", spec: adapted("", `image: vllm, command: [vllm, serve], args: [$(MODEL)]`),
			err: at + `args: Invalid value: "vllm serve $(MODEL) --enable-lora": must name the model in plain text, because each adapter in spec.adapterCache has to have it as base_model_name_or_path: write it behind vllm serve, or set spec.model`,
		},
		"Mounted": {
			reason: "Two volumes cannot be mounted there.", spec: strings.Replace(serve(""), "args: [m]", "args: [m], volumeMounts: [{name: v, mountPath: /mnt/adapters/x}]", 1),
			err: at + `volumeMounts[0].mountPath: Invalid value: "/mnt/adapters/x": must be another path: spec.adapterCache is mounted there`,
		},
		"RootPath": {
			reason: "It answers below that path, too.", spec: serve(", --root-path=/x"),
			err: at + `args[1]: Forbidden: --root-path must be left out with spec.adapterCache: clients could load adapters below that path`,
		},
		"Servers": {
			reason: "vLLM does not start.", spec: serve(", --api-server-count=2"),
			err: at + `args[1]: Invalid value: "2": vLLM loads adapters of spec.adapterCache only with one API server: set it to 1`,
		},
		"Ranks": {
			reason: "Each rank gets an API server.", spec: serve(", -dp, '2'"),
			err: at + `args[1]: Invalid value: 2: vLLM loads adapters of spec.adapterCache only with one API server: add --api-server-count 1`,
		},
		"RanksOfNodes": {
			reason: "The launcher makes one rank of each node as many as there are nodes.", spec: onNodes(serve(", --data-parallel-size-local=1")),
			err: at + `args[1]: Invalid value: 2: vLLM loads adapters of spec.adapterCache only with one API server: add --api-server-count 1 in a leaderTemplate, because workers serve no requests`,
		},
		"OneServer":    {reason: "All ranks may have one.", spec: serve(", -dp, '2', --api-server-count, '1'")},
		"ExternalRank": {reason: "An engine of one rank has one.", spec: serve(", -dp, '2', --data-parallel-rank, '1'")},
		"Models": {
			reason: "An adapter fits one model.", spec: serve("") + "- {name: x, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm, args: [--model, other]}]}}}",
			err: `spec.roles[1].template: Invalid value: "other": must have the same model as all roles, because an adapter in spec.adapterCache fits one: another role has m`,
		},
		"NoContainer": {
			reason: "A template may be broken.", spec: strings.Replace(serve(""), "{name: vllm, image: vllm, command: [vllm, serve], args: [m]}", "", 1),
			err: `spec.roles[0].template.spec.containers: Required value: a pod template has at least one container`,
		},
		"Class": {
			reason: "The policy is that of caches.", spec: strings.Replace(serve(""), "20Gi", "20Gi, storageClassName: gold", 1),
			err: `spec.adapterCache.storageClassName: Invalid value: "gold": must be left out: none is allowed in namespace ns (modelCaches.allowedStorageClassNames in the Composition's input)`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := tc.spec
			if name == "Mounted" {
				spec = strings.Replace(spec, "{spec: {", "{spec: {volumes: [{name: v, emptyDir: {}}], ", 1)
			}
			got := ""
			if _, err := build(t, spec, ""); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.err, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdapterVariables shows the variables with which vLLM finds no adapter.
func TestAdapterVariables(t *testing.T) {
	const at = "spec.roles[0].template.spec.containers[0].env"
	const message = "].value: with this value, vLLM finds no adapter of spec.adapterCache: "
	p, err := build(t, adapted("", `image: vllm, command: [vllm, serve, m], env: [
		{name: VLLM_ALLOW_RUNTIME_LORA_UPDATING, value: "0"}, {name: VLLM_LORA_RESOLVER_CACHE_DIR, value: /lora}, {name: VLLM_PLUGINS, value: ascend}, {name: A, value: b}]`), "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range p.Warnings {
		if strings.HasPrefix(w.Path, at) {
			got = append(got, w.Path+": "+w.Message)
		}
	}
	want := []string{at + "[0" + message + "leave it out", at + "[1" + message + "leave it out", at + "[2" + message + "add lora_filesystem_resolver, or leave it out"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	p, err = build(t, adapted("", `image: vllm, command: [vllm, serve, m], env: [
		{name: VLLM_ALLOW_RUNTIME_LORA_UPDATING, value: "True"}, {name: VLLM_LORA_RESOLVER_CACHE_DIR, value: /mnt/adapters/}, {name: VLLM_PLUGINS, value: "ascend,lora_filesystem_resolver"}]`), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Warnings {
		if strings.HasPrefix(w.Path, at) {
			t.Errorf("warning %v", w)
		}
	}
}

// TestAdaptersOfAll proves that all pods of all roles that serve mount the claim.
func TestAdaptersOfAll(t *testing.T) {
	p, err := build(t, `
adapterCache: {size: 20Gi}
model: {uri: "hf://Qwen/Qwen3-8B"}
roles:
- {name: p, componentType: prefiller, template: {spec: {containers: [{name: vllm, image: vllm}]}}}
- name: d
  componentType: decoder
  multinode: {nodeCount: 2, launcher: VLLM}
  template: {spec: {containers: [{name: vllm, image: vllm}]}}
  leaderTemplate: {spec: {containers: [{name: vllm, image: vllm}]}}
`, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Roles {
		for _, pod := range []*PodTemplate{&r.Leader, &r.Worker} {
			if n := len(pod.Spec.Volumes); n != 1 || !strings.Contains(strings.Join(pod.words(), " "), "--enable-lora") {
				t.Errorf("role %s has %d volumes, and runs %q", r.Name, n, pod.words())
			}
		}
	}
}

// TestWarnOfUnusedAdapters warns where no request can ask for an adapter by the name of a model.
func TestWarnOfUnusedAdapters(t *testing.T) {
	warning := []Warning{{"spec.adapterCache", "no request gets to an adapter by the name of its InferenceModel, because the router does not go by the names of models: " +
		"it needs servedModels, prefill and decode, an endpointPickerConfig of llm-d.ai, or an endpoint picker of dialect LLMD in the Composition's input"}}
	worker := adapted(`model: {uri: "hf://Qwen/Qwen3-8B"}`, "image: vllm")
	const config = `endpointPickerConfig: "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins: [{type: max-score-picker}]\nschedulingProfiles: [{name: default, plugins: [{pluginRef: max-score-picker}]}]"`
	cases := map[string]struct {
		reason, spec, input string
		want                []Warning
	}{
		"Default":      {"The default endpoint picker knows no names.", worker + "- {name: r, componentType: router}", "", warning},
		"ServedModels": {"Names of the service's own choose the other one.", worker + "- {name: r, componentType: router, servedModels: [{name: Qwen/Qwen3-8B}]}", "", nil},
		"Config":       {"So does a configuration of its dialect.", worker + "- {name: r, componentType: router, " + config + "}", "", nil},
		"Input":        {"So does the platform team.", worker + "- {name: r, componentType: router}", "endpointPicker: {dialect: LLMD, image: x}", nil},
		"NoRouter":     {"Without a router, requests ask engines for adapters by their own names.", worker, "", nil},
		"NoCache":      {"There are no adapters.", strings.Replace(worker, "adapterCache: {size: 20Gi}\n", "", 1) + "- {name: r, componentType: router}", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, tc.input)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(p.Warnings, func(w Warning) bool { return w.Path != "spec.adapterCache" })
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdaptersName proves that the claim of a tenant has a name of its own.
func TestAdaptersName(t *testing.T) {
	c := &v1alpha1.AdapterCache{}
	name := func(namespace string) string {
		return adaptersOf(c, naming.Identity{Name: strings.Repeat("s", 60), Namespace: namespace}).ClaimName
	}
	if one, other := name("one"), name("other"); one == other || len(one) > naming.MaxLabel {
		t.Errorf("the claims are %s and %s", one, other)
	}
}

// TestMaxRank shows which rank an adapter may have so that all engines serve it.
func TestMaxRank(t *testing.T) {
	const image = `image: "vllm/vllm-openai:v0.19.0", `
	cases := map[string]struct {
		reason, spec string
		want         int32
	}{
		"Default": {"vLLM's own.", adapted("", image+`args: [--model, M]`), 16},
		"Flag":    {"The engines' command says it.", adapted("", image+`args: [--model, M, --max-lora-rank=64]`), 64},
		"Least": {
			"An adapter has to fit all engines.",
			adapted("", image+`args: [--model, M, --max-lora-rank, "64"]`) + `- {name: v, componentType: worker, template: {spec: {containers: [{name: vllm, ` + image + `args: [--model, M, --max-lora-rank, "32"]}]}}}`, 32,
		},
		"Variable": {"The value is not known.", adapted("", image+`args: [--model, M, --max-lora-rank, $(RANK)]`), 0},
		"File":     {"A file of flags may have it.", adapted("", image+`args: [--model, M, --config, f.yaml]`), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Adapters.MaxRank; got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
