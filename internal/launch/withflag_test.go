package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWithFlag(t *testing.T) {
	const to = "http://collector:4317"
	cases := map[string]struct {
		name, value   string
		command, want Command
	}{
		"Serve":         {ShutdownTimeout, "25", Command{Command: []string{"vllm", "serve", "m"}}, Command{Command: []string{"vllm", "serve", "m"}, Args: []string{"--shutdown-timeout", "25"}}},
		"Entrypoint":    {ShutdownTimeout, "25", Command{Args: []string{"--model=m"}}, Command{Args: []string{"--model=m", "--shutdown-timeout", "25"}}},
		"Script":        {ShutdownTimeout, "25", Command{Command: []string{"sh", "-c", "exec vllm serve m"}}, Command{Command: []string{"sh", "-c", "exec vllm serve m --shutdown-timeout 25"}}},
		"ScriptWithURL": {TracesEndpoint, to, Command{Command: []string{"sh", "-c", "exec vllm serve m"}}, Command{Command: []string{"sh", "-c", "exec vllm serve m --otlp-traces-endpoint http://collector:4317"}}},
		"OtherFlag":     {TracesEndpoint, to, Command{Args: []string{"--shutdown-timeout=5"}}, Command{Args: []string{"--shutdown-timeout=5", "--otlp-traces-endpoint", to}}},
		"Own":           {ShutdownTimeout, "25", Command{Args: []string{"--shutdown_timeout=5"}}, Command{Args: []string{"--shutdown_timeout=5"}}},
		"OwnURL":        {TracesEndpoint, to, Command{Args: []string{"--otlp_traces_endpoint=http://own:4317"}}, Command{Args: []string{"--otlp_traces_endpoint=http://own:4317"}}},
		"Loop":          {ShutdownTimeout, "25", Command{Command: []string{"sh", "-c", "while true; do vllm serve m; done"}}, Command{Command: []string{"sh", "-c", "while true; do vllm serve m; done"}}},
		"Other":         {ShutdownTimeout, "25", Command{Command: []string{"./start"}}, Command{Command: []string{"./start"}}},
		"SGLang":        {ShutdownTimeout, "25", Command{Command: []string{"python3", "-m", "sglang.launch_server"}}, Command{Command: []string{"python3", "-m", "sglang.launch_server"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithFlag(tc.command, tc.name, tc.value), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
