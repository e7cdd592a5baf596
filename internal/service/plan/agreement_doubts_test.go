package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// TestWarnOfDisagreement plans prefill and decode engines that differ.
func TestWarnOfDisagreement(t *testing.T) {
	const (
		vllm   = `vllm, serve`
		sglang = `python3, -m, sglang.launch_server`
		cannot = "decode cannot use the KV cache of prefill"
		nixl   = `--kv-transfer-config, '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'`
	)
	cases := map[string]struct {
		reason          string
		prefill, decode string
		// path below the engine's container of decode.
		path, want string
	}{
		"Same":            {prefill: vllm + ", m, --block-size, '64', " + nixl, decode: vllm + ", --model, m, --block-size=64, -tp, '4', " + nixl},
		"Model":           {prefill: vllm + ", m, --served-model-name, x, " + nixl, decode: vllm + ", other, --served-model-name, x, " + nixl, path: ".command[2]", want: `the model is "other" here and "m" in the role p, so ` + cannot + `: set the same in both`},
		"Name":            {prefill: vllm + ", m, " + nixl, decode: vllm + ", m, --served-model-name, x, " + nixl, path: ".command[3]", want: `the name of the model is "x" here and "m" in the role p, so one of the two knows no model of the name that clients ask for: set the same in both`},
		"NameOfModel":     {prefill: vllm + ", m, " + nixl, decode: vllm + ", m, --served-model-name, m, " + nixl},
		"SeveralNames":    {prefill: vllm + ", m, --served-model-name, a, b, " + nixl, decode: vllm + ", m, --served-model-name, b, a, " + nixl},
		"BlockSize":       {prefill: vllm + ", m, --block-size=64, " + nixl, decode: vllm + ", m, --block-size, '16', " + nixl, path: ".command[3]", want: `the block size is "16" here and "64" in the role p, so ` + cannot + `: set the same in both`},
		"BlockSizeOfOne":  {prefill: vllm + ", m, --block-size=128, " + nixl, decode: vllm + ", m, " + nixl, path: ".args", want: `the block size is what the engine chooses here and "128" in the role p, so ` + cannot + `: set the same in both`},
		"LargerBlocks":    {reason: "Decode may have blocks of several of prefill.", prefill: vllm + ", m, --block-size=64, " + nixl, decode: vllm + ", m, --block-size=128, " + nixl},
		"Dtype":           {prefill: vllm + ", m, --kv-cache-dtype, fp8, " + nixl, decode: vllm + ", m, " + nixl, path: ".args", want: `the KV cache dtype is "auto" here and "fp8" in the role p, so ` + cannot + `: set the same in both`},
		"SameDtype":       {reason: "The model's own may be this one.", prefill: vllm + ", m, --kv-cache-dtype, bfloat16, " + nixl, decode: vllm + ", m, " + nixl},
		"Connector":       {prefill: vllm + ", m, " + nixl, decode: vllm + `, m, --kv-transfer-config.kv_connector, LMCacheConnectorV1`, path: ".command[3]", want: `the KV connector is "LMCacheConnectorV1" here and "NixlConnector" in the role p, so ` + cannot + `: set the same in both`},
		"MultiConnector":  {prefill: vllm + ", m, " + nixl, decode: vllm + `, m, --kv-transfer-config, '{"kv_connector":"MultiConnector"}'`},
		"Broken":          {prefill: vllm + ", m, " + nixl, decode: vllm + `, m, --kv-transfer-config, '{'`},
		"Variable":        {prefill: vllm + ", $(MODEL), --block-size, $(SIZE), " + nixl, decode: vllm + ", m, --block-size, '16', " + nixl},
		"File":            {prefill: vllm + ", m, --config, /a.yaml, " + nixl, decode: vllm + ", other, --block-size, '16', " + nixl},
		"Engines":         {prefill: vllm + ", m, " + nixl, decode: sglang + ", --model-path, m", path: "", want: "decode runs SGLang, which cannot use the KV cache of the role p, which runs vLLM: use one engine for both"},
		"SGLang":          {prefill: sglang + ", --model-path, m", decode: sglang + ", --model, m, --disaggregation-transfer-backend, mooncake"},
		"SGLangBackend":   {prefill: sglang + ", --model-path, m", decode: sglang + ", --model, m, --disaggregation-transfer-backend, nixl", path: ".command[5]", want: `the KV connector is "nixl" here and "mooncake" in the role p, so ` + cannot + `: set the same in both`},
		"SGLangPageSize":  {prefill: sglang + ", --model-path, m, --page-size, '64'", decode: sglang + ", --model, m, --page-size, '128'", path: ".command[5]", want: `the block size is "128" here and "64" in the role p, so ` + cannot + `: set the same in both`},
		"OtherProgram":    {prefill: vllm + ", m, " + nixl, decode: "mine, --port, '8000', --kv-transfer-config, x"},
		"ZeroBlocks":      {prefill: vllm + ", m, --block-size=0, " + nixl, decode: vllm + ", m, --block-size, x, " + nixl, path: ".command[3]", want: `the block size is "x" here and "0" in the role p, so ` + cannot + `: set the same in both`},
		"SameInAnyFormat": {prefill: vllm + ", m, --kv-transfer-config.kv_connector=NixlConnector", decode: vllm + ", m, " + nixl},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := func(name, of, command string) string {
				return fmt.Sprintf(`{name: %s, componentType: %s, template: {spec: {containers: [{name: engine, image: x, readinessProbe: {exec: {command: [ok]}}, command: [%s]}]}}}`, name, of, command)
			}
			var want []Warning
			if tc.want != "" {
				want = []Warning{{"spec.roles[1].template", tc.want}}
				if tc.path != "" {
					want[0].Path += ".spec.containers[0]" + tc.path
				}
			}
			var got []Warning
			for _, w := range doubted(t, "roles: ["+role("p", "prefiller", tc.prefill)+", "+role("d", "decoder", tc.decode)+", {name: r, componentType: router}]", "spec.roles[1]") {
				if !strings.Contains(w.Message, "prefill cannot pass the KV cache") {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPrefillIsReadOnce shows that the values of prefill's flags are decoded once, however many decode roles there are.
func TestPrefillIsReadOnce(t *testing.T) {
	const command = `vllm, serve, m, --kv-transfer-config, '{"kv_connector":"NixlConnector","x":[%s1]}'`
	role := func(name, of, command string) string {
		return fmt.Sprintf(`{name: %s, componentType: %s, template: {spec: {containers: [{name: engine, image: x, command: [%s]}]}}}`, name, of, command)
	}
	allocations := func(decoders int) float64 {
		roles := []string{role("p", "prefiller", fmt.Sprintf(command, strings.Repeat("1,", 10_000)))}
		for i := range decoders {
			roles = append(roles, role(fmt.Sprint("d", i), "decoder", fmt.Sprintf(command, "")))
		}
		p, err := build(t, "roles: ["+strings.Join(roles, ", ")+", {name: r, componentType: router}]", "")
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(5, p.warnOfDisagreement)
	}
	if one, many := allocations(1), allocations(20); one < 10_000 || many > 2*one {
		t.Errorf("one decode role takes %.0f allocations, and 20 take %.0f: want at least 10000, and at most twice as many", one, many)
	}
}

// TestWarnOfContext plans services that name a profile with room for 32768 tokens.
func TestWarnOfContext(t *testing.T) {
	const input = `profiles: [{name: small, maxContextLength: 32768, roles: [{componentType: worker}]}, {name: any, roles: [{componentType: worker}]}]`
	message := func(flag string) string {
		return flag + " is more than the 32768 tokens for which profile small has room: set at most that, or name another profile"
	}
	cases := map[string]struct {
		profile, command string
		want             string
	}{
		"Within":     {"small", "vllm, serve, m, --max-model-len, '32768'", ""},
		"WithinK":    {"small", "vllm, serve, m, --max-model-len, 32K", ""},
		"Above":      {"small", "vllm, serve, m, --max-model-len, '32769'", message("--max-model-len 32769")},
		"AboveK":     {"small", "vllm, serve, m, --max_model_len=33K", message("--max_model_len 33K")},
		"AboveTenth": {"small", "vllm, serve, m, --max-model-len, 32.8k", message("--max-model-len 32.8k")},
		"SGLang":     {"small", "sglang, serve, --model-path, m, --host, 0.0.0.0, --port, '8000', --context-length, '65536'", message("--context-length 65536")},
		"Huge":       {"small", "vllm, serve, m, --max-model-len, '999999999999999999999'", ""},
		"Model's":    {"small", "vllm, serve, m", ""},
		"Auto":       {"small", "vllm, serve, m, --max-model-len, auto", ""},
		"Variable":   {"small", "vllm, serve, m, --max-model-len, $(LENGTH)", ""},
		"NoLimit":    {"any", "vllm, serve, m, --max-model-len, '65536'", ""},
		"NoProfile":  {"", "vllm, serve, m, --max-model-len, '65536'", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := "roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: engine, image: x, command: [" + tc.command + "]}]}}}]"
			if tc.profile != "" {
				spec += "\nprofileName: " + tc.profile
			}
			p, err := build(t, spec, input)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range p.Warnings {
				if !strings.HasPrefix(w.Path, "spec.roles[0].template.spec.containers[0].command[") {
					t.Errorf("unexpected warning %v", w)
				}
				got = append(got, w.Message)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestWarnOfEngineVersions plans prefill and decode of images of vLLM.
func TestWarnOfEngineVersions(t *testing.T) {
	const nixl = `{"kv_connector":"NixlConnector","kv_role":"kv_both"}`
	cases := map[string]struct {
		reason, prefill, decode, transfer, want string
	}{
		"Same":       {prefill: "vllm/vllm-openai:v0.20.0", decode: "mirror/vllm-openai:v0.20.0", transfer: nixl},
		"Differ":     {prefill: "vllm/vllm-openai:v0.19.0", decode: "vllm/vllm-openai:v0.20.0", transfer: nixl, want: "vLLM is v0.20.0 here and v0.19.0 in the role p, and its NIXL connector refuses another version: use one image for both"},
		"NotChecked": {"The user takes the risk.", "vllm/vllm-openai:v0.19.0", "vllm/vllm-openai:v0.20.0", `{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"enforce_handshake_compat":false}}`, ""},
		"Other":      {"Another connector has a handshake of its own.", "vllm/vllm-openai:v0.19.0", "vllm/vllm-openai:v0.20.0", `{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}`, ""},
		"Early":      {"These releases compare nothing.", "vllm/vllm-openai:v0.11.0", "vllm/vllm-openai:v0.11.2", nixl, ""},
		"Unknown":    {"The tag is no version.", "vllm/vllm-openai:nightly", "vllm/vllm-openai:v0.20.0", nixl, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := func(name, of, image string) string {
				return fmt.Sprintf(`{name: %s, componentType: %s, template: {spec: {containers: [{name: engine, image: %q, command: [vllm, serve, m, --kv-transfer-config, '%s']}]}}}`, name, of, image, tc.transfer)
			}
			got := ""
			for _, w := range doubted(t, "roles: ["+role("p", "prefiller", tc.prefill)+", "+role("d", "decoder", tc.decode)+", {name: r, componentType: router}]", "spec.roles[1].template") {
				if strings.Contains(w.Message, "another version") {
					got = w.Message
				}
			}
			if got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestWarnOfSidecarConnectors plans decode whose routing sidecar speaks the protocol of some engine.
func TestWarnOfSidecarConnectors(t *testing.T) {
	const vllm, sglang = "vllm, serve, m", "python3, -m, sglang.launch_server, --model-path, m, --port, '8000'"
	const ends = "which ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0 does not know, so it ends and decode never serves: " +
		"set endpointPicker.kvConnector of the router to one of nixlv2, shared-storage, sglang, mooncake, offloading"
	with := func(connector string) string { return `, --kv-transfer-config, '{"kv_connector":"` + connector + `"}'` }
	const tail = ": leave endpointPicker.kvConnector of the router and sidecar.kvConnector of the Input out, or set "
	for name, tc := range map[string]struct{ command, connector, want string }{
		"SGLang":      {sglang, "", ""},
		"SGLangOwn":   {sglang, "kvConnector: sglang", ""},
		"SGLangOther": {sglang, "kvConnector: nixlv2", `the routing sidecar's KV connector is "nixlv2", which is not for SGLang` + tail + `"sglang"`},
		"VLLM":        {vllm, "", ""},
		"VLLMOwn":     {vllm, "kvConnector: mooncake", ""},
		"VLLMOther":   {vllm, "kvConnector: sglang", `the routing sidecar's KV connector is "sglang", which is not for vLLM` + tail + `"nixlv2"`},
		"NotKnown":    {"mine, --port, '8000'", "kvConnector: sglang", ""},
		"Word":        {vllm, "kvConnector: nixl", `the routing sidecar's KV connector is "nixl", ` + ends},
		"WordOfAny":   {"mine, --port, '8000'", "kvConnector: lmcache", `the routing sidecar's KV connector is "lmcache", ` + ends},
		"Offloading":  {vllm + with("OffloadingConnector"), "kvConnector: offloading", ""},
		"Storage":     {vllm + with("ExampleConnector"), "kvConnector: shared-storage", ""},
		"NIXL":        {vllm + with("NixlConnector"), "", ""},
		"Multi":       {vllm + with("MultiConnector"), "", ""},
		"NoMooncake":  {vllm + with("MooncakeConnector"), "", `the routing sidecar's KV connector is "nixlv2", and that of the engine is MooncakeConnector: set endpointPicker.kvConnector of the router to "mooncake"`},
		"NoStorage":   {vllm + with("SharedStorageConnector"), "kvConnector: sglang", `the routing sidecar's KV connector is "sglang", and that of the engine is SharedStorageConnector: set endpointPicker.kvConnector of the router to "shared-storage"`},
		"Swapped":     {vllm + with("OffloadingConnector"), "kvConnector: mooncake", `the routing sidecar's KV connector is "mooncake", and that of the engine is OffloadingConnector: set endpointPicker.kvConnector of the router to "offloading"`},
	} {
		t.Run(name, func(t *testing.T) {
			role := func(name, of string) string {
				return fmt.Sprintf(`{name: %s, componentType: %s, template: {spec: {containers: [{name: engine, image: x, command: [%s]}]}}}`, name, of, tc.command)
			}
			got := ""
			for _, w := range doubted(t, "roles: ["+role("p", "prefiller")+", "+role("d", "decoder")+", {name: r, componentType: router, endpointPicker: {"+tc.connector+"}}]", "spec.roles[1]") {
				if strings.Contains(w.Message, "routing sidecar's") {
					got = w.Message
				}
			}
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

// TestConnectorsOf proves that only the images are judged whose protocols are known.
func TestConnectorsOf(t *testing.T) {
	older := []string{"nixlv2", "shared-storage", "sglang", "mooncake"}
	newer := append(slices.Clone(older), "offloading")
	for name, tc := range map[string]struct {
		image string
		want  []string
	}{
		"Default": {inputv1alpha1.DefaultSidecarImage, newer},
		"Mirror":  {"registry.example.com:5000/mirror/llm-d-router-disagg-sidecar:v0.10.1@sha256:ab", newer},
		"Before":  {"ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0", older},
		"Later":   {"ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.11.0", nil},
		"Latest":  {"ghcr.io/llm-d/llm-d-router-disagg-sidecar:latest", nil},
		"Other":   {"example.com/sidecar:v0.10.0", nil},
		"Former":  {"ghcr.io/llm-d/llm-d-routing-sidecar:v0.8.0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, connectorsOf(tc.image)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
