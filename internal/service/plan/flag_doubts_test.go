package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// flagDoubts returns the warnings about the flags of a worker's engine.
func flagDoubts(t *testing.T, container string, nodes int32, launcher v1alpha1.Launcher) []Warning {
	t.Helper()
	role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, "{spec: {containers: [{name: engine, readinessProbe: {exec: {command: [ok]}}, "+container+"}]}}")}
	if nodes > 1 {
		role.Multinode = multinode(nodes, launcher)
	}
	_, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return warnings
}

// TestRefusedSizes plans an engine whose ranks cannot be divided among its nodes. The launcher refuses it, and no
// warning is added.
func TestRefusedSizes(t *testing.T) {
	for _, nodes := range []int32{2, 3, 100} {
		role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Multinode: multinode(nodes, v1alpha1.LauncherVLLMDataParallel)}
		role.Template = document(t, "{spec: {containers: [{name: engine, image: 'vllm/vllm-openai:v0.11.0', readinessProbe: {exec: {command: [ok]}}, command: [vllm, serve], args: [m, --data-parallel-size, \"1\"]"+gpus8+"}]}}")
		_, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
		if len(errs) == 0 || len(warnings) > 0 {
			t.Errorf("%d nodes: want the launcher's refusal alone, got errors %v and warnings %v", nodes, errs, warnings)
		}
	}
}

const (
	ofEngine = "spec.roles[0].template.spec.containers[0]"
	gpus4    = `, resources: {limits: {nvidia.com/gpu: 4}}`
	gpus8    = `, resources: {limits: {nvidia.com/gpu: 8}}`
)

