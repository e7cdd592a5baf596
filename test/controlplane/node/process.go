package node

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// A process is that of a container, with all that it started.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	// code to exit with. It is there once the process has exited.
	code int32
	// close ends what passes its connections on.
	close func()
}

// start starts the process of a container. What it writes is added to the log of the container.
func (a *Agent) start(p *corev1.Pod, name string, l *launch) (*process, error) {
	if len(l.argv) == 0 {
		return nil, errors.New("no command specified")
	}
	bin, err := a.find(l.argv[0])
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(a.dir(p), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(a.dir(p), name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // A log of this container.
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // The process has it, too.
	r := &process{exited: make(chan struct{}), close: func() {}}
	r.cmd = exec.Command(bin, l.argv[1:]...) //nolint:gosec,noctx // The container's own command; kill ends it.
	r.cmd.Args[0] = l.argv[0]
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = l.dir, l.env, log, log
	r.cmd.ExtraFiles = []*os.File{a.lifeline}
	if err := a.Start(r.cmd); err != nil {
		return nil, err
	}
	if len(l.forward) > 0 {
		r.close = forward(l.forward)
	}
	go func() {
		_ = r.cmd.Wait()
		// The first process of a container takes the others with it.
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		r.close()
		r.code = exitCode(r.cmd.ProcessState)
		close(r.exited)
	}()
	return r, nil
}

// signal sends a signal to all processes of the container, unless it has exited.
func (r *process) signal(s syscall.Signal) {
	select {
	case <-r.exited:
	default:
		_ = syscall.Kill(-r.cmd.Process.Pid, s)
	}
}

// exitCode is the code with which a container has ended: 128 and the signal that ended it, or its
// own.
func exitCode(s *os.ProcessState) int32 {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int32(w.Signal()) //nolint:gosec // A small number.
	}
	return int32(s.ExitCode()) //nolint:gosec // A small number.
}
