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
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
)

// A Remote is a cluster of its own beside the control plane, with everything that
// serves, and without Crossplane. The control plane has a ClusterProviderConfig and a
// cluster-scoped ProviderConfig of its name for provider-kubernetes, and both once more
// for services that name a configuration themselves, because they may not name one of
// the fleet. What comes from outside passes a gate that can be shut.
type Remote struct {
	*Kubernetes

	// door is where provider-kubernetes reaches the API server.
	door string
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

// CutOff makes the cluster unreachable for whoever is outside: for provider-kubernetes, and
// for the gateways of other clusters. Connections end. Gateways cannot connect any more, and
// other connections are closed at once, where a network might let both hang until a time-out.
// The cluster lives on.
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
	r.gate = newGate()
	if err := r.openDoor(); err != nil {
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

// openDoor listens for those outside who call the API server.
func (r *Remote) openDoor() error {
	l, err := net.Listen("tcp", address(0)) //nolint:noctx // It returns at once.
	if err != nil {
		return err
	}
	r.door = l.Addr().String()
	to := strings.TrimPrefix(r.Config.Host, "https://")
	guarded := r.gate.guard(l)
	r.begin(func(context.Context) error {
		for {
			from, err := guarded.Accept()
			if err != nil {
				return err
			}
			go passOn(from, to)
		}
	})
	r.begin(func(ctx context.Context) error {
		<-ctx.Done()
		r.gate.shut()
		return l.Close()
	})
	return nil
}

// passOn connects a caller with an address.
func passOn(from net.Conn, address string) {
	to, err := net.Dial("tcp", address) //nolint:noctx // It returns at once: it is on this machine.
	if err != nil {
		_ = from.Close()
		return
	}
	between(from, to)
}

// A gate lets connections in, unless it is shut. Where there is none, all come in.
type gate struct {
	mu      sync.Mutex
	closed  bool
	passing map[net.Conn]bool
}

func newGate() *gate { return &gate{passing: map[net.Conn]bool{}} }

// gates are those of guarded listeners, by their addresses.
var gates sync.Map

// guard returns a listener that accepts what the gate lets in.
func (g *gate) guard(l net.Listener) net.Listener {
	if g == nil {
		return l
	}
	gates.Store(l.Addr().String(), g)
	return &guardedListener{l, g}
}

// reachable fails for an address behind a gate that is shut, as connecting with a host fails to
// which there is no way.
func reachable(address string) error {
	if g, ok := gates.Load(address); ok && g.(*gate).isShut() { //nolint:forcetypeassert // It has nothing else.
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	return nil
}

type guardedListener struct {
	net.Listener

	gate *gate
}

// Accept waits for the next connection that is let in.
func (l *guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.gate.enter(conn) {
			return &guardedConn{conn, l.gate}, nil
		}
		_ = conn.Close()
	}
}

type guardedConn struct {
	net.Conn

	gate *gate
}

// Close ends the listener. Its address is not behind the gate any more.
func (l *guardedListener) Close() error {
	gates.CompareAndDelete(l.Addr().String(), l.gate)
	return l.Listener.Close()
}

// Close closes the connection, which the gate then forgets.
func (c *guardedConn) Close() error {
	c.gate.leave(c.Conn)
	return c.Conn.Close()
}

func (g *gate) enter(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.passing[conn] = true
	}
	return !g.closed
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

func (g *gate) leave(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.passing, conn)
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
