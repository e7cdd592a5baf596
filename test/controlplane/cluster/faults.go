package cluster

import (
	"context"
	"slices"
)

// KillFunctions kills the processes of all functions, as a node that runs out of
// memory does, and returns how many there were. They are started again.
func (c *Cluster) KillFunctions() int {
	k := c.containers
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.running {
		k.log("pod %s is killed", r.pod)
		r.process.kill()
	}
	return len(k.running)
}

// CrashAPIServer kills the API server and starts it again.
func (c *Cluster) CrashAPIServer(ctx context.Context) error {
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
	return c.recovers(ctx)
}

// recovers waits until the API server serves. A kubelet tries again what failed
// meanwhile; KWOK forgets it, unless it is started anew.
func (c *Cluster) recovers(ctx context.Context) (err error) {
	if err := c.serves(ctx); err != nil {
		return err
	}
	c.kwok, err = c.crash(c.kwok)
	return err
}

// crash kills a process and starts its program again, which takes its place among
// those that are ended with the cluster.
func (c *Cluster) crash(p *process) (*process, error) {
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
