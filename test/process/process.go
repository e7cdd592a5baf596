/*
Package process builds the function, and serves it as a process of its own: as Crossplane meets it. Tests and the bench
share it, so it imports nothing but Go's own packages.
*/
package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"
)

const (
	// patience is how long a process may take to start listening.
	patience = 20 * time.Second
	// attempts to find a port. One that is free may be taken before the process has it.
	attempts = 5
)

// A Process is a function that is served on loopback.
type Process struct {
	// Address at which it is served, as host:port.
	Address string

	cmd   *exec.Cmd
	ended chan struct{}
}

// Start serves a function without TLS, and returns once it accepts connections. It adds the flags that say so to args. What the
// function logs goes to log; nil discards it. The process ends with the context, or by Stop.
func Start(ctx context.Context, log io.Writer, binary string, args ...string) (p *Process, err error) {
	for range attempts {
		if p, err = start(ctx, log, binary, args); err == nil || ctx.Err() != nil {
			return p, err
		}
	}
	return nil, err
}

func start(ctx context.Context, log io.Writer, binary string, args []string) (*Process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	args = append([]string{"--insecure", "--address=" + address}, args...)
	p := &Process{Address: address, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, binary, args...) //nolint:gosec // The caller's own.
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", binary, err)
	}
	go func() {
		_ = p.cmd.Wait() // It is killed.
		close(p.ended)
	}()
	if err := p.wait(ctx); err != nil {
		p.Stop()
		return nil, fmt.Errorf("%s does not listen at %s: %w", binary, address, err)
	}
	return p, nil
}

// wait waits until the process listens. It looks often, because the bench measures how long that takes.
func (p *Process) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it has ended: %w", err)
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the process. All of its log is written once it returns.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
