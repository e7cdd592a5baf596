package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"
)

// pickers are the connections with endpoint pickers.
//
// A gateway asks an endpoint picker by Envoy's protocol for external processing, in its mode
// FULL_DUPLEX_STREAMED: the picker gets the header and the body of the request, and gives back
// both, perhaps changed, with the endpoints to try. Then it gets the response, and gives it back.
type pickers struct {
	dial func(ctx context.Context, address string) (net.Conn, error)

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
	// dropped have no connection after a minute without an answer.
	dropped []*grpc.ClientConn
}

// The names of the endpoint picker protocol.
const (
	destinationKey = "x-gateway-destination-endpoint"
	servedKey      = "x-gateway-destination-endpoint-served"
	lbNamespace    = "envoy.lb"
	chunkSize      = 32 << 10
)

func newPickers(dial func(context.Context, string) (net.Conn, error)) *pickers {
	return &pickers{dial: dial, conns: map[string]*grpc.ClientConn{}}
}

func (p *pickers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, conn := range p.conns {
		_ = conn.Close()
		delete(p.conns, at)
	}
	for _, conn := range p.dropped {
		_ = conn.Close()
	}
}

func (p *pickers) conn(at string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn := p.conns[at]; conn != nil {
		return conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+at,
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(time.Minute),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return p.dial(ctx, at)
		}),
		// A picker makes its own certificate.
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))) //nolint:gosec // See above.
	if err != nil {
		return nil, err
	}
	p.conns[at] = conn
	return conn, nil
}

// drop forgets a connection that failed, so that the next request tries to connect at once. Others
// may still get answers by it.
func (p *pickers) drop(at string, failed *grpc.ClientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[at] == failed {
		delete(p.conns, at)
		p.dropped = append(p.dropped, failed)
	}
}

// A session is one request and its response at an endpoint picker.
type session struct {
	stream extprocv3.ExternalProcessor_ProcessClient
	cancel context.CancelFunc
	// open says that a response passes even if the picker fails before the body.
	open bool
}

func (s *session) end() { s.cancel() }

// ask asks the endpoint picker at an address about a request, and changes the request as it says.
// It returns the endpoints to try, in order. An *immediate is the picker's own answer.
func (p *pickers) ask(r *http.Request, at string, body []byte, open bool) (*session, []string, error) {
	conn, err := p.conn(at)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	s := &session{cancel: cancel, open: open}
	var to []string
	if s.stream, err = extprocv3.NewExternalProcessorClient(conn).Process(ctx); err == nil {
		to, err = s.request(r, body)
	}
	if err != nil {
		cancel()
		if immediate := (*immediate)(nil); !errors.As(err, &immediate) && r.Context().Err() == nil {
			p.drop(at, conn)
		}
		return nil, nil, err
	}
	return s, to, nil
}

func (s *session) request(r *http.Request, body []byte) ([]string, error) {
	// Only the picker says where a request goes.
	r.Header.Del(destinationKey)
	if r.Header.Get("X-Request-Id") == "" {
		r.Header.Set("X-Request-Id", rand.Text())
	}
	headers := headerMap(r.Header, ":method", r.Method, ":path", r.URL.RequestURI(), ":authority", r.Host, ":scheme", "http")
	// It may answer before it has read everything.
	hasBody := len(body) > 0
	go func() {
		full := filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
		if s.stream.Send(&extprocv3.ProcessingRequest{
			Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
				Headers: headers, EndOfStream: !hasBody,
			}},
			ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: full, ResponseBodyMode: full},
		}) != nil {
			return // Whoever receives learns why.
		}
		for len(body) > 0 {
			n := min(len(body), chunkSize)
			if s.stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{
				Body: body[:n], EndOfStream: n == len(body),
			}}}) != nil {
				return
			}
			body = body[n:]
		}
	}()
	return s.answer(r, hasBody)
}

