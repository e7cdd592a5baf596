package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

const (
	cannotPass     = "prefill cannot pass the KV cache to decode"
	lacksConnector = cannotPass + `: add --kv-transfer-config and {"kv_connector":"NixlConnector","kv_role":"kv_both"}, as two elements, to both roles`
)

// TestWarnOfTransfer shows which engines of prefill and decode are not told to hand over the KV cache.
func TestWarnOfTransfer(t *testing.T) {
	const sglang = "command: [python3, -m, sglang.launch_server, --model-path=m"
	prefiller, decoder := v1alpha1.ComponentTypePrefiller, v1alpha1.ComponentTypeDecoder
	cases := map[string]struct {
		reason    string
		kind      v1alpha1.ComponentType
		container string
		// path below the engine's container.
		path, want string
	}{
		"Flag":            {"The engine has a connector.", prefiller, `command: [vllm, serve, m, --kv-transfer-config, x]`, "", ""},
		"Underscores":     {"vLLM takes both spellings.", prefiller, `command: [vllm, serve, m, --kv_transfer_config, x]`, "", ""},
		"Key":             {"A key of the value is a flag, too.", decoder, `command: [vllm, serve, m, --kv-transfer-config.kv_connector, x]`, "", ""},
		"KeyInScript":     {"So it is in a script.", decoder, `command: [sh, -c, "exec vllm serve m --kv_transfer_config.kv_connector x"]`, "", ""},
		"Abbreviated":     {"A flag may be shorter, if no other starts like it.", prefiller, `command: [vllm, serve, m, --kv-transfer, x]`, "", ""},
		"OtherKey":        {"Another key names no connector.", prefiller, `command: [vllm, serve, m, --kv-transfer-config.kv_role, kv_both]`, ".args", lacksConnector},
		"Value":           {"The value of another flag is none.", prefiller, `command: [vllm, serve, m, --served-model-name, kv-transfer-config]`, ".args", lacksConnector},
		"None":            {"No flag names one.", decoder, `command: [vllm, serve, m]`, ".args", lacksConnector},
		"File":            {"The file may name it.", prefiller, `command: [vllm, serve, m, --config, /c]`, "", ""},
		"Variable":        {"So may a variable.", prefiller, `command: [vllm, serve, m, $(MORE)]`, "", ""},
		"Environment":     {"Some images read arguments there.", prefiller, `args: [m], env: [{name: MORE, value: "--kv_transfer_config x"}]`, "", ""},
		"EnvironmentFrom": {"Its values are not known.", prefiller, `args: [m], envFrom: [{configMapRef: {name: c}}]`, "", ""},
		"Program":         {"Of a program that is not known, the words count.", prefiller, `command: [./vllm.sh, --kv_transfer_config=x]`, "", ""},
		"ProgramWithout":  {"They do not name it.", prefiller, `command: [./vllm.sh]`, ".args", lacksConnector},
		"Worker":          {"A worker needs no other role.", v1alpha1.ComponentTypeWorker, `command: [vllm, serve, m]`, "", ""},

		"SGLangPrefill":     {"The mode is that of the role.", prefiller, sglang + `, --disaggregation-mode=prefill]`, "", ""},
		"SGLangDecode":      {"So it is here.", decoder, sglang + `, --disaggregation-mode, decode]`, "", ""},
		"SGLangNoMode":      {"SGLang serves alone by default.", prefiller, sglang + `]`, ".args", cannotPass + ": add --disaggregation-mode=prefill"},
		"SGLangNoModeThere": {"So does decode.", decoder, `command: [sh, -c, "sglang serve --model-path m"]`, ".args", cannotPass + ": add --disaggregation-mode=decode"},
		"SGLangOther":       {"The mode is that of the other role.", prefiller, sglang + `, --disaggregation-mode, decode]`, ".command[4]", cannotPass + " with --disaggregation-mode decode: set it to prefill in a prefiller"},
		"SGLangNull":        {"SGLang is told to serve alone.", decoder, sglang + `, --disaggregation-mode=null]`, ".command[4]", cannotPass + " with --disaggregation-mode null: set it to decode in a decoder"},
		"SGLangVariable":    {"Its value is not known.", decoder, sglang + `, --disaggregation-mode=$(MODE)]`, "", ""},
		"SGLangOpen":        {"A variable may be the flag.", decoder, sglang + `, $(MORE)]`, "", ""},
		"SGLangFile":        {"A file may have it.", decoder, sglang + `, --config=/c]`, "", ""},
		"SGLangWorker":      {"A worker serves alone.", v1alpha1.ComponentTypeWorker, sglang + `]`, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "r", ComponentType: tc.kind, Template: document(t, fmt.Sprintf(`{spec: {containers: [{name: vllm, image: vllm-openai, %s}]}}`, tc.container))}
			var want []Warning
			if tc.want != "" {
				want = []Warning{{Path: "spec.roles[0].template.spec.containers[0]" + tc.path, Message: tc.want}}
			}
			if diff := cmp.Diff(want, transferDoubts(t, role)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfTransferOfWorkers shows that workers with a template of their own need the flags of their leader, if they start an engine.
func TestWarnOfTransferOfWorkers(t *testing.T) {
	const vllm, connector = "vllm, serve, m, -tp=2, -pp=1", ", --kv-transfer-config, x"
	const sglang, mode = "python3, -m, sglang.launch_server, --model-path=m", ", --disaggregation-mode=prefill"
	cases := map[string]struct {
		reason         string
		launcher       v1alpha1.Launcher
		leader, worker string
		want           string
	}{
		"Worker":       {"Each node transfers what it has of the cache.", v1alpha1.LauncherVLLM, vllm + connector, vllm, "template: " + lacksConnector},
		"Leader":       {"So does the leader.", v1alpha1.LauncherVLLM, vllm, vllm + connector, "leaderTemplate: " + lacksConnector},
		"Both":         {"Both have one.", v1alpha1.LauncherVLLM, vllm + connector, vllm + connector, ""},
		"Ray":          {"Ray starts the workers, and their own command does not run.", v1alpha1.LauncherRay, vllm + connector, vllm, ""},
		"OtherProgram": {"It starts no engine, as far as is known.", v1alpha1.LauncherNone, vllm + connector, "ray, start, --block", ""},
		"SGLang":       {"The same goes for SGLang.", v1alpha1.LauncherSGLang, sglang + mode, sglang, "template: " + cannotPass + ": add --disaggregation-mode=prefill"},
		"SGLangBoth":   {"Both have the mode.", v1alpha1.LauncherSGLang, sglang + mode, sglang + mode, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := func(command string) string {
				return `{spec: {containers: [{name: engine, image: vllm-openai, command: [` + command + `]}]}}`
			}
			role := v1alpha1.Role{
				Name: "r", ComponentType: v1alpha1.ComponentTypePrefiller, Multinode: multinode(2, tc.launcher),
				Template: document(t, template(tc.worker)), LeaderTemplate: document(t, template(tc.leader)),
			}
			var got []string
			for _, w := range transferDoubts(t, role) {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(w.Path, "spec.roles[0]."), ".spec.containers[0].args")+": "+w.Message)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// transferDoubts returns what is said of a role, of a service with prefill and decode, that cannot hand over the KV cache.
func transferDoubts(t *testing.T, role v1alpha1.Role) []Warning {
	t.Helper()
	return doubtsOf(t, role, cannotPass)
}

// doubtsOf returns the warnings of a role that begin with a text.
func doubtsOf(t *testing.T, role v1alpha1.Role, begins string) []Warning {
	t.Helper()
	_, warnings, errs := planRole(0, role, loads{}, defaultInput(), true)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []Warning
	for _, w := range warnings {
		if strings.HasPrefix(w.Message, begins) {
			all = append(all, w)
		}
	}
	return all
}
