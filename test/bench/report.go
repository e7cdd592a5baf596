package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// results are all figures of one run.
type results struct {
	bench       *bench
	latencies   []latency
	throughput  map[*target][]float64
	footprints  map[*target]*footprint
	collections []*collection
	hostility   *hostility
}

// of returns a call's latencies.
func (r *results) of(workload, state string) latency {
	for _, l := range r.latencies {
		if l.call == r.bench.find(workload, state) {
			return l
		}
	}
	return latency{}
}

func (r *results) report() string {
	b := &strings.Builder{}
	_, _ = fmt.Fprintf(b, "%d cores, %s/%s, %s. Medians of %d rounds; in brackets the middle half of the rounds.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), rounds)
	r.limits(b)
	r.latency(b)
	r.footprint(b)
	reportCollections(b, r.collections)
	r.hostility.report(b)
	return b.String()
}

// limits are the project's own limits for these figures.
func (r *results) limits(b *strings.Builder) {
	ours, floor, other := r.bench.function, r.bench.floor, r.bench.goTemplating
	row := func(what, limit, measured string) { _, _ = fmt.Fprintf(b, "| %s | %s | %s |\n", what, limit, measured) }
	b.WriteString("| | limit | measured |\n|---|---|---|\n")
	for _, w := range []struct{ workload, limit string }{{"story 4", "at most 1.25 x"}, {"300 replicas", "at most 1.2 x"}} {
		for _, state := range []string{"first", "steady"} {
			l := r.of(w.workload, state)
			row(w.workload+", "+state+", against the floor", w.limit, times(ratios(l.spent[ours], l.spent[floor])))
		}
	}
	for _, s := range []struct{ state, limit string }{{"first", "at least 7 x faster"}, {"steady", "at least 4.5 x faster"}} {
		l := r.of("story 4", s.state)
		row("story 4, "+s.state+", against function-go-templating", s.limit, times(ratios(l.spent[other], l.spent[ours])))
	}
	row(fmt.Sprintf("throughput, %d callers, story 4, steady, against the floor", callers), "at least 0.9 x",
		times(ratios(r.throughput[ours], r.throughput[floor])))
	row(fmt.Sprintf("memory after %d calls", manyCalls), "at most 45 MiB", fmt.Sprintf("%.0f MiB", median(r.footprints[ours].after)))
	row(fmt.Sprintf("peak of memory with %d callers", callers), "at most 90 MiB", fmt.Sprintf("%.0f MiB", median(r.footprints[ours].peak)))
}

func (r *results) latency(b *strings.Builder) {
	ours, floor, other := r.bench.function, r.bench.floor, r.bench.goTemplating
	b.WriteString("\n| one call | request | answer | floor | this function | go-templating | against the floor | go-templating against this function |\n|---|---|---|---|---|---|---|---|\n")
	for _, l := range r.latencies {
		_, _ = fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", l.call.tag(), kb(len(l.call.function)), kb(l.call.size),
			ms(median(l.spent[floor])), ms(median(l.spent[ours])), ms(median(l.spent[other])),
			times(ratios(l.spent[ours], l.spent[floor])), times(ratios(l.spent[other], l.spent[ours])))
	}
}

func (r *results) footprint(b *strings.Builder) {
	_, _ = fmt.Fprintf(b, "\n| story 4, steady | calls a second, %d callers | memory idle | after %d calls | peak, %d callers | first answer after the start |\n|---|---|---|---|---|---|\n", callers, manyCalls, callers)
	for _, t := range r.bench.targets() {
		f := r.footprints[t]
		_, _ = fmt.Fprintf(b, "| %s | %.0f | %.0f MiB | %.0f MiB | %.0f MiB | %s |\n", t.title, median(r.throughput[t]),
			median(f.idle), median(f.after), median(f.peak), ms(median(f.firstAnswer)))
	}
}

func times(ratios []float64) string {
	return fmt.Sprintf("%.2f x (%.2f to %.2f)", median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

func kb(n int) string { return fmt.Sprintf("%.0f KB", float64(n)/1000) }

// The part of the document that the command writes.
const (
	begin = "<!-- Written by make bench. -->\n"
	end   = "<!-- The end of what make bench writes. -->\n"
)

// write puts the report into a document, between its markers.
func write(path, report string) error {
	b, err := os.ReadFile(path) //nolint:gosec // The caller's document.
	if err != nil {
		return fmt.Errorf("cannot read the document: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the figures, which is between %q and %q", path, begin, end)
	}
	if err := os.WriteFile(path, []byte(before+begin+report+end+after), 0o600); err != nil { //nolint:gosec // The caller's document.
		return fmt.Errorf("cannot write the document: %w", err)
	}
	return nil
}
