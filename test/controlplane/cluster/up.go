package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Programs are what Up runs, by the names of test/tools/build.sh.
var Programs = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "lws-manager",
	"volcano-scheduler", "volcano-controller-manager", "volcano-webhook-manager", "crossplane-core",
}

// controllersBesides are what a cluster with nodes and Crossplane needs of
// Kubernetes besides what RunControllers starts.
var controllersBesides = []string{
	"namespace-controller", "clusterrole-aggregation-controller", "disruption-controller", "job-controller",
	"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller",
	"node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller",
}

// Up starts a whole control plane: Kubernetes with nodes of KWOK, LeaderWorkerSet,
// Volcano, a gateway that passes requests on, Crossplane and a registry for packages,
// of which none is installed. Whatever comes of it, Stop has to be called on the
// cluster.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	begun := time.Now()
	c := newCluster(ctx, o)
	c.progress("building what is not built yet")
	if _, err := programs(o.programs()...); err != nil {
		return c, err
	}
	if err := c.start(ctx); err != nil {
		return c, err
	}
	c.progress("API server ready after %s", since(begun))
	if err := errors.Join(c.openNetwork(), c.runProxy(), c.runRegistry()); err != nil {
		return c, err
	}
	err := together(
		func() error {
			if err := c.RunControllers(ctx, controllersBesides...); err != nil {
				return err
			}
			if err := c.RunCrossplane(ctx); err != nil {
				return err
			}
			c.progress("Crossplane ready after %s", since(begun))
			if err := errors.Join(c.redirectImages(ctx), c.runContainers()); err != nil || o.Clusters == 0 {
				return err
			}
			return c.installProvider(ctx)
		},
		func() error {
			if err := c.InstallDefinitions(ctx, o.bringing()...); err != nil {
				return err
			}
			c.progress("definitions installed after %s", since(begun))
			return c.runInference(ctx, o)
		},
		func() error { return c.runNodes(ctx, o) },
		func() error {
			if err := c.runRemotes(ctx); err != nil || o.Clusters == 0 {
				return err
			}
			c.progress("remote clusters ready after %s", since(begun))
			return nil
		},
	)
	if err != nil {
		return c, err
	}
	if err := c.connectRemotes(ctx); err != nil {
		return c, err
	}
	if o.Autoscaling {
		// Prometheus scrapes the pods of all clusters.
		if err := c.RunAutoscaling(ctx); err != nil {
			return c, err
		}
		c.progress("autoscalers ready after %s", since(begun))
	}
	c.progress("everything ready after %s", since(begun))
	return c, nil
}

// programs that Up runs.
func (o Options) programs() []string {
	needed := slices.Clone(Programs)
	if o.Clusters > 0 {
		needed = append(needed, providerProgram, "crossplane")
	}
	if o.Engines {
		needed = append(needed, pickerProgram, llmdPickerProgram, sidecarProgram)
	}
	if o.Kueue {
		needed = append(needed, kueueProgram)
	}
	if o.Autoscaling {
		needed = append(needed, prometheusProgram, stateMetricsProgram)
		if o.Adapter {
			needed = append(needed, adapterProgram)
		} else {
			needed = append(needed, kedaOperator, kedaAdapter)
		}
	}
	return needed
}

// bringing are the modules whose definitions come with what is installed.
func (o Options) bringing() []string {
	if o.Clusters > 0 {
		return []string{coreModule, providerModule}
	}
	return []string{coreModule}
}

// runInference starts what serves: LeaderWorkerSet, Volcano and a stand-in for a
// gateway, which passes requests on. Their definitions have to be there.
func (c *Kubernetes) runInference(ctx context.Context, o Options) error {
	if err := c.RunStandInGateway(); err != nil {
		return err
	}
	return together(
		func() error { return errors.Join(c.StandbyLWS(ctx), c.LeadLWS(ctx)) },
		func() error {
			if err := c.RunVolcano(ctx); err != nil {
				return err
			}
			if err := c.RunVolcanoAdmission(ctx); err != nil {
				return err
			}
			if o.NodesPerHyperNode > 0 {
				return c.addHyperNodes(ctx, o.Nodes, o.NodesPerHyperNode)
			}
			return nil
		})
}

// runNodes starts the scheduler and nodes.
func (c *Kubernetes) runNodes(ctx context.Context, o Options) error {
	if err := c.RunScheduler(ctx); err != nil {
		return err
	}
	besides := ""
	if o.Engines {
		besides = enginePods
	}
	if err := c.RunKWOK(ctx, besides); err != nil {
		return err
	}
	if o.Engines {
		if err := c.RunEngines(); err != nil {
			return err
		}
	}
	return c.addKWOKNodes(ctx, o.Nodes, o.GPUs)
}

// TestUp starts a whole control plane that ends with the test. Its logs are kept if
// the test fails.
func TestUp(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Dir == "" {
		o.Dir = logs(t)
	}
	c, err := Up(t.Context(), o)
	EndsWith(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logs is a directory for a cluster. Where the test fails, its logs stay.
func logs(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "controlplane-") //nolint:usetesting // It stays if the test fails.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
			return
		}
		KeepLogs(dir)
		t.Logf("the logs of all processes are in %s", dir)
	})
	return dir
}

// KeepLogs removes everything from the directory of a cluster that ended, but the logs.
func KeepLogs(dir string) {
	var dirs []string
	_ = filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // What cannot be read stays.
		case e.IsDir():
			dirs = append(dirs, file)
		case filepath.Ext(file) != ".log":
			_ = os.Remove(file) //nolint:gosec // The directory is this process's own.
		}
		return nil
	})
	// Those that have something stay.
	for _, d := range slices.Backward(dirs) {
		_ = os.Remove(d)
	}
}

func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }

// together does several things at once, and waits for all.
func together(all ...func() error) error {
	errs := make([]error, len(all))
	wg := sync.WaitGroup{}
	for i, f := range all {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
