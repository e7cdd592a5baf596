package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The limits that must hold while hostile requests are served.
const (
	maxCPU = time.Second
	crowds = 3
	atOnce = 20
)

// An attack is one hostile request, and what it cost a fresh process.
type attack struct {
	name    string
	request []byte

	cpu    time.Duration
	peak   float64
	answer int
	err    error
}

// hostility is what all attacks cost.
type hostility struct {
	attacks []*attack
	// limit is the memory of the manifest that is shipped, in MiB.
	limit float64
	// idle is the memory of a process without any call, in MiB.
	idle float64
	// peaks are the peaks of fresh processes with the costliest attacks at once, in MiB, and
	// normal what a normal call took meanwhile.
	peaks  []float64
	normal []time.Duration
}

const manifest = "../../package/install/function.yaml"

var memoryLimit = regexp.MustCompile(`limits:\s+memory: (\d+)Mi`)

// shippedLimit is the memory limit of the function's manifest, in MiB.
func shippedLimit() (float64, error) {
	b, err := os.ReadFile(manifest)
	if err != nil {
		return 0, fmt.Errorf("cannot read the manifest: %w", err)
	}
	m := memoryLimit.FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("%s has no memory limit in Mi", manifest)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// readAttacks has package hostile write its requests.
func readAttacks(ctx context.Context, dir string) ([]*attack, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "./test/hostile/write", dir) //nolint:gosec // Fixed but for the directory.
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot make the hostile requests: %w\n%s", err, out)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the hostile requests: %w", err)
	}
	all := make([]*attack, 0, len(files))
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name())) //nolint:gosec // A file that was just made.
		if err != nil {
			return nil, fmt.Errorf("cannot read a hostile request: %w", err)
		}
		_, name, _ := strings.Cut(f.Name(), " ")
		all = append(all, &attack{name: name, request: b})
	}
	return all, nil
}

// survive measures each attack alone, and then the costliest of them at once, with normal
// calls beside them.
func survive(ctx context.Context, b *bench, normal *call) (*hostility, error) {
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for the hostile requests: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h := &hostility{}
	if h.limit, err = shippedLimit(); err != nil {
		return nil, err
	}
	if h.attacks, err = readAttacks(ctx, dir); err != nil {
		return nil, err
	}
	limited := *b.function
	limited.args = append(slices.Clone(limited.args), fmt.Sprintf("--memory=%.0f", h.limit))
	for _, a := range h.attacks {
		progress("hostile: " + a.name)
		if h.idle, err = a.alone(ctx, &limited); err != nil {
			return nil, err
		}
	}
	for range crowds {
		progress(fmt.Sprintf("hostile: %d at once", atOnce))
		if err := h.together(ctx, &limited, normal); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// alone measures an attack on a fresh process, and returns what that takes before.
func (a *attack) alone(ctx context.Context, t *target) (idle float64, err error) {
	p, err := start(ctx, t)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if idle, _, err = p.memory(); err != nil {
		return 0, err
	}
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	// Beyond that it is not answered.
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, callErr := p.caller.call(limited, a.request)
	a.answer, a.err = len(answer), callErr
	after, err := p.cpu()
	if err != nil {
		return 0, err
	}
	a.cpu = after - before
	_, a.peak, err = p.memory()
	return idle, err
}

// costliest are the attacks that take most memory, and of the same most CPU.
func (h *hostility) costliest() []*attack {
	sorted := slices.Clone(h.attacks)
	slices.SortStableFunc(sorted, func(a, b *attack) int {
		return int((b.peak+float64(b.cpu.Milliseconds()))*10) - int((a.peak+float64(a.cpu.Milliseconds()))*10)
	})
	return sorted[:min(len(sorted), atOnce)]
}

// together sends the costliest attacks at once, and a normal call again and again for as
// long as they are not answered.
func (h *hostility) together(ctx context.Context, t *target, normal *call) error {
	p, err := start(ctx, t)
	if err != nil {
		return err
	}
	defer p.stop()
	var wg sync.WaitGroup
	for _, a := range h.costliest() {
		wg.Go(func() { _, _ = p.caller.call(ctx, a.request) }) // Some are errors, of gRPC too.
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
			started := time.Now()
			if _, err := p.caller.call(ctx, normal.function); err != nil {
				return fmt.Errorf("a normal call beside hostile ones: %w", err)
			}
			h.normal = append(h.normal, time.Since(started))
		}
	}
	_, peak, err := p.memory()
	h.peaks = append(h.peaks, peak)
	return err
}

// ticks of the kernel's clock in a second, in /proc.
const ticks = 100

// cpu is the time that a process has spent.
func (s *server) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.PID()))
	if err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of %s: %w", s.title, err)
	}
	// The name of the program may have anything in it, but for a closing bracket after it.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("cannot read the CPU time of %s", s.title)
	}
	user, _ := strconv.ParseInt(f[11], 10, 64) // The kernel writes numbers.
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks, nil
}

// hostile writes what hostile requests cost.
func (h *hostility) report(b *strings.Builder) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format, args...) }
	byCPU, byPeak, byAnswer := slices.Clone(h.attacks), slices.Clone(h.attacks), slices.Clone(h.attacks)
	slices.SortStableFunc(byCPU, func(a, b *attack) int { return int(b.cpu - a.cpu) })
	slices.SortStableFunc(byPeak, func(a, b *attack) int { return int((b.peak - a.peak) * 1000) })
	slices.SortStableFunc(byAnswer, func(a, b *attack) int { return b.answer - a.answer })
	p("\n| %d hostile requests of at most 1.5 MB | limit | measured |\n|---|---|---|\n", len(h.attacks))
	p("| CPU of one alone | at most %.0f ms | %.0f ms: %s |\n", maxCPU.Seconds()*1000, byCPU[0].cpu.Seconds()*1000, byCPU[0].name)
	p("| peak of memory of one alone; %.0f MiB without | at most %.0f MiB, as shipped | %.0f MiB: %s |\n", h.idle, h.limit, byPeak[0].peak, byPeak[0].name)
	p("| answer | at most 4.2 MB | %.1f MB: %s |\n", float64(byAnswer[0].answer)/1e6, byAnswer[0].name)
	p("| peak of memory of %d at once | at most %.0f MiB, as shipped | %.0f MiB |\n", atOnce, h.limit, slices.Max(h.peaks))
	p("| a normal call (%s) beside these | answered | median %s, longest %s |\n", "story 4, steady", ms(median(h.normal)), ms(slices.Max(h.normal)))
	p("\n| the costliest | request | CPU | peak of memory | answer |\n|---|---|---|---|---|\n")
	for _, a := range byCPU[:min(10, len(byCPU))] {
		p("| %s | %s | %.0f ms | %.0f MiB | %s |\n", a.name, kb(len(a.request)), a.cpu.Seconds()*1000, a.peak, a.shown())
	}
}

func (a *attack) shown() string {
	if a.err != nil {
		return "an error of gRPC"
	}
	return kb(a.answer)
}
