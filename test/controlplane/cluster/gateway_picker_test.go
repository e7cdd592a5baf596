package cluster

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"
)

// A fakePicker answers as it is told, and remembers what it was asked.
type fakePicker struct {
	extprocv3.UnimplementedExternalProcessorServer

	// destination in the header, and in the metadata.
	header, metadata string
	// immediate answers instead: to the request, or to the response.
	immediate, later *extprocv3.ImmediateResponse
	// fails is where it ends without an answer.
	fails string
	// body replaces that of the request.
	body string
	// change changes each part of the response.
	change func(string) string

	seen map[string]string
}

func (f *fakePicker) Process(s extprocv3.ExternalProcessor_ProcessServer) error {
	body := ""
	for {
		m, err := s.Recv()
		if err != nil {
			return nil //nolint:nilerr // The gateway has what it wanted.
		}
		var answers []*extprocv3.ProcessingResponse
		switch r := m.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_RequestHeaders:
			f.see("request", r.RequestHeaders.GetHeaders())
			f.seen["modes"] = fmt.Sprint(m.GetProtocolConfig().GetRequestBodyMode(), " ", m.GetProtocolConfig().GetResponseBodyMode())
			if r.RequestHeaders.GetEndOfStream() {
				answers = f.request()
			}
			if f.immediate != nil {
				return s.Send(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: f.immediate}})
			}
			if f.fails == "request" {
				return io.ErrUnexpectedEOF
			}
		case *extprocv3.ProcessingRequest_RequestBody:
			body += string(r.RequestBody.GetBody())
			if r.RequestBody.GetEndOfStream() {
				f.seen["body"] = body
				// It comes back in two parts.
				answers = append(f.request(), f.requestBody(f.body[:1], false), f.requestBody(f.body[1:], true))
			}
		case *extprocv3.ProcessingRequest_ResponseHeaders:
			f.see("response", r.ResponseHeaders.GetHeaders())
			f.seen["served"] = m.GetMetadataContext().GetFilterMetadata()[lbNamespace].GetFields()[servedKey].GetStringValue()
			answers = f.responseHeaders()
			if f.fails == "response" {
				return io.ErrUnexpectedEOF
			}
		case *extprocv3.ProcessingRequest_ResponseBody:
			if f.fails == "body" {
				return io.ErrUnexpectedEOF
			}
			b := common(f.change(string(r.ResponseBody.GetBody())), r.ResponseBody.GetEndOfStream())
			answers = []*extprocv3.ProcessingResponse{{Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: b}}}
		}
		for _, a := range answers {
			if err := s.Send(a); err != nil {
				return err
			}
		}
	}
}

func (f *fakePicker) see(what string, m *corev3.HeaderMap) {
	for _, h := range m.GetHeaders() {
		f.seen[what+" "+h.GetKey()] = string(h.GetRawValue())
	}
}

func (f *fakePicker) request() []*extprocv3.ProcessingResponse {
	set := []*corev3.HeaderValueOption{header("x-picker", "was here"), header("Content-Length", "12345")}
	if f.header != "" {
		set = append(set, header(destinationKey, f.header))
	}
	m := &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{
		Response: &extprocv3.CommonResponse{HeaderMutation: &extprocv3.HeaderMutation{SetHeaders: set, RemoveHeaders: []string{"x-secret"}}},
	}}}
	if f.metadata != "" {
		m.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{lbNamespace: structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{destinationKey: structpb.NewStringValue(f.metadata)},
		})}}
	}
	return []*extprocv3.ProcessingResponse{m}
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, RawValue: []byte(value)}}
}

func common(body string, end bool) *extprocv3.BodyResponse {
	return &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{BodyMutation: &extprocv3.BodyMutation{
		Mutation: &extprocv3.BodyMutation_StreamedResponse{StreamedResponse: &extprocv3.StreamedBodyResponse{Body: []byte(body), EndOfStream: end}},
	}}}
}

func (f *fakePicker) requestBody(body string, end bool) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: common(body, end)}}
}

func (f *fakePicker) responseHeaders() []*extprocv3.ProcessingResponse {
	if f.later != nil {
		return []*extprocv3.ProcessingResponse{{Response: &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: f.later}}}
	}
	return []*extprocv3.ProcessingResponse{{Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{
		Response: &extprocv3.CommonResponse{HeaderMutation: &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{header("x-seen", "1")}}},
	}}}}
}

