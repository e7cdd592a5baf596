package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A collection is a way to decide when the function's garbage is collected, and what it costs.
type collection struct {
	name string
	args []string
	// gogc is Go's own setting.
	gogc string

	// cpu of one call.
	cpu []time.Duration
	// after many calls one by one, and peak with many callers, both in MiB.
	after, peak []float64
}

// callsOfATurn are enough to be seen by the kernel's clock.
const callsOfATurn = 100

// collections measures what the headroom of main.go buys, beside Go's own setting without it.
func collections(ctx context.Context, b *bench, c *call) ([]*collection, error) {
	without := []string{"--heap-headroom=0"}
	all := []*collection{
		{name: "as shipped: GOGC=100, headroom", gogc: "100"},
		{name: "GOGC=100", args: without, gogc: "100"},
		{name: "GOGC=150", args: without, gogc: "150"},
		{name: "GOGC=200", args: without, gogc: "200"},
	}
	progress("collection of garbage")
	running := make([]*server, 0, len(all))
	defer func() { stopAll(running) }()
	for _, w := range all {
		p, err := w.start(ctx, b.function)
		if err != nil {
			return nil, err
		}
		running = append(running, p)
	}
	for i := range rounds + 1 {
		for j, w := range all {
			spent, err := spend(ctx, running[j], c)
			if err != nil {
				return nil, err
			}
			if i > 0 { // The first round warms up.
				w.cpu = append(w.cpu, spent/callsOfATurn)
			}
		}
	}
	for range memoryRuns {
		for _, w := range all {
			if err := w.measureMemory(ctx, b.function, c); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// start starts the function, which has the environment of this process.
func (w *collection) start(ctx context.Context, function *target) (*server, error) {
	before, set := os.LookupEnv("GOGC")
	if err := os.Setenv("GOGC", w.gogc); err != nil {
		return nil, fmt.Errorf("cannot set GOGC: %w", err)
	}
	defer func() {
		_ = os.Unsetenv("GOGC")
		if set {
			_ = os.Setenv("GOGC", before)
		}
	}()
	t := *function
	t.args = slices.Concat(t.args, w.args)
	return start(ctx, &t)
}

// spend calls a few times and returns the CPU time of these calls.
func spend(ctx context.Context, p *server, c *call) (time.Duration, error) {
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	for range callsOfATurn {
		if _, err := p.caller.call(ctx, p.request(c)); err != nil {
			return 0, err
		}
	}
	after, err := p.cpu()
	return after - before, err
}

func (w *collection) measureMemory(ctx context.Context, function *target, c *call) error {
	p, err := w.start(ctx, function)
	if err != nil {
		return err
	}
	defer p.stop()
	for range manyCalls {
		if _, err := p.caller.call(ctx, p.request(c)); err != nil {
			return err
		}
	}
	after, _, err := p.memory()
	if err != nil {
		return err
	}
	if _, _, err := crowd(ctx, p, p.request(c), 3*busyTurn); err != nil {
		return err
	}
	_, peak, err := p.memory()
	w.after, w.peak = append(w.after, after), append(w.peak, peak)
	return err
}

// reportCollections writes what each way costs.
func reportCollections(b *strings.Builder, all []*collection) {
	_, _ = fmt.Fprintf(b, "\n| story 4, steady, by when garbage is collected | CPU of a call | against the first | memory after %d calls | peak, %d callers |\n|---|---|---|---|---|\n", manyCalls, callers)
	for _, w := range all {
		_, _ = fmt.Fprintf(b, "| %s | %s | %s | %.0f MiB | %.0f MiB |\n", w.name, ms(median(w.cpu)), times(ratios(w.cpu, all[0].cpu)), median(w.after), median(w.peak))
	}
}
