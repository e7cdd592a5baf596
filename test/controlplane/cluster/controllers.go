package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RunControllers starts those controllers of Kubernetes that make pods, and those
// that remove what has no owner any more, and others besides.
func (c *Kubernetes) RunControllers(ctx context.Context, besides ...string) error {
	p, err := ports(1)
	if err != nil {
		return err
	}
	var autoscaling []string
	if c.autoscales {
		besides = append(slices.Clone(besides), autoscalerController)
		autoscaling = autoscalerArgs
	}
	m, err := c.run(program{name: "kube-controller-manager", args: append([]string{
		"--kubeconfig=" + c.Kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(p[0]),
		"--cert-dir=" + c.dir,
		"--leader-elect=false",
		"--controllers=" + strings.Join(append(besides,
			"serviceaccount-controller", "statefulset-controller", "deployment-controller",
			"replicaset-controller", "garbage-collector-controller"), ","),
		"--kube-api-qps=500", "--kube-api-burst=500",
		// A KWOK that is started anew waits until the leases of the one before are over, which are
		// those of all nodes. What is then made of the pods it never makes good.
		"--node-monitor-grace-period=5m",
	}, autoscaling...)})
	if err != nil {
		return err
	}
	return m.waitFor(ctx, "listening", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(p[0]))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// RunVolcano starts Volcano's scheduler and the controllers that open its queues.
// It is configured as its own chart does, and to heed a networkTopology, which that
// leaves to the user.
func (c *Kubernetes) RunVolcano(ctx context.Context) error {
	if err := c.Namespace(ctx, "volcano-system"); err != nil {
		return err
	}
	dir, err := module("tools/volcano", "volcano.sh/volcano")
	if err != nil {
		return err
	}
	config, err := c.volcanoConfig(filepath.Join(dir, "installer", "helm", "chart", "volcano", "config", "volcano-scheduler.conf"))
	if err != nil {
		return err
	}
	p, err := ports(4)
	if err != nil {
		return err
	}
	if _, err := c.run(program{name: "volcano-controller-manager", args: []string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false",
		"--listen-address=" + address(p[0]), "--healthz-address=" + address(p[1]),
		// What is left out makes pods, or PodGroups for pods that have none.
		"--controllers=queue-controller,pg-controller",
	}}); err != nil {
		return err
	}
	scheduler, err := c.run(program{name: "volcano-scheduler", args: []string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--scheduler-conf=" + config,
		"--listen-address=" + address(p[2]), "--healthz-address=" + address(p[3]), "--enable-healthz",
		"--schedule-period=500ms", "--cache-dumper=false",
	}})
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

// volcanoConfig is the configuration of a file, with the plugin that HyperNodes need.
func (c *Kubernetes) volcanoConfig(file string) (string, error) {
	b, err := os.ReadFile(file) //nolint:gosec // A file of a module.
	if err != nil {
		return "", err
	}
	const before = "  - name: nodeorder\n"
	if bytes.Count(b, []byte(before)) != 1 {
		return "", fmt.Errorf("%s has no place for one more plugin:\n%s", file, b)
	}
	config := filepath.Join(c.dir, "volcano-scheduler.conf")
	return config, os.WriteFile(config, bytes.Replace(b, []byte(before), []byte("  - name: network-topology-aware\n"+before), 1), 0o600) //nolint:gosec // A file of this cluster.
}

// RunVolcanoAdmission starts Volcano's webhooks, those that its chart enables.
func (c *Kubernetes) RunVolcanoAdmission(ctx context.Context) error {
	dir, err := module("tools/volcano", "volcano.sh/volcano")
	if err != nil {
		return err
	}
	v := chart{dir: filepath.Join(dir, "installer", "helm", "chart", "volcano"), release: "volcano", namespace: "volcano-system"}
	hooks, err := v.render("templates/webhooks.yaml")
	if err != nil {
		return err
	}
	enabled, err := v.value("custom", "enabled_admissions")
	if err != nil {
		return err
	}
	p, err := ports(2)
	if err != nil {
		return err
	}
	certs := filepath.Join(c.dir, "volcano")
	ca, err := serving(certs)
	if err != nil {
		return err
	}
	url := "https://" + address(p[0])
	// The webhooks have to be there first: their server looks for them.
	if err := c.webhooks(ctx, hooks, url, ca); err != nil {
		return err
	}
	crt := filepath.Join(certs, "tls.crt")
	server, err := c.run(program{name: "volcano-webhook-manager", args: []string{
		"--kubeconfig=" + c.Kubeconfig, "--enabled-admission=" + enabled, "--webhook-url=" + url,
		"--listen-address=" + loopback, "--port=" + strconv.Itoa(p[0]),
		"--tls-cert-file=" + crt, "--tls-private-key-file=" + filepath.Join(certs, "tls.key"), "--ca-cert-file=" + crt,
		"--graceful-shutdown-time=1s",
	}})
	if err != nil {
		return err
	}
	return server.waitFor(ctx, "listening", tlsListening(p[0]))
}

// RunScheduler starts the scheduler of pods that name none.
func (c *Kubernetes) RunScheduler(ctx context.Context) error {
	p, err := ports(1)
	if err != nil {
		return err
	}
	s, err := c.run(program{name: "kube-scheduler", args: []string{
		"--kubeconfig=" + c.Kubeconfig, "--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(p[0]),
		"--cert-dir=" + filepath.Join(c.dir, "kube-scheduler"), "--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=500",
	}})
	if err != nil {
		return err
	}
	return s.waitFor(ctx, "listening", tlsListening(p[0]))
}

func healthy(ctx context.Context, url string) error { return succeeds(ctx, http.MethodGet, url) }

// succeeds returns an error unless a request without a body is answered with 200.
func succeeds(ctx context.Context, method, url string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
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
