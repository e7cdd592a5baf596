package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWithTracing(t *testing.T) {
	const at, to = "--otlp-traces-endpoint", "http://collector:4317"
	cases := map[string]struct{ command, want Command }{
		"Serve":      {Command{Command: []string{"vllm", "serve", "m"}}, Command{Command: []string{"vllm", "serve", "m"}, Args: []string{at, to}}},
		"Entrypoint": {Command{Args: []string{"--model=m"}}, Command{Args: []string{"--model=m", at, to}}},
		"Script":     {Command{Command: []string{"sh", "-c", "exec vllm serve m"}}, Command{Command: []string{"sh", "-c", "exec vllm serve m " + at + " " + to}}},
		"Own":        {Command{Args: []string{"--otlp_traces_endpoint=http://own:4317"}}, Command{Args: []string{"--otlp_traces_endpoint=http://own:4317"}}},
		"SGLang":     {Command{Command: []string{"python3", "-m", "sglang.launch_server"}}, Command{Command: []string{"python3", "-m", "sglang.launch_server"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithTracing(tc.command, to), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
