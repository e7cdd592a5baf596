package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWithShutdown(t *testing.T) {
	cases := map[string]struct{ command, want Command }{
		"Serve":      {Command{Command: []string{"vllm", "serve", "m"}}, Command{Command: []string{"vllm", "serve", "m"}, Args: []string{"--shutdown-timeout", "25"}}},
		"Entrypoint": {Command{Args: []string{"--model=m"}}, Command{Args: []string{"--model=m", "--shutdown-timeout", "25"}}},
		"Script":     {Command{Command: []string{"sh", "-c", "exec vllm serve m"}}, Command{Command: []string{"sh", "-c", "exec vllm serve m --shutdown-timeout 25"}}},
		"Own":        {Command{Args: []string{"--shutdown_timeout=5"}}, Command{Args: []string{"--shutdown_timeout=5"}}},
		"Loop":       {Command{Command: []string{"sh", "-c", "while true; do vllm serve m; done"}}, Command{Command: []string{"sh", "-c", "while true; do vllm serve m; done"}}},
		"Other":      {Command{Command: []string{"./start"}}, Command{Command: []string{"./start"}}},
		"SGLang":     {Command{Command: []string{"python3", "-m", "sglang.launch_server"}}, Command{Command: []string{"python3", "-m", "sglang.launch_server"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithShutdown(tc.command, 25), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
