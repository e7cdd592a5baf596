package cluster

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a program that runs until it is stopped.
type process struct {
	program
	log    string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// A program is what a process is to run.
type program struct {
	// name of the process and of its log.
	name string
	// bin is where it is.
	bin  string
	args []string
	// env is added to the environment of this process.
	env []string
}

// start runs a program. What it writes is added to a file.
func start(dir string, of program) (*process, error) {
	p := &process{program: of, log: filepath.Join(dir, of.name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", of.name, err)
	}
	p.cmd = exec.Command(of.bin, of.args...) //nolint:gosec,noctx // A program that was built for this; stop ends it.
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	// A dozen of them share few processors. Memory is what there is more of.
	p.cmd.Env = append(append(environment(), "GOGC=300"), of.env...)
	p.cmd.SysProcAttr = attributes()
	if err := launch(p.cmd); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("cannot start %s: %w", of.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = log.Close()
		close(p.exited)
	}()
	return p, nil
}

// environment is that of this process without proxies: nothing goes anywhere else.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
}

// launches are started by one thread that lives as long as the test: a child
// whose parent thread ends is killed, which is what is wanted of the
// test's end only.
var launches = func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
}()

func launch(cmd *exec.Cmd) error {
	err := make(chan error)
	launches <- func() { err <- cmd.Start() }
	return <-err
}

// stop ends the process, by force if it takes too long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// kill ends the process by force.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// failed says why a process does not do what is waited for.
func (p *process) failed(why string) error {
	return fmt.Errorf("%s %s; the end of its log:\n%s", p.name, why, tail(p.log, 40))
}

// waitFor polls until something is so. A process that ends will never do
// what it is waited for.
func (p *process) waitFor(ctx context.Context, what string, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		last = done(ctx)
		select {
		case <-p.exited:
			// Whatever answered was another.
			return p.failed(fmt.Sprintf("has ended (%v)", p.err))
		default:
		}
		if last == nil {
			return nil
		}
		select {
		case <-p.exited:
			continue
		case <-ctx.Done():
			return p.failed(fmt.Sprintf("is not %s (%v)", what, last))
		case <-time.After(pollEvery):
		}
	}
}

// patience is how long anything may take before a test gives up. It is far more
// than is needed, because slow machines are not what is tested.
const (
	patience  = 10 * time.Minute
	pollEvery = 50 * time.Millisecond
)

func tail(file string, lines int) []byte {
	b, err := os.ReadFile(file) //nolint:gosec // A log of this test.
	if err != nil {
		return []byte(err.Error())
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}

// Linux takes the ports of connections, and those of listeners that do not care, from 32768
// on. One of these could be taken again before a program listens there.
const (
	firstPort = 12000
	lastPort  = 32000
)

// taken has the ports that ports has returned. A program listens only some time after it has
// got its port, and another one must not get the same port until then.
var taken sync.Map

// ports returns free ports of the loopback address. No port is returned twice.
func ports(n int) ([]int, error) {
	free := make([]int, 0, n)
	for range 1000 {
		if len(free) == n {
			return free, nil
		}
		p := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // Others that look at the same time find others.
		l, err := net.Listen("tcp", address(p))        //nolint:noctx // It returns at once.
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, again := taken.LoadOrStore(p, true); !again {
			free = append(free, p)
		}
	}
	return nil, fmt.Errorf("cannot find %d free ports from %d to %d", n, firstPort, lastPort)
}
