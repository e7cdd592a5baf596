/*
Command up runs a whole control plane on this machine, without Docker and without
being root: Kubernetes with nodes that have GPUs and run stand-ins for engines,
LeaderWorkerSet, Volcano, a stand-in for a gateway, Crossplane, and a registry for
packages. With --clusters there are remote clusters of the same kind besides, which
provider-kubernetes reaches. With --autoscaling there are KEDA, Prometheus and
kube-state-metrics.

	controlplane up              starts it in the background, and says how to use it
	controlplane cut-off NAME    makes a remote cluster unreachable, as a network that fails
	controlplane reconnect NAME  makes it reachable again
	controlplane requests        sends requests to a service, and says who answered
	controlplane pictures        draws dashboards of Grafana, with --autoscaling
	controlplane down            ends it and removes what it left
*/
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

const commands = "up, cut-off, reconnect, requests, pictures or down"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no command: use " + commands)
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	s := state(filepath.Join(root, ".cache", "controlplane"))
	switch args[0] {
	case "cut-off", "reconnect":
		return s.tell(args[0], args[1:])
	case "requests":
		return requests(args[1:], os.Stdin, os.Stdout)
	case "pictures":
		return s.pictures(args[1:])
	}
	o := cluster.Options{CoreArgs: cluster.RecommendedCoreArgs}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.IntVar(&o.Nodes, "nodes", 12, "`number` of nodes")
	flags.IntVar(&o.GPUs, "gpus", 8, "`number` of GPUs of each node")
	flags.IntVar(&o.NodesPerHyperNode, "nodes-per-hypernode", 0, "`number` of nodes below each of Volcano's HyperNodes; 0 makes none")
	flags.BoolVar(&o.Engines, "engines", true, "run the pods of services, with stand-ins for engines; without it they only seem to run")
	flags.IntVar(&o.Clusters, "clusters", 0, "`number` of remote clusters, each with as many nodes")
	flags.BoolVar(&o.Autoscaling, "autoscaling", false, "run KEDA, Prometheus and kube-state-metrics")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return s.up(args[1:])
	case "down":
		return s.down()
	case "supervise":
		return s.supervise(o)
	}
	return fmt.Errorf("unknown command %q: use %s", args[0], commands)
}

// A state is the directory with everything of the control plane.
type state string

func (s state) file(name string) string { return filepath.Join(string(s), name) }

// ready is the last line of progress.
const ready = "ready"

// up starts the supervisor, and shows what it does until everything is ready.
func (s state) up(args []string) error {
	for _, tool := range []string{"go", "git", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is needed to build what is run, and is not there: %w", tool, err)
		}
	}
	if pid := s.pid(); pid != 0 {
		b, err := os.ReadFile(s.file("progress"))
		if err != nil || !strings.HasSuffix(string(b), ready+"\n") {
			return fmt.Errorf("process %d is starting one already: wait, or end it with make down", pid)
		}
		fmt.Println("It is up already. To start it with other settings, end it with make down.")
		return s.usage()
	}
	// What a supervisor left that was killed.
	if err := os.RemoveAll(string(s)); err != nil {
		return err
	}
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(s.file("supervisor.log"))
	if err != nil {
		return err
	}
	defer log.Close()                                                    //nolint:errcheck // It is the supervisor's.
	cmd := exec.Command(self, append([]string{"supervise"}, args...)...) //nolint:gosec,noctx // This program; it outlives this process.
	cmd.Stdout, cmd.Stderr = log, log
	// Ctrl-C in this shell is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the supervisor: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if err := s.follow(exited); err != nil {
		return err
	}
	return s.usage()
}