// TestWarnOfFlags plans engines with flags that their release does not have.
func TestWarnOfFlags(t *testing.T) {
	cases := map[string]struct {
		reason    string
		container string
		want      []Warning
	}{
		"Args": {
			container: `image: "vllm/vllm-openai:v0.19.0", command: [vllm, serve], args: [m, --gpu-memory-utilisation, "0.9"]`,
			want:      []Warning{{ofEngine + ".args[1]", "vLLM v0.19.0 has no flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"Command": {
			container: `image: "vllm/vllm-openai:v0.19.0", command: [vllm, serve, m, --gpu-memory-utilisation, "0.9"]`,
			want:      []Warning{{ofEngine + ".command[3]", "vLLM v0.19.0 has no flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"Script": {
			container: `image: "vllm/vllm-openai:v0.19.0", command: [sh, -c], args: ["vllm serve m --gpu-memory-utilisation 0.9 $MORE"]`,
			want:      []Warning{{ofEngine + ".args[0]", "vLLM v0.19.0 has no flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"Entrypoint": {
			container: `image: "vllm/vllm-openai:v0.10.0", args: [--model, m, --attention-backend, FLASH_ATTN]`,
			want:      []Warning{{ofEngine + ".args[2]", "vLLM v0.10.0 has no flag --attention-backend: v0.16.0 has it, so use a newer image or leave the flag out"}},
		},
		"SGLang": {
			container: `image: "lmsysorg/sglang:v0.5.9-cu130", command: [python3, -m, sglang.launch_server], args: [--model-path, m, --tp_size, "1"]`,
			want:      []Warning{{ofEngine + ".args[2]", "SGLang v0.5.9 has no flag --tp_size: did you mean --tp-size?"}},
		},
		"OtherImage": {
			reason:    "The tag of another image is its own, and plugins may add flags.",
			container: `image: "ghcr.io/acme/engine:v0.10.0", command: [vllm, serve], args: [m, --attention-backend, FLASH_ATTN, --my-flag]`,
		},
		"Digest": {
			container: `image: "vllm/vllm-openai@sha256:0000", command: [vllm, serve], args: [m, --attention-backend, FLASH_ATTN, --num-scheduler-steps, "2"]`,
		},
		"OtherProgram":     {container: `image: "vllm/vllm-openai:v0.19.0", command: [python3, -m, mine.server], args: [--anything]`},
		"UnreadableScript": {container: `image: "vllm/vllm-openai:v0.19.0", command: [sh, -c], args: ["if true; then vllm serve m --anything; fi"]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, flagDoubts(t, tc.container, 1, "")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfSizes plans engines on GPUs.
func TestWarnOfSizes(t *testing.T) {
	const (
		vllm   = `image: x, command: [vllm, serve], args: `
		sglang = `image: x, command: [python3, -m, sglang.launch_server], args: `
	)
	cases := map[string]struct {
		reason    string
		container string
		nodes     int32
		launcher  v1alpha1.Launcher
		// path below the engine's container, and want is the message there. It is empty if there is none.
		path, want string
	}{
		"OneGPU":   {container: vllm + `[m], resources: {limits: {nvidia.com/gpu: 1}}`},
		"NoGPU":    {container: vllm + `[m, -tp, "8"]`},
		"Fits":     {container: vllm + `[m, -tp, "2", -pp, "2"]` + gpus4},
		"NoSize":   {container: vllm + `[m]` + gpus4, path: ".args", want: "tensor x pipeline x data parallel is 1 x 1 x 1, so vLLM uses 1 of the 4 GPUs of the pod (nvidia.com/gpu): set --tensor-parallel-size to 4, or request fewer GPUs"},
		"TooLarge": {container: vllm + `[m, --tensor-parallel-size=8]` + gpus4, path: ".args[1]", want: "tensor x pipeline x data parallel is 8 x 1 x 1, so vLLM needs 8 GPUs, and the pod has 4 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"TooSmall": {container: vllm + `[m, -tp, "2", -pp, "2"]` + gpus8, path: ".args[1]", want: "tensor x pipeline x data parallel is 2 x 2 x 1, so vLLM uses 4 of the 8 GPUs of the pod (nvidia.com/gpu): set --tensor-parallel-size to 4, or request fewer GPUs"},
		"Uneven":   {container: vllm + `[m, -pp, "3"]` + gpus4, path: ".args", want: "tensor x pipeline x data parallel is 1 x 3 x 1, so vLLM uses 3 of the 4 GPUs of the pod (nvidia.com/gpu): set sizes that use them all, or request fewer GPUs"},
		"AMD":      {container: vllm + `[m], resources: {requests: {amd.com/gpu: 2}, limits: {amd.com/gpu: 2}}`, path: ".args", want: "tensor x pipeline x data parallel is 1 x 1 x 1, so vLLM uses 1 of the 2 GPUs of the pod (amd.com/gpu): set --tensor-parallel-size to 2, or request fewer GPUs"},
		"Shell":    {container: `image: x, command: [sh, -c, "vllm serve m -tp 8"]` + gpus4, path: ".command[2]", want: "tensor x pipeline x data parallel is 8 x 1 x 1, so vLLM needs 8 GPUs, and the pod has 4 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"TPU":      {reason: "A chip may be two devices.", container: vllm + `[m], resources: {limits: {google.com/tpu: 4}}`},

		"Visible":      {container: vllm + `[m], env: [{name: CUDA_VISIBLE_DEVICES, value: "0"}]` + gpus4},
		"Variable":     {container: vllm + `[m, -tp, $(TP)]` + gpus4},
		"MoreFlags":    {container: vllm + `[m, $(MORE)]` + gpus4},
		"ConfigFile":   {container: vllm + `[--config, /etc/vllm.yaml]` + gpus4},
		"TwoInOneWord": {reason: "That is told, so this is not.", container: vllm + `[m, "--tensor-parallel-size 4"]` + gpus4, path: ".args[1]", want: "no shell splits this element into a flag and its value, so the engine cannot parse it: write two elements, --tensor-parallel-size and 4, without quotes around the value, or one of the form --tensor-parallel-size=value"},

		"DataParallel":      {container: vllm + `[m, -tp, "2", -dp, "4"]` + gpus8},
		"DataParallelMore":  {container: vllm + `[m, -tp, "2", -dp, "8"]` + gpus8, path: ".args[1]", want: "tensor x pipeline x data parallel is 2 x 1 x 8, so vLLM needs 16 GPUs, and the pod has 8 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"DataParallelLocal": {container: vllm + `[m, -dp, "16", -dpl, "8", -dpa, 10.0.0.1]` + gpus8},
		"LocalTooMany":      {container: vllm + `[m, -dp, "16", -dpl, "8"]` + gpus4, path: ".args", want: "tensor x pipeline x local data parallel is 1 x 1 x 8, so vLLM needs 8 GPUs, and the pod has 4 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"ExternalRank":      {container: vllm + `[m, -dp, "16", --data-parallel-rank, "3", -tp, "4"]` + gpus4},
		"RayRanks":          {container: vllm + `[m, -dp, "16", --data-parallel-backend=ray]` + gpus4},
		"RayExecutor":       {reason: "Ray may know of other nodes.", container: vllm + `[m, -tp, "16", --distributed-executor-backend=ray]` + gpus8},
		"Context":           {container: vllm + `[m, -tp, "4", -pcp, "2"]` + gpus8},

		"Launcher":                 {container: vllm + `[m, -tp, "8", -pp, "2"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherVLLM},
		"LauncherIdle":             {container: vllm + `[m, -tp, "8"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherVLLM, path: ".args[1]", want: "tensor x pipeline x data parallel is 8 x 1 x 1, so vLLM uses 8 of the 16 GPUs of a replica with 2 pods (nvidia.com/gpu): set --tensor-parallel-size to 16, or request fewer GPUs"},
		"LauncherRay":              {container: vllm + `[m, -tp, "8", -pp, "4"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherRay, path: ".args[1]", want: "tensor x pipeline x data parallel is 8 x 4 x 1, so vLLM needs 32 GPUs, and a replica with 2 pods has 16 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"LauncherDataParallel":     {container: vllm + `[m, --data-parallel-size-local, "8"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherVLLMDataParallel},
		"LauncherDataParallelAll":  {container: vllm + `[m, --data-parallel-size, "16"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherVLLMDataParallel},
		"LauncherDataParallelMore": {container: vllm + `[m, --data-parallel-size, "8", -tp, "4"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherVLLMDataParallel, path: ".args[3]", want: "tensor x pipeline x data parallel of each node is 4 x 1 x 4, so vLLM needs 16 GPUs, and each pod has 8 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"LauncherDataParallelIdle": {container: vllm + `[m, --data-parallel-size-local, "4"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherVLLMDataParallel, path: ".args", want: "tensor x pipeline x local data parallel is 1 x 1 x 4, so vLLM uses 4 of the 8 GPUs of each pod (nvidia.com/gpu): set --tensor-parallel-size to 2, or request fewer GPUs"},
		"None":                     {reason: "The commands tell the pods apart by themselves.", container: vllm + `[m, -tp, "8", --nnodes, "2", --node-rank, $(LWS_WORKER_INDEX)]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherNone},

		"SGLang":          {container: sglang + `[--model-path, m, --tp, "8"]` + gpus8},
		"SGLangIdle":      {container: sglang + `[--model-path, m]` + gpus8, path: ".args", want: "tensor x pipeline x data parallel is 1 x 1 x 1, so SGLang uses 1 of the 8 GPUs of the pod (nvidia.com/gpu): set --tensor-parallel-size to 8, or request fewer GPUs"},
		"SGLangData":      {container: sglang + `[--model-path, m, --dp, "8"]` + gpus8},
		"SGLangDataMore":  {container: sglang + `[--model-path, m, --tp-size, "4", --dp, "8"]` + gpus8, path: ".args[2]", want: "tensor x pipeline x data parallel is 4 x 1 x 8, so SGLang needs 32 GPUs, and the pod has 8 (nvidia.com/gpu): set smaller sizes, or request more GPUs"},
		"SGLangAttention": {container: sglang + `[--model-path, m, --tp, "8", --dp, "8", --enable-dp-attention]` + gpus8},
		"SGLangNodes":     {container: sglang + `[--model-path, m, --tp, "16"]` + gpus8, nodes: 2, launcher: v1alpha1.LauncherSGLang},
		"SGLangBase":      {container: sglang + `[--model-path, m, --base-gpu-id, "1"]` + gpus8},
		"SGLangHuge":      {container: sglang + `[--model-path, m, --tp, "99999999999999999999"]` + gpus8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want []Warning
			if tc.want != "" {
				want = []Warning{{ofEngine + tc.path, tc.want}}
			}
			if diff := cmp.Diff(want, flagDoubts(t, tc.container, tc.nodes, tc.launcher)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfNodes plans engines on two nodes without a launcher.
func TestWarnOfNodes(t *testing.T) {
	warning := func(engine, launcher string) []Warning {
		return []Warning{{"spec.roles[0].multinode.launcher", fmt.Sprintf("each of the 2 pods starts %s with the whole model, because nothing connects them: set launcher: %s, or tell the engine of the other nodes by its flags and $(LWS_LEADER_ADDRESS)", engine, launcher)}}
	}
	cases := map[string]struct {
		reason    string
		container string
		want      []Warning
	}{
		"VLLM":        {container: `image: x, command: [vllm, serve, m, -tp, "8"]`, want: warning("vLLM", "VLLM")},
		"SGLang":      {container: `image: x, command: [sglang, serve, --model-path, m]`, want: warning("SGLang", "SGLang")},
		"Told":        {container: `image: x, command: [vllm, serve, m, -n2, -r, $(LWS_WORKER_INDEX)]`},
		"ToldSGLang":  {container: `image: x, command: [sglang, serve, --model-path, m, --dist-init-addr, "$(LWS_LEADER_ADDRESS):5000"]`},
		"DataRanks":   {container: `image: x, command: [vllm, serve, m, --headless, --data-parallel-start-rank, $(RANK)]`},
		"Environment": {container: `image: x, command: [vllm, serve, m], env: [{name: VLLM_HOST_IP, value: $(LWS_LEADER_ADDRESS)}]`},
		"Script":      {container: `image: x, command: [sh, -c, "ray start --head && vllm serve m"]`},
		"File":        {container: `image: x, command: [vllm, serve, --config, /a.yaml]`},
		"Unknown":     {container: `image: x, command: [mine]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, flagDoubts(t, tc.container, 2, v1alpha1.LauncherNone)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfBalancing plans engines whose data-parallel ranks need somebody who spreads the requests.
func TestWarnOfBalancing(t *testing.T) {
	alone := func(arg, flag string) []Warning {
		return []Warning{{ofEngine + ".command[" + arg + "]", "requests come to the leader alone, and with " + flag + " it passes none on, so the ranks of other nodes get none: set launcher: VLLMDataParallel, with which it does"}}
	}
	ports := []Warning{{ofEngine + ".command[5]", "requests come to port 8000 alone, so the ranks on other ports get none: leave the flag out, and vLLM spreads them over all ranks"}}
	cases := map[string]struct {
		reason, args string
		nodes        int32
		want         []Warning
	}{
		"Rank":     {"Each node has an API server.", `, --data-parallel-rank, $(LWS_WORKER_INDEX)`, 2, alone("5", "--data-parallel-rank")},
		"External": {"So it has with this flag.", `, --nnodes=2, -dpe`, 2, alone("6", "--data-parallel-external-lb")},
		"Hybrid":   {"It spreads requests over its own ranks.", `, --data-parallel-hybrid-lb, -dpr, $(RANK)`, 2, alone("5", "--data-parallel-hybrid-lb")},
		"Ports":    {"Each rank has a port.", `, --data-parallel-multi-port-external-lb`, 1, ports},
		"OneNode":  {"The other ranks may be other roles.", `, --data-parallel-rank, '0'`, 1, nil},
		"Internal": {"The leader spreads them.", `, --data-parallel-address, $(LWS_LEADER_ADDRESS)`, 2, nil},
		"Headless": {"No pod gets requests.", `, --headless, -dpr, $(RANK)`, 2, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, flagDoubts(t, `image: x, command: [vllm, serve, m, -dp, "2"`+tc.args+`]`, tc.nodes, v1alpha1.LauncherNone)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGPUsOf counts the GPUs of a container. They are 0 if it is not known how many the engine uses.
func TestGPUsOf(t *testing.T) {
	cases := map[string]struct {
		container string
		want      int
	}{
		"Limits":   {`resources: {limits: {nvidia.com/gpu: 4}}`, 4},
		"Requests": {`resources: {requests: {amd.com/gpu: 2}}`, 2},
		"None":     {`resources: {limits: {cpu: 4}}`, 0},
		"Zero":     {`resources: {limits: {nvidia.com/gpu: 0}}`, 0},
		"Huge":     {`resources: {limits: {nvidia.com/gpu: 9E}}`, 0},
		"Two":      {`resources: {limits: {nvidia.com/gpu: 4, amd.com/gpu: 4}}`, 0},
		"Claims":   {`resources: {limits: {nvidia.com/gpu: 4}, claims: [{name: more}]}`, 0},
		"Visible":  {`resources: {limits: {nvidia.com/gpu: 4}}, env: [{name: CUDA_VISIBLE_DEVICES, value: "0"}]`, 0},
		"Modules":  {`resources: {limits: {habana.ai/gaudi: 4}}, env: [{name: HABANA_VISIBLE_MODULES, value: "0"}]`, 0},
		"Ranks":    {`resources: {limits: {nvidia.com/gpu: 4}}, env: [{name: VLLM_DP_SIZE, value: "4"}]`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, _, errs := readTemplate(document(t, "{spec: {resourceClaims: [{name: more, resourceClaimName: x}], containers: [{name: engine, image: x, "+tc.container+"}]}}"), rolePath(0).Child("template"))
			if p == nil {
				t.Fatal(errs)
			}
			if got, _ := gpusOf(p); got != tc.want {
				t.Errorf("want %d, got %d", tc.want, got)
			}
		})
	}
}

// TestWarnOfRay plans engines with launcher Ray, the default, in images with and without Ray.
func TestWarnOfRay(t *testing.T) {
	without := []Warning{{
		"spec.roles[0].multinode.launcher",
		`vllm/vllm-openai:v0.18.0 has no Ray, as of v0.18.0, so the pods end with "ray: not found": set launcher: VLLM, or use an image with Ray and another name`,
	}}
	cases := map[string]struct {
		reason, image string
		nodes         int32
		launcher      v1alpha1.Launcher
		want          []Warning
	}{
		"Without":  {"The image has no Ray.", "vllm/vllm-openai:v0.18.0", 2, v1alpha1.LauncherRay, without},
		"With":     {"It has.", "vllm/vllm-openai:v0.17.1", 2, v1alpha1.LauncherRay, nil},
		"Unknown":  {"The tag is no release.", "vllm/vllm-openai:latest", 2, v1alpha1.LauncherRay, nil},
		"Own":      {"An image of one's own may have Ray.", "acme/vllm-ray:v0.18.0", 2, v1alpha1.LauncherRay, nil},
		"Launcher": {"Nobody starts Ray.", "vllm/vllm-openai:v0.18.0", 2, v1alpha1.LauncherVLLM, nil},
		"OneNode":  {"Nobody starts Ray.", "vllm/vllm-openai:v0.18.0", 1, v1alpha1.LauncherRay, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := flagDoubts(t, "image: '"+tc.image+"', command: [vllm, serve], args: [m, --tensor-parallel-size, '8', --pipeline-parallel-size, '"+strconv.Itoa(int(tc.nodes))+"']"+gpus8, tc.nodes, tc.launcher)
			var rays []Warning
			for _, w := range got {
				if w.Path == "spec.roles[0].multinode.launcher" {
					rays = append(rays, w)
				}
			}
			if diff := cmp.Diff(tc.want, rays); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfLauncher plans engines with the launcher of another engine, or of a later release of vLLM.
func TestWarnOfLauncher(t *testing.T) {
	const named, arguments = "command: [vllm, serve], args: [m]", "args: [m]"
	cases := map[string]struct {
		reason, image, command string
		launcher               v1alpha1.Launcher
		want                   string
	}{
		"SGLangOfVLLM": {
			"The image starts vLLM.", "vllm/vllm-openai:v0.11.2", arguments, v1alpha1.LauncherSGLang,
			"vllm/vllm-openai:v0.11.2 starts vLLM, which does not have the flags of SGLang that this launcher adds: set launcher: VLLM",
		},
		"VLLMOfSGLang": {
			"The image has another engine.", "lmsysorg/sglang:v0.5.5", arguments, v1alpha1.LauncherVLLM,
			"lmsysorg/sglang:v0.5.5 seems to have SGLang, and this launcher is for vLLM: set launcher: SGLang",
		},
		"Named": {"The command tells that the image has vLLM, too.", "acme/sglang:v0.5.5", named, v1alpha1.LauncherVLLM, ""},
		"Old": {
			"The release has no nodes.", "vllm/vllm-openai:v0.10.1", named, v1alpha1.LauncherVLLM,
			"vLLM v0.10.1 has no flag --nnodes, which this launcher adds: use an image of a later release, or set launcher: Ray",
		},
		"OldRanks": {
			"The release has no ranks on other nodes.", "vllm/vllm-openai:v0.8.5", "command: [vllm, serve], args: [m, --data-parallel-size, '2']", v1alpha1.LauncherVLLMDataParallel,
			"vLLM v0.8.5 has no flag --data-parallel-address, which this launcher adds: use an image of a later release",
		},
		"Between": {"A release between two that differ may have the flag.", "vllm/vllm-openai:v0.11.0", named, v1alpha1.LauncherVLLM, ""},
		"New":     {"The release has it.", "vllm/vllm-openai:v0.11.2", named, v1alpha1.LauncherVLLM, ""},
		"Unknown": {"The tag is no release.", "vllm/vllm-openai:latest", named, v1alpha1.LauncherVLLM, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range flagDoubts(t, "image: '"+tc.image+"', "+tc.command+gpus8, 2, tc.launcher) {
				if w.Path == "spec.roles[0].multinode.launcher" {
					got = append(got, w.Message)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfPort plans vLLM with a containerPort that is not its own.
func TestWarnOfPort(t *testing.T) {
	const port, image = ", ports: [{containerPort: 8080}]", "image: 'vllm/vllm-openai:v0.11.2'"
	want := "clients connect to port 8080, but vLLM listens on 8000 without --port: set --port 8080, or name the port of vLLM http"
	cases := map[string]struct{ reason, container, want string }{
		"Default": {"vLLM has a port of its own.", image + ", args: [m]" + port, want},
		"Named":   {"So it does in any image.", "image: acme, command: [vllm, serve, m]" + port, want},
		"Same":    {"The ports are the same.", image + ", args: [m], ports: [{containerPort: 8000}]", ""},
		"Set":     {"The command sets it.", image + ", args: [m, --port=8080]" + port, ""},
		"Socket":  {"It has no port.", image + ", args: [m, --uds=/s]" + port, ""},
		"File":    {"The file may set it.", image + ", args: [m, --config=/c]" + port, ""},
		"Script":  {"The script may set it.", image + ", command: [sh, -c, 'vllm serve m $MORE']" + port, ""},
		"Unknown": {"So may an entrypoint of one's own.", "image: acme/vllm, args: [m]" + port, ""},
		"HTTP":    {"Another port is named http.", image + ", args: [m], ports: [{containerPort: 5557}, {name: http, containerPort: 8000}]", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range flagDoubts(t, tc.container, 1, v1alpha1.LauncherNone) {
				if w.Path == ofEngine+".ports" {
					got = append(got, w.Message)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
