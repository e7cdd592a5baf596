package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How much is measured. Machines are shared and busy: many short turns, of which
// each round's are compared with each other, tell more than few long ones.
const (
	rounds      = 31
	turn        = 60 * time.Millisecond
	callers     = 100
	busyRounds  = 9
	busyTurn    = time.Second
	manyCalls   = 1000
	freshStarts = 9
	memoryRuns  = 3
)

// A latency is what one call cost each target, per round.
type latency struct {
	call  *call
	spent map[*target][]time.Duration
}

// latencies measures each call one at a time, the targets taking turns.
func latencies(ctx context.Context, b *bench, running []*server) ([]latency, error) {
	all := make([]latency, 0, len(b.calls))
	for _, c := range b.calls {
		progress(c.tag())
		l := latency{call: c, spent: map[*target][]time.Duration{}}
		for i := range rounds + 1 {
			for _, p := range running {
				d, err := takeTurn(ctx, p, p.request(c))
				if err != nil {
					return nil, err
				}
				if i > 0 { // The first round warms up.
					l.spent[p.target] = append(l.spent[p.target], d)
				}
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// takeTurn calls for a while and returns what a call took.
func takeTurn(ctx context.Context, p *server, request []byte) (time.Duration, error) {
	started := time.Now()
	for n := 1; ; n++ {
		if _, err := p.caller.call(ctx, request); err != nil {
			return 0, err
		}
		if spent := time.Since(started); spent > turn {
			return spent / time.Duration(n), nil
		}
	}
}

// throughputs measures calls a second, with many callers at once.
func throughputs(ctx context.Context, c *call, running []*server) (map[*target][]float64, error) {
	all := map[*target][]float64{}
	for i := range busyRounds + 1 {
		for _, p := range running {
			n, spent, err := crowd(ctx, p, p.request(c), busyTurn)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				all[p.target] = append(all[p.target], float64(n)/spent.Seconds())
			}
		}
	}
	return all, nil
}

// crowd lets many callers call at once for a while, and counts their calls.
func crowd(ctx context.Context, p *server, request []byte, long time.Duration) (int64, time.Duration, error) {
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	started := time.Now()
	wg := sync.WaitGroup{}
	for range callers {
		wg.Go(func() {
			for time.Since(started) < long {
				if _, err := p.caller.call(ctx, request); err != nil {
					failed.Store(&err)
					return
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return calls.Load(), time.Since(started), nil
}

// A footprint is what a target takes of a machine.
type footprint struct {
	firstAnswer       []time.Duration
	after, peak, idle []float64
}

// footprints measures fresh processes: how soon they answer, and their memory
// after many calls one by one, and then with many callers at once.
func footprints(ctx context.Context, b *bench, c *call) (map[*target]*footprint, error) {
	all := map[*target]*footprint{b.floor: {}, b.function: {}, b.goTemplating: {}}
	// The floor's other answers would count as its memory.
	alone := *b.floor
	alone.args = []string{c.answerFile}
	for i := range freshStarts {
		for _, t := range b.targets() {
			f := all[t]
			if t == b.floor {
				t = &alone
			}
			if err := f.measure(ctx, t, c, i < memoryRuns); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (f *footprint) measure(ctx context.Context, t *target, c *call, memory bool) error {
	started := time.Now()
	p, err := start(ctx, t)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := p.caller.call(ctx, t.request(c)); err != nil {
		return err
	}
	f.firstAnswer = append(f.firstAnswer, time.Since(started))
	if !memory {
		return nil
	}
	idle, _, err := p.memory()
	if err != nil {
		return err
	}
	for range manyCalls {
		if _, err := p.caller.call(ctx, t.request(c)); err != nil {
			return err
		}
	}
	after, _, err := p.memory()
	if err != nil {
		return err
	}
	if _, _, err := crowd(ctx, p, t.request(c), 3*busyTurn); err != nil {
		return err
	}
	_, peak, err := p.memory()
	f.idle, f.after, f.peak = append(f.idle, idle), append(f.after, after), append(f.peak, peak)
	return err
}

// ratios compares two targets round by round.
func ratios[T time.Duration | float64](of, to []T) []float64 {
	r := make([]float64, min(len(of), len(to)))
	for i := range r {
		r[i] = float64(of[i]) / float64(to[i])
	}
	return r
}

// quantile of some values; 0.5 is their median.
func quantile[T time.Duration | float64](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func median[T time.Duration | float64](values []T) T { return quantile(values, 0.5) }
