package cluster

import (
	"context"
	"slices"
)

// KillFunctions kills the processes of all functions, as a node that runs out of
// memory does, and returns how many there were. They are started again.
func (c *Cluster) KillFunctions() int { return c.containers.kill(functionPods) }

// KillProviders kills the processes of all providers in the same way.
func (c *Cluster) KillProviders() int { return c.containers.kill(providerPods) }

// kill kills the processes of the pods with a label.
func (k *Containers) kill(label string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, r := range k.running {
		if r.pod.Labels[label] == "" {
			continue
		}
		k.log("pod %s is killed", r.pod.Name)
		r.process.kill()
		n++
	}
	return n
}

// CrashAPIServer kills the API server and starts it again.
func (c *Kubernetes) CrashAPIServer(ctx context.Context) error {
	p, err := c.crash(c.apiserver)
	if err != nil {
		return err
	}
	c.apiserver = p
	return c.recovers(ctx)
}

// CrashEtcd kills etcd and starts it again with the data that it had.
func (c *Cluster) CrashEtcd(ctx context.Context) error {
	p, err := c.crash(c.etcd)
	if err != nil {
		return err
	}
	c.etcd = p
	for _, r := range c.remotes {
		if err := r.recovers(ctx); err != nil {
			return err
		}
	}
	return c.recovers(ctx)
}

// recovers waits until the API server serves. A kubelet tries again what failed
// meanwhile; KWOK forgets it, unless it is started anew.
func (c *Kubernetes) recovers(ctx context.Context) (err error) {
	if err := c.serves(ctx); err != nil {
		return err
	}
	c.kwok, err = c.crash(c.kwok)
	return err
}

// crash kills a process and starts its program again, which takes its place among
// those that are ended with the cluster.
func (c *Kubernetes) crash(p *process) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.kill()
	at := slices.Index(c.processes, p)
	c.processes = slices.Delete(c.processes, at, at+1)
	again, err := start(c.dir, p.program)
	if err != nil {
		return nil, err
	}
	c.processes = slices.Insert(c.processes, at, again)
	return again, nil
}
