package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
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

// A process is a running target.
type process struct {
	*target

	cmd    *exec.Cmd
	caller *caller
}

// start runs a target and returns once it accepts connections.
func start(ctx context.Context, t *target) (*process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{target: t}
	args := append([]string{"--insecure", "--address=" + address}, t.args...)
	p.cmd = exec.CommandContext(ctx, t.binary, args...) //nolint:gosec // The bench built it.
	// Logs go where they cost what they cost in a cluster, but are not kept.
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", t.title, err)
	}
	if err := waitFor(ctx, address); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s does not listen: %w", t.title, err)
	}
	if p.caller, err = dial(address, t.method); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *process) stop() {
	if p.caller != nil {
		p.caller.close()
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// memory returns the resident memory of a process and its peak, in MiB.
func (p *process) memory() (now, peak float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the memory of %s: %w", p.title, err)
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

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func waitFor(ctx context.Context, address string) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(200 * time.Microsecond)
	}
}
