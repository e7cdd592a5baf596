package serve

import (
	"context"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
)

const (
	// perByte is how much memory a request takes at most while it is served, in bytes for
	// each of its bytes. The bench's part "hostile" measures it. Most requests take a
	// twentieth of that.
	perByte = 64
	// small is the most bytes of a request that passes by large ones. A service of 100
	// replicas with all that is observed of it has as much.
	small = 512 << 10
	// reserved is what the process takes without any call, and what it takes for the bytes of
	// calls that wait.
	reserved = 160 << 20
	// least is what calls get together, however little memory there is.
	least = 64 << 20
)

// A Gate lets calls in as there is memory for them. Large requests have a part of it of
// their own, so that small ones never wait behind them.
type Gate struct {
	large, small *lane
}

// A lane is a share of the memory. Who waits for it comes in the order of arrival.
type lane struct {
	room *semaphore.Weighted
	all  int64
}

func newLane(bytes int64) *lane { return &lane{semaphore.NewWeighted(bytes), bytes} }

// NewGate makes a Gate for a process that may take so much memory, in bytes.
func NewGate(memory int64) *Gate {
	all := max(memory-reserved, least)
	return &Gate{large: newLane(all / 2), small: newLane(all / 2)}
}

// Enter waits until there is room for a request of so many bytes. Whoever enters has to
// leave. It gives up with the context.
func (g *Gate) Enter(ctx context.Context, bytes int) (leave func(), err error) {
	l := g.small
	if bytes > small {
		l = g.large
	}
	// What needs more than there is has to be alone.
	want := min(int64(bytes)*perByte, l.all)
	if err := l.room.Acquire(ctx, want); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return func() { l.room.Release(want) }, nil
}

// guard has the methods of a service pass the gate, before their requests are decoded and
// until their answers are encoded.
func (g *Gate) guard(service *grpc.ServiceDesc) *grpc.ServiceDesc {
	guarded := *service
	guarded.Methods = make([]grpc.MethodDesc, len(service.Methods))
	for i, m := range service.Methods {
		guarded.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: g.method(m.Handler)}
	}
	return &guarded
}

func (g *Gate) method(handle grpc.MethodHandler) grpc.MethodHandler {
	return func(service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		received := &codec.Received{}
		if err := decode(received); err != nil {
			return nil, err
		}
		leave, err := g.Enter(ctx, received.Len())
		if err != nil {
			return nil, err
		}
		defer leave()
		answer, err := handle(service, ctx, received.Decode, interceptor)
		if err != nil {
			return nil, err
		}
		return codec.Encode(answer)
	}
}