// answer takes in what the picker says of a request. Only a whole answer changes the request.
func (s *session) answer(r *http.Request, hasBody bool) ([]string, error) {
	var to string
	var headers *extprocv3.HeadersResponse
	var body []byte
	for headers == nil || hasBody {
		m, err := s.receive()
		if err != nil {
			return nil, err
		}
		if d := m.GetDynamicMetadata().GetFields()[lbNamespace].GetStructValue().GetFields()[destinationKey].GetStringValue(); d != "" {
			to = d
		}
		switch {
		case m.GetRequestHeaders() != nil:
			headers = m.GetRequestHeaders()
		case m.GetRequestBody() != nil && hasBody:
			part, end, err := streamed(m.GetRequestBody())
			if err != nil {
				return nil, err
			}
			body, hasBody = append(body, part...), !end
		default:
			return nil, fmt.Errorf("unexpected message %T about a request", m.GetResponse())
		}
	}
	given := r.Header.Clone()
	mutateHeaders(r.Header, headers.GetResponse().GetHeaderMutation(), func(name, value string) { setPseudo(r, name, value) })
	if to = cmp.Or(to, r.Header.Get(destinationKey)); to == "" {
		r.Header = given
		return nil, errors.New("it names no endpoint")
	}
	setBody(r, body)
	all := strings.Split(to, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all, nil
}

// respond passes a response through the picker: its header now, its body as it comes. Where the
// picker fails before it got any of the body, the response passes as it is if the pool says so.
func (s *session) respond(r *http.Response, served string) error {
	hasBody := r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 && r.Request.Method != http.MethodHead
	metadata, err := structpb.NewStruct(map[string]any{servedKey: served})
	if err != nil {
		return err
	}
	// An error shows when receiving.
	_ = s.stream.Send(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{
			Headers: headerMap(r.Header, ":status", strconv.Itoa(r.StatusCode)), EndOfStream: !hasBody,
		}},
		MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{lbNamespace: metadata}},
	})
	m, err := s.receive()
	if err == nil && m.GetResponseHeaders() == nil {
		err = fmt.Errorf("unexpected message %T about a response", m.GetResponse())
	}
	if err != nil {
		if immediate := (*immediate)(nil); s.open && !errors.As(err, &immediate) && r.Request.Context().Err() == nil {
			return nil
		}
		return &problem{http.StatusInternalServerError, fmt.Errorf("the endpoint picker failed: %w", err)}
	}
	mutateHeaders(r.Header, m.GetResponseHeaders().GetResponse().GetHeaderMutation(), func(name, value string) {
		if status, err := strconv.Atoi(value); err == nil && name == ":status" {
			r.StatusCode = status
		}
	})
	if !hasBody {
		return nil
	}
	// It may become longer or shorter.
	r.Header.Del("Content-Length")
	r.ContentLength = -1
	read, write := io.Pipe()
	go s.pump(r.Body, write)
	go func() { _ = write.CloseWithError(s.drain(write)) }()
	r.Body = &throughPicker{PipeReader: read, body: r.Body}
	return nil
}

// throughPicker is the body of a response that comes back from an endpoint picker.
type throughPicker struct {
	*io.PipeReader
	body io.Closer
}

// Close closes it on both sides of the picker.
func (t *throughPicker) Close() error { return errors.Join(t.PipeReader.Close(), t.body.Close()) }

// pump sends the body of a response to the picker.
func (s *session) pump(body io.Reader, to *io.PipeWriter) {
	for {
		// The stream may keep what it sends.
		b := make([]byte, chunkSize)
		n, err := body.Read(b)
		if err != nil && !errors.Is(err, io.EOF) {
			// The client must not take what there is for the whole.
			_ = to.CloseWithError(err)
			s.cancel()
			return
		}
		if n > 0 || err != nil {
			if s.stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{
				Body: b[:n], EndOfStream: err != nil,
			}}}) != nil {
				return // Whoever receives learns why.
			}
		}
		if err != nil {
			_ = s.stream.CloseSend()
			return
		}
	}
}

// drain writes the body of a response as the picker gives it back.
func (s *session) drain(to io.Writer) error {
	for {
		m, err := s.receive()
		if err != nil {
			return fmt.Errorf("the endpoint picker failed: %w", err)
		}
		if m.GetResponseBody() == nil {
			return fmt.Errorf("unexpected message %T about a body", m.GetResponse())
		}
		part, end, err := streamed(m.GetResponseBody())
		if err != nil {
			return err
		}
		if _, err := to.Write(part); err != nil || end {
			return err
		}
	}
}

func (s *session) receive() (*extprocv3.ProcessingResponse, error) {
	m, err := s.stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if i := m.GetImmediateResponse(); i != nil {
		return nil, &immediate{i}
	}
	return m, nil
}

// An immediate is an answer that the endpoint picker gives in place of a backend.
type immediate struct{ of *extprocv3.ImmediateResponse }

func (i *immediate) Error() string {
	return fmt.Sprintf("the endpoint picker answers %d itself", i.of.GetStatus().GetCode())
}

func (i *immediate) write(w http.ResponseWriter) {
	mutateHeaders(w.Header(), i.of.GetHeaders(), func(string, string) {})
	status := int(i.of.GetStatus().GetCode())
	if status < 200 {
		status = http.StatusOK // The one that is meant where none is set.
	}
	w.WriteHeader(status)
	_, _ = w.Write(i.of.GetBody())
}

func streamed(b *extprocv3.BodyResponse) (part []byte, end bool, err error) {
	s := b.GetResponse().GetBodyMutation().GetStreamedResponse()
	if s == nil {
		return nil, false, errors.New("it gives back no body, as it does in FULL_DUPLEX_STREAMED")
	}
	return s.GetBody(), s.GetEndOfStream(), nil
}
