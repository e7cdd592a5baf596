/*
Package serve serves the function over gRPC, with a bound on the memory that calls take
together.

The SDK's own server reads and decodes every request that arrives. A request of 1.5 MB,
which is what an API server stores of one object, takes up to a hundred times as much
decoded, and Crossplane calls for many objects at once. So a call waits here before it is
decoded, with its bytes and nothing else, until there is room for it.
*/
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/proto/v1beta1"
)

// Options of a server.
type Options struct {
	Network, Address string
	// TLSCertsDir has the server's key and certificate, and the CA of its clients. Insecure
	// serves without them.
	TLSCertsDir string
	Insecure    bool
	// MaxRecvMessageSize is the largest request, in bytes.
	MaxRecvMessageSize int
	// MetricsAddress serves Prometheus metrics. Empty serves none.
	MetricsAddress string
	// Memory that the process may take, in bytes.
	Memory int64
}

// maxStreams is how many calls of one connection are received at once; the others wait at
// the caller. Each has its bytes in memory. Crossplane makes one connection, and calls for
// up to 100 objects at once unless it is told otherwise.
const maxStreams = 64

// Run serves until it fails.
func Run(fn fnv1.FunctionRunnerServiceServer, o Options) error {
	server, err := newServer(fn, o)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), o.Network, o.Address)
	if err != nil {
		return fmt.Errorf("cannot listen for %s connections at address %q: %w", o.Network, o.Address, err)
	}
	if err := server.Serve(l); err != nil {
		return fmt.Errorf("cannot serve gRPC connections: %w", err)
	}
	return nil
}

// newServer is what function.Serve makes, with the gate before it.
func newServer(fn fnv1.FunctionRunnerServiceServer, o Options) (*grpc.Server, error) {
	sdk := &function.ServeOptions{}
	for _, apply := range []function.ServeOption{function.MTLSCertificates(o.TLSCertsDir), function.Insecure(o.Insecure)} {
		if err := apply(sdk); err != nil {
			return nil, fmt.Errorf("cannot use the TLS certificates: %w", err)
		}
	}
	if sdk.Credentials == nil {
		return nil, errors.New("no credentials: give a directory of TLS certificates, or serve insecurely")
	}
	options := []grpc.ServerOption{
		grpc.Creds(sdk.Credentials),
		grpc.MaxRecvMsgSize(o.MaxRecvMessageSize),
		grpc.MaxConcurrentStreams(maxStreams),
	}
	var metrics *grpcprometheus.ServerMetrics
	if o.MetricsAddress != "" {
		metrics = grpcprometheus.NewServerMetrics()
		prometheus.MustRegister(metrics)
		options = append(options, grpc.ChainUnaryInterceptor(metrics.UnaryServerInterceptor()))
	}
	server := grpc.NewServer(options...)
	reflection.Register(server)
	gate := NewGate(o.Memory)
	server.RegisterService(gate.guard(&fnv1.FunctionRunnerService_ServiceDesc), fn)
	server.RegisterService(gate.guard(&v1beta1.FunctionRunnerService_ServiceDesc), function.ServeBeta(fn))
	if metrics != nil {
		metrics.InitializeMetrics(server)
		m := &http.Server{Addr: o.MetricsAddress, Handler: promhttp.Handler(), ReadHeaderTimeout: 30 * time.Second}
		go func() { _ = m.ListenAndServe() }() // As in the SDK: calls go on without metrics.
	}
	return server, nil
}
