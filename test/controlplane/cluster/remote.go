package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// A Remote is a cluster of its own beside the control plane, with everything that
// serves, and without Crossplane. The control plane has a ClusterProviderConfig and a
// cluster-scoped ProviderConfig of its name for provider-kubernetes, which reaches it
// through a gate that can be shut; and both once more for services that name a
// configuration themselves, because they may not name one of the fleet.
type Remote struct {
	*Kubernetes

	gate *gate
}

// Remotes are all remote clusters, cluster-1 first.
func (c *Cluster) Remotes() []*Remote { return c.remotes }

// Remote is a remote cluster by its name. It panics if there is none.
func (c *Cluster) Remote(name string) *Remote {
	for _, r := range c.remotes {
		if r.name == name {
			return r
		}
	}
	panic(fmt.Sprintf("there is no remote cluster %q: Options.Clusters is %d", name, c.options.Clusters))
}

// Name of the cluster, and of its configurations of provider-kubernetes for the fleet.
func (r *Remote) Name() string { return r.name }

// Direct is the name of its configurations for services that name them themselves.
func (r *Remote) Direct() string { return r.name + direct }

const direct = "-direct"

// ByConfig is the remote cluster that a configuration reaches. It panics if there is none.
func (c *Cluster) ByConfig(name string) *Remote { return c.Remote(strings.TrimSuffix(name, direct)) }

// CutOff makes the cluster unreachable for provider-kubernetes. It lives on.
func (r *Remote) CutOff() { r.gate.shut() }

// Reconnect ends what CutOff did.
func (r *Remote) Reconnect() { r.gate.open() }

// runRemotes starts the remote clusters, all at once. They share the control plane's
// etcd.
func (c *Cluster) runRemotes(ctx context.Context) error {
	var runs []func() error
	for i := range c.options.Clusters {
		name := "cluster-" + strconv.Itoa(i+1)
		r := &Remote{Kubernetes: newKubernetes(ctx, name, filepath.Join(c.dir, name))}
		c.remotes = append(c.remotes, r)
		runs = append(runs, func() error {
			if err := r.run(ctx, c.etcdURL, c.options); err != nil {
				return fmt.Errorf("cannot start %s: %w", name, err)
			}
			return nil
		})
	}
	return together(runs...)
}

func (r *Remote) run(ctx context.Context, etcd string, o Options) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if err := r.serve(ctx, etcd); err != nil {
		return err
	}
	if err := r.openNetwork(); err != nil {
		return err
	}
	var err error
	if r.gate, err = r.runGate(strings.TrimPrefix(r.Config.Host, "https://")); err != nil {
		return err
	}
	return together(
		func() error { return r.RunControllers(ctx, controllersBesides...) },
		func() error {
			// Nothing there is placed any further.
			if err := r.InstallDefinitions(ctx, coreModule, providerModule); err != nil {
				return err
			}
			if err := r.runInference(ctx, o); err != nil || !o.Kueue {
				return err
			}
			return r.RunKueue(ctx)
		},
		func() error { return r.runNodes(ctx, o) },
	)
}

// addContexts adds the remote clusters to the kubeconfig of the control plane, each as a
// context of its name.
func (c *Cluster) addContexts() error {
	all := c.kubeconfig(c.Config.Host, c.Config.BearerToken)
	for _, r := range c.remotes {
		its := r.kubeconfig(r.Config.Host, r.Config.BearerToken)
		all.Clusters[r.name], all.AuthInfos[r.name], all.Contexts[r.name] = its.Clusters[r.name], its.AuthInfos[r.name], its.Contexts[r.name]
	}
	// Somebody may be reading it.
	if err := clientcmd.WriteToFile(all, c.Kubeconfig+".new"); err != nil {
		return err
	}
	return os.Rename(c.Kubeconfig+".new", c.Kubeconfig)
}

// A gate passes on connections, unless it is shut.
type gate struct {
	// at is where it listens, and to where it leads.
	at, to string

	mu      sync.Mutex
	closed  bool
	passing map[net.Conn]bool
}

// runGate makes a gate that is open, and ends with the cluster.
func (c *Kubernetes) runGate(to string) (*gate, error) {
	l, err := net.Listen("tcp", address(0)) //nolint:noctx // It returns at once.
	if err != nil {
		return nil, err
	}
	g := &gate{at: l.Addr().String(), to: to, passing: map[net.Conn]bool{}}
	c.begin(func(context.Context) error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			go g.pass(conn)
		}
	})
	c.begin(func(ctx context.Context) error {
		<-ctx.Done()
		g.shut()
		return l.Close()
	})
	return g, nil
}

func (g *gate) pass(from net.Conn) {
	defer from.Close() //nolint:errcheck // Whoever called learns of it in any case.
	g.mu.Lock()
	closed := g.closed
	if !closed {
		g.passing[from] = true
	}
	g.mu.Unlock()
	if closed {
		return
	}
	defer func() {
		g.mu.Lock()
		delete(g.passing, from)
		g.mu.Unlock()
	}()
	to, err := net.Dial("tcp", g.to) //nolint:noctx // It returns at once: it is on this machine.
	if err != nil {
		return
	}
	between(from, to)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// shut ends connections that are there, and all that come.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for conn := range g.passing {
		_ = conn.Close()
	}
}
