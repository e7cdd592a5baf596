package main

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

func TestCommands(t *testing.T) {
	served := serving{Network: "tcp", Address: ":9443", MaxRecvMessageSize: 64, MetricsAddress: ":8080"}
	type want struct {
		command string
		c       commands
	}
	cases := map[string]struct {
		reason string
		args   []string
		env    string
		want   want
	}{
		"NoArguments": {
			reason: "Without a command the function is served.",
			want:   want{command: "serve", c: commands{Serve: served, Render: cli.Render{Format: "yaml"}}},
		},
		"Package": {
			reason: "Crossplane's package runtime gives the directory of certificates in the environment and no command.",
			args:   []string{"--debug"},
			env:    "/tls/server",
			want: want{command: "serve", c: commands{
				Debug:  true,
				Serve:  serving{Network: "tcp", Address: ":9443", TLSCertsDir: "/tls/server", MaxRecvMessageSize: 64, MetricsAddress: ":8080"},
				Render: cli.Render{Format: "yaml"},
			}},
		},
		"Development": {
			reason: "All of serve's flags work without its name.",
			args:   []string{"-d", "--insecure", "--network=unix", "--address=/tmp/s", "--max-recv-message-size=8", "--metrics-address="},
			want: want{command: "serve", c: commands{
				Debug:  true,
				Serve:  serving{Network: "unix", Address: "/tmp/s", Insecure: true, MaxRecvMessageSize: 8},
				Render: cli.Render{Format: "yaml"},
			}},
		},
		"Render": {
			reason: "Render takes a file and what goes with it.",
			args:   []string{"render", "xr.yaml", "--input", "in.yaml", "--observed=a", "--observed=b,c", "--required=d", "--format=json"},
			want: want{command: "render <xr>", c: commands{
				Serve:  served,
				Render: cli.Render{XR: "xr.yaml", Input: "in.yaml", Observed: []string{"a", "b,c"}, Required: []string{"d"}, Format: "json"},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TLS_SERVER_CERTS_DIR", tc.env)
			got := want{}
			k, err := kong.Must(&got.c).Parse(tc.args)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got.command = k.Command()
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}, commands{}, serving{})); diff != "" {
				t.Errorf("%s\nParse(%q): -want, +got:\n%s", tc.reason, tc.args, diff)
			}
		})
	}
}

func TestCommandsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"NoXR":                  {"render"},
		"InputAndComposition":   {"render", "xr.yaml", "--input=a", "--composition=b"},
		"UnknownFormat":         {"render", "xr.yaml", "--format=xml"},
		"UnknownFlag":           {"--unsafe"},
		"FlagOfAnotherCommand":  {"render", "xr.yaml", "--insecure"},
		"MoreThanOneXR":         {"render", "a.yaml", "b.yaml"},
		"CommandThatIsNotThere": {"rendr", "a.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if k, err := kong.Must(&commands{}).Parse(args); err == nil {
				t.Errorf("Parse(%q): got command %q, want an error", args, k.Command())
			}
		})
	}
}

// TestServe calls the function as Crossplane does.
func TestServe(t *testing.T) {
	codec.Register() // As main does.
	socket := filepath.Join(t.TempDir(), "s")
	c := &commands{}
	k, err := kong.Must(c).Parse([]string{"--insecure", "--network=unix", "--address=" + socket, "--metrics-address="})
	if err != nil {
		t.Fatal(err)
	}
	f := &Function{log: logging.NewNopLogger(), clock: stopped()}
	k.BindTo(f, (*fnv1.FunctionRunnerServiceServer)(nil))
	go func() { _ = k.Run() }() // Ends with the test binary: the SDK's server has no stop.

	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // Nothing depends on it.
	client := fnv1.NewFunctionRunnerServiceClient(conn)

	t.Run("Large", func(t *testing.T) {
		// It is larger than gRPC's own limit.
		req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: strings.Repeat("x", 5<<20)}}
		rsp, err := client.RunFunction(t.Context(), req, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(8<<20))
		if err != nil {
			t.Fatal(err)
		}
		if rsp.GetMeta().GetTag() != req.GetMeta().GetTag() {
			t.Errorf("RunFunction: the answer does not carry the tag of the request")
		}
	})
	// Crossplane calls for many services at once. With the race detector this also proves that
	// what calls share may be shared.
	t.Run("Together", func(t *testing.T) {
		var callers sync.WaitGroup
		for _, req := range exampleRequests(t) {
			want, err := f.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				callers.Go(func() {
					got, err := client.RunFunction(t.Context(), req)
					if err != nil {
						t.Errorf("%s: %v", nameOf(req), err)
					} else if !proto.Equal(want, got) {
						t.Errorf("%s: -called alone, +called together:\n%s", nameOf(req), cmp.Diff(want, got, protocmp.Transform()))
					}
				})
			}
		}
		callers.Wait()
	})
}

// nameOf is the name of the service that a request is about.
func nameOf(req *fnv1.RunFunctionRequest) string {
	return kube.Lookup(req.GetObserved().GetComposite().GetResource(), "metadata", "name").GetStringValue()
}