// follow shows the progress until everything is ready.
func (s state) follow(exited <-chan error) error {
	shown := 0
	for {
		var ended error
		over := false
		select {
		case ended = <-exited:
			over = true
		case <-time.After(50 * time.Millisecond):
		}
		b, err := os.ReadFile(s.file("progress"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		lines := strings.SplitAfter(string(b), "\n")
		for _, l := range lines[shown : len(lines)-1] {
			if l == ready+"\n" {
				return nil
			}
			fmt.Print("  " + l)
		}
		shown = len(lines) - 1
		if over {
			b, _ := os.ReadFile(s.file("supervisor.log"))
			return fmt.Errorf("the control plane did not start (%w); all logs are in %s:\n%s", ended, string(s), b)
		}
	}
}

func (s state) usage() error {
	b, err := os.ReadFile(s.file("usage"))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(b)
	return err
}

// down ends the supervisor, which ends everything else, and removes the state.
func (s state) down() error {
	if pid := s.pid(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("cannot end the supervisor, process %d: %w", pid, err)
		}
		for start := time.Now(); s.pid() != 0; time.Sleep(50 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				return fmt.Errorf("process %d does not end: see %s", pid, s.file("supervisor.log"))
			}
		}
	}
	return os.RemoveAll(string(s))
}

// pid of the supervisor. It is the one that holds the lock, which the kernel gives
// free with the process, so that another process of the same number is never meant.
func (s state) pid() int {
	f, err := os.Open(s.file("lock"))
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // It is only read.
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0
	}
	line, _ := bufio.NewReader(f).ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	return pid
}

func (s state) supervise(o cluster.Options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	lock, err := os.Create(s.file("lock"))
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // It is the end.
	if _, err := fmt.Fprintln(lock, os.Getpid()); err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another one has just been started: %w", err)
	}
	progress, err := os.Create(s.file("progress"))
	if err != nil {
		return err
	}
	defer progress.Close() //nolint:errcheck // It is only shown.
	o.Dir = string(s)
	o.Progress = func(line string) { _, _ = fmt.Fprintln(progress, line) }
	c, err := cluster.Up(ctx, o)
	if err == nil {
		err = errors.Join(os.WriteFile(s.file("usage"), usage(c, o), 0o600),
			os.WriteFile(s.file("registry.txt"), []byte(c.Registry().Organization+"\n"), 0o600),
			s.serveControl(ctx, control(c.Remotes())))
	}
	if err == nil && o.Autoscaling {
		err = os.WriteFile(s.file("prometheus.txt"), []byte(c.PrometheusURL()+"\n"), 0o600)
	}
	if err != nil {
		return errors.Join(err, c.Stop())
	}
	o.Progress(ready)
	<-ctx.Done()
	return c.Stop()
}

func usage(c *cluster.Cluster, o cluster.Options) []byte {
	bin := filepath.Join(filepath.Dir(o.Dir), "bin")
	remotes := ""
	if all := c.Remotes(); len(all) > 0 {
		remotes = fmt.Sprintf(`
Its remote clusters, %s to %s, are contexts of the same file, and ClusterProviderConfigs
of provider-kubernetes. One that is cut off cannot be reached until it is reconnected:

  kubectl --context %[1]s get nodes
  controlplane cut-off %[1]s
  controlplane reconnect %[1]s
`, all[0].Name(), all[len(all)-1].Name())
	}
	return fmt.Appendf(nil, `
A control plane with %d nodes of %d GPUs each is up. In your shell:

  export KUBECONFIG=%s
  export PATH=%s:$PATH    # kubectl, crossplane and controlplane
%s
Packages go to its registry, %s, and are found there under their public names:

  make packages push-packages VERSION=v0.1.0 ARCH=%s REGISTRY=%s

Gateways of any class pass requests on. The condition Programmed of each says where it listens.

make demo shows it at work, make demo-fleet with three more clusters, make demo-scaling with load; make down ends it. Logs are in %s.
`, o.Nodes, o.GPUs, c.Kubeconfig, bin, remotes, c.Registry().Organization, runtime.GOARCH, c.Registry().Organization, o.Dir)
}
