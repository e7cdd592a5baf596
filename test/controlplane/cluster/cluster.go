/*
Package cluster runs a Kubernetes control plane on this machine: the programs
themselves, built from their modules, on free ports of the loopback address,
without Docker and without being root. Up starts all of it, with Crossplane and
what an InferenceService needs; Start and the Run methods start parts.

There is no container. What kubelets would do is done by three parts:

  - KWOK says that pods run, and nothing does. It looks after the nodes, too.
  - Containers run the processes of Crossplane's functions and providers.
  - With Options.Engines a node agent runs the pods of services: engines, endpoint pickers and routing
    sidecars. Programs that stand in for engines answer requests at the addresses of the pods. Package
    node says what a container is there, and ../engine what the stand-ins do.

With Options.Engines these are true, and can be relied on:

  - A pod that has a label fusioninfer.io/service and is bound to a node gets an address of the cluster's
    part of 127.0.0.0/8, from 127.N.128.1 on. KWOK gives other pods those before it.
  - Each process listens at the address of its pod, at the port of its container: an engine, the
    routing sidecar, and the endpoint picker, whose ports are gRPC (9002), health (9003) and metrics
    (9090).
  - A pod is ready when its probes say so. It is not ready from its deletion on, and serves until its
    preStop hook is done and its process has ended after SIGTERM.
  - The logs of a pod are in Dir()/pods/NAMESPACE/NAME: one for each container, and pod.log of what was
    done to it.
  - A pod that loads weights, by its label fusioninfer.io/model-loader, is run in the same way. What it writes
    into a claim, others find there. Images of volumes are pulled from a registry on loopback only.

Each cluster has a gateway, see StandInGateway. It passes requests on to the addresses of pods, and
to the gateways of other clusters.
*/
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// Options of a Cluster.
type Options struct {
	// Dir has logs, keys and data. It is made if it is not there.
	Dir string
	// Progress is told what is being done, in short lines. Nobody is, if it is nil.
	Progress func(string)
	// Nodes of KWOK, and the GPUs that each of them has.
	Nodes, GPUs int
	// NodesPerHyperNode puts that many nodes below each of Volcano's HyperNodes, and
	// all of those below one. Zero makes none.
	NodesPerHyperNode int
	// CoreArgs are more arguments of Crossplane core.
	CoreArgs []string
	// Clusters is how many remote clusters there are besides, see Remote. Each has as
	// many nodes of the same kind.
	Clusters int
	// Engines runs the pods of engines and endpoint pickers, see RunEngines. Without it KWOK says
	// that they run.
	Engines bool
	// Kueue runs Kueue in each remote cluster.
	Kueue bool
	// Autoscaling runs the controller of HorizontalPodAutoscalers, KEDA, Prometheus and
	// kube-state-metrics, see RunAutoscaling.
	Autoscaling bool
	// Adapter makes Autoscaling run prometheus-adapter in place of KEDA.
	Adapter bool
	// Packages has the packages of versions that are built already, each in a directory of
	// its name. Others are built, and all if it is empty.
	Packages string
}

// A Cluster is a control plane. Its processes end with the process that started it.
type Cluster struct {
	*Kubernetes

	options Options
	etcd    *process
	// etcdURL is where it listens.
	etcdURL string
	core    *process
	// coreMetrics is where core says what it does.
	coreMetrics string
	// proxy is how core finds functions, see serviceProxy.
	proxy      string
	registry   *Registry
	containers *Containers
	remotes    []*Remote
	prometheus *prometheus
	// stateMetrics is where kube-state-metrics serves what it knows.
	stateMetrics string
	keda         *keda
}

// Start starts etcd and an API server. Whatever comes of it, Stop has to be called
// on the cluster.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := newCluster(ctx, o)
	return c, c.start(ctx)
}

func newCluster(ctx context.Context, o Options) *Cluster {
	c := &Cluster{Kubernetes: newKubernetes(ctx, "inferenceservice", o.Dir), options: o}
	c.autoscales = o.Autoscaling
	return c
}

// Stop ends all processes, first those of remote clusters. It tells of those that had ended
// before, and of what failed in the background.
func (c *Cluster) Stop() error {
	c.stop() // What runs in the background may need remote clusters.
	stops := make([]func() error, 0, len(c.remotes))
	for _, r := range c.remotes {
		stops = append(stops, r.Stop)
	}
	// They need etcd.
	return errors.Join(together(stops...), c.Kubernetes.Stop())
}

// Test starts etcd and an API server that end with the test.
func Test(t testing.TB) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), Options{Dir: logs(t)})
	EndsWith(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// EndsWith stops a cluster with the test, and fails the test if a part of it ended
// before.
func EndsWith(t testing.TB, c *Cluster) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func (c *Cluster) progress(format string, args ...any) {
	if c.options.Progress != nil {
		c.options.Progress(fmt.Sprintf(format, args...))
	}
}

func (c *Cluster) start(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of the cluster: %w", err)
	}
	p, err := ports(2)
	if err != nil {
		return err
	}
	c.etcdURL = "http://" + address(p[0])
	c.etcd, err = c.run(program{name: "etcd", args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=http://" + address(p[1]),
		"--unsafe-no-fsync",
	}})
	if err != nil {
		return err
	}
	return c.serve(ctx, c.etcdURL)
}

// programs builds what is run, and returns the directory that has it.
func programs(names ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	if _, err := outputOnce(filepath.Join(root, "test", "tools", "build.sh"), names...); err != nil {
		return "", err
	}
	return filepath.Join(root, ".cache", "bin"), nil
}

// Root is the root of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "test", "tools", "build.sh"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot find the root of the repository: %w", err)
		}
		dir = filepath.Dir(dir)
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
