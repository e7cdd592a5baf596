package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
)

const mib = 1 << 20

// enter reports whether the gate admits a call without waiting.
func enter(t *testing.T, g *Gate, bytes int) (leave func(), ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	leave, err := g.Enter(ctx, bytes)
	return leave, err == nil
}

func TestGate(t *testing.T) {
	g := NewGate(512 * mib)
	var leave []func()
	for range 100 {
		l, ok := enter(t, g, 3*mib/2)
		if !ok {
			break
		}
		leave = append(leave, l)
	}
	if n := len(leave); n == 0 || n > 4 {
		t.Fatalf("%d calls of 1.5 MiB are admitted at once", n)
	}
	if l, ok := enter(t, g, 150<<10); ok {
		l()
	} else {
		t.Error("a small call waits for large ones")
	}
	leave[0]()
	if _, ok := enter(t, g, 3*mib/2); !ok {
		t.Error("a call that has left still takes memory")
	}
}

// TestGateHuge shows that a call that needs more than all memory is admitted, but alone.
func TestGateHuge(t *testing.T) {
	g := NewGate(0)
	leave, ok := enter(t, g, 64*mib)
	if !ok {
		t.Fatal("a huge call is not admitted")
	}
	if _, ok := enter(t, g, mib); ok {
		t.Error("a huge call is not alone")
	}
	leave()
	if _, ok := enter(t, g, mib); !ok {
		t.Error("a huge call that has left still takes memory")
	}
}

// TestGateRefuses shows that large requests do not wait without end: each takes memory before it is admitted.
func TestGateRefuses(t *testing.T) {
	g := NewGate(512 * mib)
	leave, ok := enter(t, g, 40*mib)
	if !ok {
		t.Fatal("the first call is not admitted")
	}
	waits := make(chan error, 1)
	go func() {
		l, err := g.Enter(t.Context(), 40*mib)
		for status.Code(err) == codes.ResourceExhausted { // The third call may be there before it.
			l, err = g.Enter(t.Context(), 40*mib)
		}
		if err == nil {
			l()
		}
		waits <- err
	}()
	refused := func() bool {
		_, err := g.Enter(gone(t), 30*mib)
		return status.Code(err) == codes.ResourceExhausted
	}
	for !refused() { // The second call may not wait yet.
		time.Sleep(time.Millisecond)
	}
	if _, ok := enter(t, g, 150<<10); !ok {
		t.Error("a small call is refused for large ones")
	}
	leave()
	if err := <-waits; err != nil {
		t.Errorf("a call that waits: %v", err)
	}
	if _, ok := enter(t, g, 30*mib); !ok {
		t.Error("calls that have left are still counted")
	}
}

// gone returns a context that is done.
func gone(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestGateGivesUp(t *testing.T) {
	g := NewGate(0)
	if _, ok := enter(t, g, 64*mib); !ok {
		t.Fatal("the first call is not admitted")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := g.Enter(ctx, 64*mib); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call whose deadline passes while it waits: got %v", err)
	}
}

// A runner counts the calls that it serves at once.
type runner struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	now, most atomic.Int64
	proceed   chan struct{}
}

func (r *runner) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	n := r.now.Add(1)
	defer r.now.Add(-1)
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); most = r.most.Load() {
	}
	if req.GetMeta().GetTag() != "small" {
		<-r.proceed
	}
	return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()}}, nil
}

// TestGuard calls a guarded service as gRPC does, with many calls at once.
func TestGuard(t *testing.T) {
	codec.Register()
	wire := encoding.GetCodecV2("proto")
	r := &runner{proceed: make(chan struct{})}
	guarded := NewGate(512 * mib).guard(&fnv1.FunctionRunnerService_ServiceDesc)
	call := func(ctx context.Context, tag string, size int) error {
		req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: tag}}
		if size > 0 {
			req.Credentials = map[string]*fnv1.Credentials{"c": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: map[string][]byte{"d": make([]byte, size)}}}}}
		}
		b, err := proto.Marshal(req)
		if err != nil {
			return err
		}
		response, err := guarded.Methods[0].Handler(r, ctx, func(v any) error { return wire.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, v) }, nil)
		if err != nil {
			return err
		}
		sent, err := wire.Marshal(response)
		if err != nil {
			return err
		}
		rsp := &fnv1.RunFunctionResponse{}
		if err := proto.Unmarshal(sent.Materialize(), rsp); err != nil {
			return err
		}
		return same(rsp.GetMeta().GetTag(), tag)
	}
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if err := call(t.Context(), "large", 3*mib/2); err != nil {
				t.Errorf("a large call: %v", err)
			}
		})
	}
	// While all of them run or wait, a small one is served.
	for r.now.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := call(t.Context(), "small", 0); err != nil {
		t.Errorf("a small call beside large ones: %v", err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := call(gone, "late", 3*mib/2); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a large call whose caller gives up: got %v", err)
	}
	close(r.proceed)
	callers.Wait()
	if most := r.most.Load(); most > 5 {
		t.Errorf("%d calls were served at once", most)
	}
}

func same(got, want string) error {
	if got != want {
		return errors.New("got the response to " + got)
	}
	return nil
}

// TestGuardsAll shows that all methods of a service are guarded.
func TestGuardsAll(t *testing.T) {
	d := &grpc.ServiceDesc{Methods: []grpc.MethodDesc{{MethodName: "a"}, {MethodName: "b"}}}
	if got := NewGate(0).guard(d); len(got.Methods) != 2 || got.Methods[1].MethodName != "b" || d.Methods[0].Handler != nil {
		t.Errorf("got %v of %v", got, d)
	}
}

func TestMemory(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   int64
	}{
		"None":      {reason: "Without a cgroup, the default is used.", want: defaultMemory},
		"V2":        {reason: "The limit of cgroup v2 is used.", files: map[string]string{limitFiles[0]: "268435456\n"}, want: 256 * mib},
		"Unlimited": {reason: "Without a limit in v2, the default is used.", files: map[string]string{limitFiles[0]: "max\n"}, want: defaultMemory},
		"V1":        {reason: "The limit of cgroup v1 is used.", files: map[string]string{limitFiles[1]: "268435456\n"}, want: 256 * mib},
		"V1None":    {reason: "Without a limit in v1, the default is used.", files: map[string]string{limitFiles[1]: "9223372036854771712\n"}, want: defaultMemory},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tc.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := Memory(root); got != tc.want {
				t.Errorf("%s got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
