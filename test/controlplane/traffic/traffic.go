// Package traffic sends requests to a service of a control plane, and counts what comes of them: which
// pods answered, in which clusters, and what failed.
package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Target is a service behind a gateway.
type Target struct {
	// Gateway is where the gateway listens: an address with a port.
	Gateway string
	// Host of the service's route, and the model that it serves.
	Host, Model string
}

// An Answer says who answered a request.
type Answer struct {
	// Cluster that has the pod: a cluster's name, see cluster.StandInGateway.
	Cluster string
	Pod     string
	// Prefilled says that another pod prefilled it.
	Prefilled bool
}

// Lengths of an answer, in tokens. A stand-in for an engine takes 20 ms for each.
const (
	tokens       = 5
	streamTokens = 100
)

// Ask sends a request for a chat completion, and returns who answered it. A stream lasts some two
// seconds. A response that is no success or is cut is an error; the answer then has what is known.
func (t Target) Ask(ctx context.Context, stream bool) (Answer, error) {
	ask := map[string]any{
		"model": t.Model, "max_tokens": tokens,
		"messages": []map[string]string{{"role": "user", "content": "Hello"}},
	}
	if stream {
		ask["stream"], ask["max_tokens"] = true, streamTokens
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return Answer{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.Gateway+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return Answer{}, err
	}
	r.Host = t.Host
	r.Header.Set("Content-Type", "application/json")
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		return Answer{}, fmt.Errorf("no response: %w", err)
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read to its end.
	by := answer(rsp.Header)
	if rsp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(rsp.Body)
		return by, fmt.Errorf("%s: %s", rsp.Status, b)
	}
	last := ""
	lines := bufio.NewScanner(rsp.Body)
	for lines.Scan() {
		if line := lines.Text(); line != "" {
			last = line
		}
	}
	switch {
	case lines.Err() != nil:
		return by, fmt.Errorf("cut: %w", lines.Err())
	case stream && last != "data: [DONE]", !stream && !strings.HasSuffix(last, "}"):
		return by, errors.New("cut at its end")
	}
	return by, nil
}

// answer reads who answered. The first gateway of Via is the nearest to the pod.
func answer(h http.Header) Answer {
	_, cluster, _ := strings.Cut(h.Get("Via"), " ")
	return Answer{Cluster: cluster, Pod: h.Get("X-Served-By"), Prefilled: h.Get("X-Prefilled-At") != ""}
}

// A Phase is what came of the requests that began in a time.
type Phase struct {
	// Took is how long it was.
	Took time.Duration
	// Sent is how many requests there were: the sum of Answered and Wrong.
	Sent int
	// Answered are those that were answered in full.
	Answered map[Answer]int
	// Wrong are those that failed or were cut, by their errors.
	Wrong map[string]int

	begun   time.Time
	running sync.WaitGroup
}

// NewPhase is a phase without requests, which begins now.
func NewPhase() *Phase {
	return &Phase{begun: time.Now(), Answered: map[Answer]int{}, Wrong: map[string]int{}}
}

// Wait waits until all requests of a phase that is over have ended.
func (p *Phase) Wait() { p.running.Wait() }

// Failed is how many requests failed or were cut.
func (p *Phase) Failed() int {
	n := 0
	for of := range maps.Values(p.Wrong) {
		n += of
	}
	return n
}

// Prefilled is how many requests were prefilled at another pod than the one that answered.
func (p *Phase) Prefilled() int {
	n := 0
	for by, of := range p.Answered {
		if by.Prefilled {
			n += of
		}
	}
	return n
}

// Add adds what came of another phase, all of whose requests have ended.
func (p *Phase) Add(o *Phase) {
	p.Took += o.Took
	p.Sent += o.Sent
	for by, n := range o.Answered {
		p.Answered[by] += n
	}
	for why, n := range o.Wrong {
		p.Wrong[why] += n
	}
}

// A Sender sends requests to a target, whatever comes of the earlier ones. Every fourth is for a stream.
type Sender struct {
	target Target
	all    sync.WaitGroup

	mu  sync.Mutex
	now *Phase
}

// Send starts to send a request each time that an interval has passed, until the context ends.
// Nothing but its answer ends a request.
func Send(ctx context.Context, to Target, interval time.Duration) *Sender {
	s := &Sender{target: to, now: NewPhase()}
	s.all.Go(func() {
		next := time.NewTicker(interval)
		defer next.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			s.all.Go(func() { s.one(context.WithoutCancel(ctx), i%4 == 0) })
		}
	})
	return s
}

// Wait waits until the last request has ended. The context of Send has to end before.
func (s *Sender) Wait() { s.all.Wait() }

// Next ends a phase and begins the next one. Requests of the phase may still run: see Phase.Wait.
func (s *Sender) Next() *Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.now
	s.now = NewPhase()
	ended.Took = s.now.begun.Sub(ended.begun)
	return ended
}

// one sends a request, and counts what comes of it.
func (s *Sender) one(ctx context.Context, stream bool) {
	s.mu.Lock()
	in := s.now
	in.Sent++
	in.running.Add(1)
	s.mu.Unlock()
	defer in.running.Done()
	by, err := s.target.Ask(ctx, stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		in.Wrong[err.Error()]++
		return
	}
	in.Answered[by]++
}