// poolPlane has an InferencePool with three pods, of which the third is not ready, and with a picker
// at 10.0.0.9:9002.
func poolPlane(t *testing.T, mode string, f *fakePicker) *testPlane {
	t.Helper()
	p := plane(t,
		`{kind: Service, metadata: {name: epp, namespace: default}, spec: {selector: {app: epp}, ports: [{port: 9002, targetPort: 9002}]}}`,
		pod("epp-1", "10.0.0.9", "True", ""), pod("m-1", "10.0.0.1", "True", ""), pod("m-2", "10.0.0.2", "True", ""), pod("m-3", "10.0.0.3", "False", ""))
	p.rules(`[{backendRefs: [{name: m, group: inference.networking.k8s.io, kind: InferencePool}]}]`,
		`{kind: InferencePool, metadata: {name: m}, spec: {selector: {matchLabels: {app: m}}, targetPorts: [{number: 8000}],
			endpointPickerRef: {name: epp, kind: Service, group: "", port: {number: 9002}, failureMode: `+mode+`}}}`)
	if f != nil {
		p.picker(f)
	}
	return p
}

// picker starts an endpoint picker.
func (p *testPlane) picker(f *fakePicker) (stop func()) {
	p.Helper()
	own, err := certificate()
	if err != nil {
		p.Fatal(err)
	}
	f.seen = map[string]string{}
	l, err := net.Listen("tcp", address(0)) //nolint:noctx // It returns at once.
	if err != nil {
		p.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12})))
	extprocv3.RegisterExternalProcessorServer(s, f)
	go func() { _ = s.Serve(l) }()
	p.Cleanup(s.Stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at["10.0.0.9:9002"] = l.Addr().String()
	return s.Stop
}

// echo answers with the address, and what arrived there.
func (p *testPlane) echo(addresses ...string) {
	for _, a := range addresses {
		p.backend(a, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, a, " got ", string(b), " of ", r.ContentLength, r.Header.Get("x-picker"), r.Header.Get("x-secret"))
		})
	}
}

func TestPicker(t *testing.T) {
	t.Parallel()
	tooMany := &extprocv3.ImmediateResponse{
		Status: &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests}, Body: []byte("later"),
		Headers: &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{header("retry-after", "1")}},
	}
	for name, test := range map[string]struct {
		mode   string
		picker *fakePicker
		want   string
		// cut says that the answer does not come to its end.
		cut bool
	}{
		"header":                  {"FailClose", &fakePicker{header: "10.0.0.2:8000", body: "new body", change: strings.ToUpper}, "200 10.0.0.2:8000 GOT NEW BODY OF 8WAS HERE", false},
		"metadata":                {"FailClose", &fakePicker{metadata: "10.0.0.1:8000", body: "b", change: unchanged}, "200 10.0.0.1:8000 got b of 1was here", false},
		"the next of several":     {"FailClose", &fakePicker{metadata: "10.0.0.7:8000, 10.0.0.2:8000,10.0.0.1:8000", body: "b", change: unchanged}, "200 10.0.0.2:8000 got b of 1was here", false},
		"none can be connected":   {"FailOpen", &fakePicker{metadata: "10.0.0.7:8000,10.0.0.8:8000", body: "b", change: unchanged}, "503", false},
		"an answer of its own":    {"FailOpen", &fakePicker{immediate: tooMany}, "429 later retry-after 1", false},
		"one for the response":    {"FailOpen", &fakePicker{metadata: "10.0.0.1:8000", body: "b", later: tooMany}, "429 later retry-after 1", false},
		"it fails, closed":        {"FailClose", &fakePicker{fails: "request"}, "500", false},
		"it fails, open":          {"FailOpen", &fakePicker{fails: "request"}, "200 10.0.0.x:8000 got the body of 8hidden", false},
		"it names none, closed":   {"FailClose", &fakePicker{body: "b"}, "500", false},
		"it names none, open":     {"FailOpen", &fakePicker{body: "b"}, "200 10.0.0.x:8000 got the body of 8hidden", false},
		"fails later, closed":     {"FailClose", &fakePicker{metadata: "10.0.0.1:8000", body: "b", fails: "response"}, "500", false},
		"fails later, open":       {"FailOpen", &fakePicker{metadata: "10.0.0.1:8000", body: "b", fails: "response"}, "200 10.0.0.1:8000 got b of 1was here", false},
		"fails in the body, open": {"FailOpen", &fakePicker{metadata: "10.0.0.1:8000", body: "b", fails: "body"}, "200 ", true},
		"there is none, closed":   {"FailClose", nil, "500", false},
		"there is none, open":     {"FailOpen", nil, "200 10.0.0.x:8000 got the body of 8hidden", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := poolPlane(t, test.mode, test.picker)
			p.echo("10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000")
			r := p.request(http.MethodPost, "/v1/completions", strings.NewReader("the body"))
			r.Header.Set("X-Secret", "hidden")
			r.Header.Set(destinationKey, "10.0.0.3:8000")
			rsp, err := ownConnections.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer rsp.Body.Close()
			b, err := io.ReadAll(rsp.Body)
			if (err != nil) != test.cut {
				t.Errorf("the answer ends with %v", err)
			}
			got := fmt.Sprint(rsp.StatusCode, " ", string(b))
			if after := rsp.Header.Get("retry-after"); after != "" {
				got += " retry-after " + after
			}
			if rsp.StatusCode >= 500 {
				got = strconv.Itoa(rsp.StatusCode)
			}
			want := []string{test.want, test.want}
			if strings.Contains(test.want, "10.0.0.x") {
				want = []string{strings.ReplaceAll(test.want, ".x:", ".1:"), strings.ReplaceAll(test.want, ".x:", ".2:")}
			}
			if got != want[0] && got != want[1] {
				t.Errorf("answer %q, want %q", got, want)
			}
		})
	}
}

