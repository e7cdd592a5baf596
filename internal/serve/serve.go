/*
Package serve serves the function over gRPC, and limits the memory that all calls take
together.

The SDK's own server decodes every request at once. An API server stores up to 1.5 MB of one
object. Decoded, a request of that size takes up to a hundred times as much memory, and
Crossplane calls for many objects at once. Here a call therefore waits, still encoded, until
enough memory is free.
*/
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
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
	// MaxRecvMessageSize is the largest request that is accepted, in bytes.
	MaxRecvMessageSize int
	// MetricsAddress is where Prometheus metrics are served. If it is empty, there are none.
	MetricsAddress string
	// Metrics are those of the function itself. Nil measures nothing.
	Metrics *Metrics
	// Memory is how much memory the process may take, in bytes.
	Memory int64
}

// maxStreams is how many calls of one connection are received at once. The others wait at
// the caller. Each received call takes memory for its encoded request. Crossplane has one
// connection, and by default calls for up to 100 objects at once.
const maxStreams = 64

// drain is how long calls may go on after the process was told to end. Kubernetes kills it after 30 seconds.
const drain = 20 * time.Second

// Run serves until it fails, or until the process is told to end. Then it first answers the calls that it has: Crossplane does
// not repeat them, and each would be a failed reconcile.
func Run(fn fnv1.FunctionRunnerServiceServer, o Options) error {
	server, err := newServer(fn, o)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), o.Network, o.Address)
	if err != nil {
		return fmt.Errorf("cannot listen for %s connections at address %q: %w", o.Network, o.Address, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return serve(ctx, server, l)
}

// serve serves until the context ends, and answers the calls that were received before.
func serve(ctx context.Context, server *grpc.Server, l net.Listener) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		defer time.AfterFunc(drain, server.Stop).Stop()
		server.GracefulStop()
	})
	if err := server.Serve(l); err != nil {
		stop()
		return fmt.Errorf("cannot serve gRPC connections: %w", err)
	}
	if !stop() {
		<-ended
	}
	return nil
}

// newServer makes the server that function.Serve of the SDK makes, behind a Gate.
func newServer(fn fnv1.FunctionRunnerServiceServer, o Options) (*grpc.Server, error) {
	sdk := &function.ServeOptions{}
	for _, apply := range []function.ServeOption{function.MTLSCertificates(o.TLSCertsDir), function.Insecure(o.Insecure)} {
		if err := apply(sdk); err != nil {
			return nil, fmt.Errorf("cannot use the TLS certificates: %w", err)
		}
	}
	if sdk.Credentials == nil {
		return nil, errors.New("no credentials: set --tls-certs-dir or --insecure")
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
		if o.Metrics != nil {
			prometheus.MustRegister(o.Metrics)
			options = append(options, grpc.StatsHandler(o.Metrics))
		}
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
		go func() { _ = m.ListenAndServe() }() // As in the SDK, calls go on without metrics.
	}
	return server, nil
}
