package traffic

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// serving returns a target that a handler serves.
func serving(t *testing.T, h http.HandlerFunc) Target {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Target{Gateway: strings.TrimPrefix(s.URL, "http://"), Host: "chat.example.com", Model: "m"}
}

// TestAsk tells who has answered, and answers in full from others.
func TestAsk(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stream    bool
		status    int
		body      string
		via       []string
		prefilled string
		want      Answer
		wantErr   string
	}{
		"Whole":            {status: 200, body: `{"id":"a"}`, want: Answer{Pod: "pod-0"}},
		"TwoGateways":      {status: 200, body: `{}`, via: []string{"1.1 cluster-1", "1.1 fleet"}, want: Answer{Cluster: "cluster-1", Pod: "pod-0"}},
		"Prefilled":        {status: 200, body: `{}`, prefilled: "10.0.0.1", want: Answer{Pod: "pod-0", Prefilled: true}},
		"Stream":           {stream: true, status: 200, body: "data: {}\n\ndata: [DONE]\n\n", want: Answer{Pod: "pod-0"}},
		"CutWhole":         {status: 200, body: `{"id":`, want: Answer{Pod: "pod-0"}, wantErr: "cut at its end"},
		"CutStream":        {stream: true, status: 200, body: "data: {}\n\n", want: Answer{Pod: "pod-0"}, wantErr: "cut at its end"},
		"Failed":           {status: 503, body: "no endpoint", want: Answer{Pod: "pod-0"}, wantErr: "503 Service Unavailable: no endpoint"},
		"FailedWithStream": {stream: true, status: 500, body: "data: [DONE]", want: Answer{Pod: "pod-0"}, wantErr: "500 Internal Server Error: data: [DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			to := serving(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				asked = r.Method + " " + r.Host + r.URL.Path + " " + string(b)
				w.Header()["Via"] = tc.via
				w.Header().Set("X-Served-By", "pod-0")
				w.Header().Set("X-Prefilled-At", tc.prefilled)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			got, err := to.Ask(t.Context(), tc.stream)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || gotErr != tc.wantErr {
				t.Errorf("error %q, want %q; -want, +got:\n%s", gotErr, tc.wantErr, diff)
			}
			want := `POST chat.example.com/v1/chat/completions {"max_tokens":5,"messages":[{"content":"Hello","role":"user"}],"model":"m"}`
			if tc.stream {
				want = `POST chat.example.com/v1/chat/completions {"max_tokens":100,"messages":[{"content":"Hello","role":"user"}],"model":"m","stream":true}`
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("request: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestNext counts a request in the phase in which it began, however late it is answered.
func TestNext(t *testing.T) {
	t.Parallel()
	arrived, answers := make(chan chan int), [2]chan int{make(chan int), make(chan int)}
	to := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		status := <-<-arrived
		w.Header().Set("Via", "1.1 cluster-1")
		w.Header().Set("X-Served-By", "pod-0")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "{}")
	})
	s := &Sender{target: to, now: NewPhase()}
	var phases []*Phase
	for _, a := range answers {
		s.all.Go(func() { s.one(t.Context(), false) })
		arrived <- a
		phases = append(phases, s.Next())
	}
	answers[1] <- http.StatusOK
	answers[0] <- http.StatusBadGateway
	for _, p := range phases {
		p.Wait()
	}
	phases = append(phases, s.Next())
	failed, answered := map[string]int{"502 Bad Gateway: {}": 1}, map[Answer]int{{Cluster: "cluster-1", Pod: "pod-0"}: 1}
	same := cmp.Options{cmpopts.IgnoreUnexported(Phase{}), cmpopts.IgnoreFields(Phase{}, "Took"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff([]*Phase{{Sent: 1, Wrong: failed}, {Sent: 1, Answered: answered}, {}}, phases, same); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	sum := &Phase{Answered: map[Answer]int{}, Wrong: map[string]int{}}
	for _, p := range phases {
		sum.Add(p)
	}
	if diff := cmp.Diff(&Phase{Sent: 2, Wrong: failed, Answered: answered}, sum, same); diff != "" {
		t.Errorf("the sum: -want, +got:\n%s", diff)
	}
	if sum.Failed() != 1 || sum.Took != phases[0].Took+phases[1].Took+phases[2].Took {
		t.Errorf("of the sum %d failed in %s, and its phases took %s, %s and %s", sum.Failed(), sum.Took, phases[0].Took, phases[1].Took, phases[2].Took)
	}
}

// TestSend sends until the context ends, and cuts nothing off then.
func TestSend(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan bool), make(chan bool)
	var streams atomic.Int64
	to := serving(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		stream := strings.Contains(string(b), `"stream":true`)
		if stream {
			streams.Add(1)
		}
		select {
		case arrived <- true:
		case <-release:
		}
		<-release
		if stream {
			_, _ = io.WriteString(w, "data: [DONE]\n")
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	ctx, stop := context.WithCancel(t.Context())
	s := Send(ctx, to, time.Millisecond)
	for range 9 {
		<-arrived
	}
	stop()
	close(release)
	s.Wait()
	p := s.Next()
	if diff := cmp.Diff(map[string]int{}, p.Wrong); diff != "" || p.Sent < 9 {
		t.Errorf("%d requests are sent; what is wrong with them: -want, +got:\n%s", p.Sent, diff)
	}
	if want := (p.Sent + 3) / 4; int(streams.Load()) != want {
		t.Errorf("%d of %d requests are for streams, want %d", streams.Load(), p.Sent, want)
	}
}
