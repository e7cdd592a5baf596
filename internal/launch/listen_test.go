package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListener shows what the words of an engine say of how it listens, and which words say nothing of it.
func TestListener(t *testing.T) {
	serve := func(args ...string) Command { return Command{Command: []string{"vllm", "serve"}, Args: args} }
	script := func(text string) Command { return Command{Command: []string{"sh", "-c"}, Args: []string{text}} }
	cases := map[string]struct {
		command Command
		want    Listener
	}{
		"Nothing":      {serve("m"), Listener{}},
		"Host":         {serve("m", "--host", "0.0.0.0"), Listener{Host: "0.0.0.0"}},
		"LastHost":     {serve("m", "--host=a", "--host", "b"), Listener{Host: "b"}},
		"TLS":          {serve("m", "--ssl_certfile=/c"), Listener{TLS: true}},
		"Certificates": {serve("m", "--ssl-cert-reqs", "2"), Listener{ClientCertificates: true}},
		"NoneWanted":   {serve("m", "--ssl-cert-reqs=0"), Listener{}},
		"Socket":       {serve("m", "--uds=/s"), Listener{Socket: true}},
		"Headless":     {serve("m", "--headless"), Listener{Headless: true}},
		"File":         {serve("--config", "/c"), Listener{File: true}},
		"GRPC":         {serve("m", "--grpc"), Listener{GRPC: true}},
		"GRPCMode":     {Command{Command: []string{"python3", "-m", "sglang.launch_server", "--grpc-mode"}}, Listener{GRPC: true}},
		"GRPCServer":   {Command{Command: []string{"python3", "-m", "vllm.entrypoints.grpc_server"}}, Listener{GRPC: true}},
		"GRPCModel":    {serve("/models/grpc-bert", "--grpc-port", "1"), Listener{}},
		"Script":       {script("exec vllm serve m --ssl-certfile=/c --host 127.0.0.1"), Listener{TLS: true, Host: "127.0.0.1"}},
		"Loop":         {script("while true; do vllm serve m --uds /s; done"), Listener{}},
		"ModuleAlone":  {Command{Command: []string{"python3", "-m"}}, Listener{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(tc.command).Listener()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
