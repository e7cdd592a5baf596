package serve

import (
	"context"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
)

const (
	// memoryPerByte is how much memory a call takes at most for each byte of its encoded
	// request. The part "hostile" of the bench measures it. Most calls take a twentieth.
	memoryPerByte = 64
	// maxSmall is the largest small request, in bytes. The request of a service with 100
	// observed replicas is as large.
	maxSmall = 512 << 10
	// overhead is what the process takes for itself and for encoded requests that wait, in
	// bytes.
	overhead = 160 << 20
	// maxWaiting is what large encoded requests that wait may take together, in bytes: as much as the
	// largest that a server receives by default. Small ones are as many as the streams of their callers.
	maxWaiting = 64 << 20
	// minForCalls is what all calls together get at least, in bytes.
	minForCalls = 64 << 20
)

// A Gate admits calls while there is memory for them. Large requests have a share of their
// own, so small ones never wait for them.
type Gate struct {
	large, small *lane
	// waiting has the bytes of large encoded requests that are not admitted yet.
	waiting *semaphore.Weighted
}

// A lane is a share of the memory. Calls that wait for it are admitted in order of arrival.
type lane struct {
	free  *semaphore.Weighted
	total int64
}

func newLane(bytes int64) *lane { return &lane{semaphore.NewWeighted(bytes), bytes} }

// NewGate makes a Gate for a process that may take this much memory, in bytes.
func NewGate(memory int64) *Gate {
	all := max(memory-overhead, minForCalls)
	return &Gate{large: newLane(all / 2), small: newLane(all / 2), waiting: semaphore.NewWeighted(maxWaiting)}
}

// Enter waits until there is memory for a request of this size, in bytes. The caller must
// call leave once the request is served. It returns an error if the context is done first, and
// ResourceExhausted if too many large requests wait already: Crossplane calls again, a while later each time.
func (g *Gate) Enter(ctx context.Context, bytes int) (leave func(), err error) {
	l := g.small
	if bytes > maxSmall {
		l = g.large
	}
	// A request that needs more than the whole share is admitted alone.
	want := min(int64(bytes)*memoryPerByte, l.total)
	if !l.free.TryAcquire(want) {
		if err := g.wait(ctx, l, want, int64(bytes)); err != nil {
			return nil, err
		}
	}
	return func() { l.free.Release(want) }, nil
}

// wait waits for the memory of a request in a lane.
func (g *Gate) wait(ctx context.Context, l *lane, want, bytes int64) error {
	if l == g.large {
		waits := min(bytes, maxWaiting)
		if !g.waiting.TryAcquire(waits) {
			return status.Errorf(codes.ResourceExhausted, "this request of %d MiB cannot wait for memory: large ones that wait may have %d MiB together", bytes>>20, maxWaiting>>20)
		}
		defer g.waiting.Release(waits)
	}
	if err := l.free.Acquire(ctx, want); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// guard returns a service whose calls enter the gate before their requests are decoded, and
// leave it after their responses are encoded.
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
		response, err := handle(service, ctx, received.Decode, interceptor)
		if err != nil {
			return nil, err
		}
		return codec.Encode(response)
	}
}
