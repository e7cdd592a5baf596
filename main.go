// Package main is the composition function, and the command that runs it on files.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/serve"
)

// commands of the binary. Crossplane starts it with flags only, so serve is what
// it does without a command.
type commands struct {
	Debug   bool        `short:"d" help:"Write debug logs."`
	Version cli.Version `help:"Print the version."`

	Serve  serving    `cmd:"" default:"withargs" help:"Serve the function over gRPC (the default)."`
	Render cli.Render `cmd:"" help:"Show what an InferenceService becomes, from files alone."`
}

// serving runs the gRPC server. An XR with its observed resources is easily larger
// than gRPC's own limit of 4 MiB.
type serving struct {
	Network            string `default:"tcp" help:"Network on which to listen for gRPC connections."`
	Address            string `default:":9443" help:"Address at which to listen for gRPC connections."`
	TLSCertsDir        string `name:"tls-certs-dir" env:"TLS_SERVER_CERTS_DIR" help:"Directory with the server's key and certificate (tls.key, tls.crt) and the CA of its clients (ca.crt)."`
	Insecure           bool   `help:"Serve without mTLS. TLS certificates are then ignored."`
	MaxRecvMessageSize int    `default:"64" help:"Largest request to accept, in MB."`
	MetricsAddress     string `default:":8080" help:"Address of the Prometheus metrics. Empty serves none."`
	Memory             int64  `default:"0" help:"Memory that calls have to do with, in MiB. 0 is the limit of the container, or 512 where it has none."`
}

// headroom is how much the heap may grow before its garbage is collected, beyond
// its own size. At rest it is so small that it would be collected every few calls,
// at more than the cost of the calls.
const headroom = 6 << 20

// Run serves until it fails.
func (s *serving) Run(fn fnv1.FunctionRunnerServiceServer) error {
	// The collector counts this as part of the heap. It is never touched, so that it
	// takes no memory.
	untouched := make([]byte, headroom)
	defer runtime.KeepAlive(untouched)
	memory := s.Memory << 20
	if memory == 0 {
		memory = serve.Memory("/")
	}
	serve.LimitHeap(memory)
	return serve.Run(fn, serve.Options{
		Network: s.Network, Address: s.Address, TLSCertsDir: s.TLSCertsDir, Insecure: s.Insecure,
		MaxRecvMessageSize: s.MaxRecvMessageSize << 20, MetricsAddress: s.MetricsAddress, Memory: memory,
	})
}

func main() {
	codec.Register()
	c := &commands{}
	k := kong.Parse(c, kong.Name("function-inferenceservice"), kong.Description("A Crossplane composition function that serves large language models."),
		kong.Exit(func(code int) { os.Exit(min(code, 1)) }))
	log, err := function.NewLogger(c.Debug)
	k.FatalIfErrorf(err)
	fn := &Function{log: log}
	k.BindTo(fn, (*fnv1.FunctionRunnerServiceServer)(nil))
	k.BindTo(fn, (*cli.Runner)(nil))
	k.BindTo(context.Background(), (*context.Context)(nil))
	os.Exit(cli.Exit(os.Stderr, k.Run(cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})))
}
