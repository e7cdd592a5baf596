package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/test/process"
)

// A target is a function that is measured.
type target struct {
	title  string
	binary string
	// args but for the address.
	args []string
	// method that it serves. Releases of before 2025 know v1beta1 only, whose
	// messages have the same form.
	method string
	// request takes a workload's request in the form that is for this target.
	request func(*call) []byte
}

const (
	methodV1      = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
	methodV1beta1 = "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction"
)

// A server is a running target, and who calls it.
type server struct {
	*target

	process *process.Process
	caller  *caller
}

// start runs a target and returns once it accepts connections. What it logs is not kept.
func start(ctx context.Context, t *target) (*server, error) {
	p, err := process.Start(ctx, nil, t.binary, t.args...)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", t.title, err)
	}
	c, err := dial(p.Address, t.method)
	if err != nil {
		p.Stop()
		return nil, err
	}
	return &server{target: t, process: p, caller: c}, nil
}

func (s *server) stop() {
	s.caller.close()
	s.process.Stop()
}

// memory returns the resident memory of a process and its peak, in MiB.
func (s *server) memory() (now, peak float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.PID()))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the memory of %s: %w", s.title, err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "VmRSS:":
			now = mib(f[1])
		case f[0] == "VmHWM:":
			peak = mib(f[1])
		}
	}
	return now, peak, nil
}

func mib(kib string) float64 {
	n, _ := strconv.ParseFloat(kib, 64) // The kernel writes numbers.
	return n / 1024
}
