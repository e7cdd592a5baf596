package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RunControllers starts those controllers of Kubernetes that make pods, and those
// that remove what has no owner any more.
func (c *Cluster) RunControllers(t testing.TB) error {
	t.Helper()
	p, err := ports(1)
	if err != nil {
		return err
	}
	m, err := c.Run(t, "kube-controller-manager",
		"--kubeconfig="+c.kubeconfig,
		"--bind-address="+loopback,
		"--secure-port="+strconv.Itoa(p[0]),
		"--cert-dir="+c.dir,
		"--leader-elect=false",
		"--controllers=serviceaccount-controller,statefulset-controller,deployment-controller,replicaset-controller,garbage-collector-controller",
		"--kube-api-qps=500", "--kube-api-burst=500",
	)
	if err != nil {
		return err
	}
	return m.waitFor(t.Context(), "listening", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(p[0]))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// RunVolcano starts Volcano's scheduler and the controllers that open its queues.
// It is configured as its own chart does.
func (c *Cluster) RunVolcano(t testing.TB) error {
	t.Helper()
	ctx := t.Context()
	if err := c.Namespace(ctx, "volcano-system"); err != nil {
		return err
	}
	dir, err := module("tools/volcano", "volcano.sh/volcano")
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "installer", "helm", "chart", "volcano", "config", "volcano-scheduler.conf")
	p, err := ports(4)
	if err != nil {
		return err
	}
	if _, err := c.Run(t, "volcano-controller-manager",
		"--kubeconfig="+c.kubeconfig, "--leader-elect=false",
		"--listen-address="+address(p[0]), "--healthz-address="+address(p[1]),
		// What is left out makes pods, or PodGroups for pods that have none.
		"--controllers=queue-controller,pg-controller",
	); err != nil {
		return err
	}
	scheduler, err := c.Run(t, "volcano-scheduler",
		"--kubeconfig="+c.kubeconfig, "--leader-elect=false", "--scheduler-conf="+config,
		"--listen-address="+address(p[2]), "--healthz-address="+address(p[3]), "--enable-healthz",
		"--schedule-period=100ms", "--cache-dumper=false",
	)
	if err != nil {
		return err
	}
	if err := scheduler.waitFor(ctx, "healthy", func(ctx context.Context) error {
		return healthy(ctx, "http://"+address(p[3])+"/healthz")
	}); err != nil {
		return err
	}
	// The queue that a gang is in if it names none.
	queue := &unstructured.Unstructured{}
	queue.SetAPIVersion("scheduling.volcano.sh/v1beta1")
	queue.SetKind("Queue")
	queue.SetName("default")
	return c.Until(ctx, "the default queue is open", func(ctx context.Context) (bool, error) {
		o, err := c.Get(ctx, queue)
		if err != nil {
			return false, err
		}
		state, _, _ := unstructured.NestedString(o.Object, "status", "state")
		return state == "Open", nil
	})
}

func healthy(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer rsp.Body.Close() //nolint:errcheck // Only its status is wanted.
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, rsp.Status)
	}
	return nil
}