// TestPickerSees tells what an endpoint picker is told.
func TestPickerSees(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", chunkSize)
	f := &fakePicker{metadata: "10.0.0.7:8000,10.0.0.2:8000", body: long, change: unchanged}
	p := poolPlane(t, "FailClose", f)
	p.backend("10.0.0.2:8000", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	})
	r := p.request(http.MethodPost, "/v1/completions?a=b", strings.NewReader(long))
	r.Header.Set("X-Request-Id", "42")
	r.Header.Set(destinationKey, "10.0.0.3:8000")
	r.Host = "model.example.com"
	if got := p.do(r); got != "201 "+strings.TrimSpace(long) {
		t.Errorf("the body comes back with %d bytes, want %d", len(got), len(long)+3)
	}
	full := filterv3.ProcessingMode_FULL_DUPLEX_STREAMED.String()
	for what, want := range map[string]string{
		"request :method": "POST", "request :path": "/v1/completions?a=b", "request :authority": "model.example.com", "request x-request-id": "42",
		"request " + destinationKey: "", "body": long, "modes": full + " " + full,
		"response :status": "201", "response content-type": "text/event-stream", "served": "10.0.0.2:8000",
	} {
		if got := f.seen[what]; got != want {
			t.Errorf("%s is %.40q, want %.40q", what, got, want)
		}
	}
	// A request without a body ends with its header.
	f.seen["body"] = "none"
	if got := p.get("/v1/models"); got != "201 " || f.seen["body"] != "none" || f.seen["request x-request-id"] == "" {
		t.Errorf("a request without a body is answered with %q; the picker saw %q", got, f.seen)
	}
}

// TestPickerStreams holds that each part of a response passes the picker before the next one is
// there.
func TestPickerStreams(t *testing.T) {
	t.Parallel()
	f := &fakePicker{metadata: "10.0.0.1:8000", change: strings.ToUpper}
	poolPlane(t, "FailClose", f).streams(f.change)
}

// TestPickerRestarts holds that requests reach a picker as soon as it is there, whatever failed
// before.
func TestPickerRestarts(t *testing.T) {
	t.Parallel()
	p := poolPlane(t, "FailClose", nil)
	p.echo("10.0.0.1:8000")
	for range 3 {
		f := &fakePicker{metadata: "10.0.0.1:8000", change: unchanged}
		stop := p.picker(f)
		if got, want := p.get("/"), "200 10.0.0.1:8000 got  of 0was here"; got != want {
			t.Errorf("answer %q, want %q", got, want)
		}
		stop()
		if got := p.get("/"); !strings.HasPrefix(got, "500 ") {
			t.Errorf("answer %q without a picker, want 500", got)
		}
	}
	if diff := cmp.Diff(0, len(p.pickers.conns)); diff != "" {
		t.Errorf("connections with pickers that failed: %s", diff)
	}
}
