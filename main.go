// Package main has the composition function's server, and the commands that run the function
// on files.
package main

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/alecthomas/kong"

	"github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/serve"
)

// commands are the commands of the binary. Crossplane starts it with flags only, so serve is
// the default.
type commands struct {
	Debug   bool        `short:"d" help:"Write debug logs."`
	Version cli.Version `help:"Print the version."`

	Serve  serving    `cmd:"" default:"withargs" help:"Serve the function over gRPC (the default)."`
	Render cli.Render `cmd:"" help:"Show what an InferenceService, an InferenceCluster, an InferenceModel or a ModelCache becomes, from files alone."`
	Plan   cli.Plan   `cmd:"" help:"Show what a change of the fleet moves, before and after side by side, from files alone."`

	Profiles cli.Profiles `cmd:"" help:"Write what services read of InferenceClusters, for Crossplane's own render command."`
}

// serving runs the gRPC server. The default of MaxRecvMessageSize is above gRPC's own 4 MiB,
// which an XR with its observed resources can exceed.
type serving struct {
	Network            string `default:"tcp" help:"Network on which to listen for gRPC connections."`
	Address            string `default:":9443" help:"Address at which to listen for gRPC connections."`
	TLSCertsDir        string `name:"tls-certs-dir" env:"TLS_SERVER_CERTS_DIR" help:"Directory with the server's key and certificate (tls.key, tls.crt) and the CA of its clients (ca.crt)."`
	Insecure           bool   `help:"Serve without mTLS. TLS certificates are then ignored."`
	MaxRecvMessageSize int    `default:"64" help:"Largest request to accept, in MiB."`
	MetricsAddress     string `default:":8080" help:"Address of the Prometheus metrics. Empty serves none."`
	Memory             int64  `default:"0" help:"Memory that the process may take, in MiB. 0 means the limit of the container, or 512 if it has none."`
	HeapHeadroom       uint32 `default:"6" hidden:"" help:"Size of an allocation that only delays garbage collection, in MiB."`
}

// Run serves until it fails.
func (s *serving) Run(fn fnv1.FunctionRunnerServiceServer, metrics *serve.Metrics) error {
	// Go collects garbage whenever the heap has doubled since the last collection. The heap of
	// an idle process is a few MiB, so that would happen every few calls. This slice counts as
	// heap, so the next collection comes later. Nobody writes to it, so it takes no physical
	// memory. A higher GOGC would do the same, but lets a large heap grow further: see
	// docs/performance.md.
	headroom := make([]byte, int64(s.HeapHeadroom)<<20)
	defer runtime.KeepAlive(headroom)
	memory := s.Memory << 20
	if memory == 0 {
		memory = serve.Memory("/")
	}
	serve.LimitHeap(memory)
	return serve.Run(fn, serve.Options{
		Network: s.Network, Address: s.Address, TLSCertsDir: s.TLSCertsDir, Insecure: s.Insecure,
		MaxRecvMessageSize: s.MaxRecvMessageSize << 20, MetricsAddress: s.MetricsAddress, Metrics: metrics, Memory: memory,
	})
}

// An inProcess function is called without gRPC. Requests still go through the codec, so the
// render command shows what the served function returns.
type inProcess struct{ fn *Function }

// RunFunction calls the function with a request as the codec decodes it.
func (p inProcess) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	arrived, err := codec.Copy(req)
	if err != nil {
		return nil, err
	}
	return p.fn.RunFunction(ctx, arrived)
}

// At returns the function as it runs at a time.
func (p inProcess) At(t time.Time) cli.Runner {
	return inProcess{&Function{log: p.fn.log, clock: func() time.Time { return t }}}
}

func main() {
	codec.Register()
	c := &commands{}
	parser := kong.Must(c, kong.Name("function-inferenceservice"), kong.Description("A Crossplane composition function that serves large language models."),
		kong.Exit(func(code int) { os.Exit(min(code, 1)) }))
	var names []string
	for _, n := range parser.Model.Children {
		names = append(names, n.Name)
	}
	parser.FatalIfErrorf(cli.KnownCommand(os.Args[1:], names))
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	log, err := function.NewLogger(c.Debug)
	k.FatalIfErrorf(err)
	metrics := serve.NewMetrics()
	fn := &Function{log: log, answered: func(ctx context.Context, c *composite.Call, err error) {
		metrics.Answered(ctx, c, err)
		if err == nil {
			c.Log(log)
		}
	}}
	k.Bind(metrics)
	k.BindTo(fn, (*fnv1.FunctionRunnerServiceServer)(nil))
	k.BindTo(inProcess{&Function{log: log}}, (*cli.Runner)(nil))
	k.BindTo(context.Background(), (*context.Context)(nil))
	os.Exit(cli.Exit(os.Stderr, k.Run(cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})))
}
