package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A verdict is what the results of a probe come to.
type verdict struct {
	success, failure int32
	// ok is what they came to last.
	ok   bool
	in   int32
	last bool
}

func newVerdict(p *corev1.Probe, ok bool) *verdict {
	return &verdict{success: max(p.SuccessThreshold, 1), failure: or3(p.FailureThreshold), ok: ok}
}

func or3(n int32) int32 {
	if n < 1 {
		return 3
	}
	return n
}

// add adds a result. It tells whether enough of the same have come in a row.
func (v *verdict) add(ok bool) (decided bool) {
	if v.in == 0 || ok != v.last {
		v.in, v.last = 0, ok
	}
	v.in++
	if ok && v.in < v.success || !ok && v.in < v.failure {
		return false
	}
	v.ok = ok
	return true
}

// probe asks again and again, and tells what the results come to, until told returns true or the
// context ends.
func (c *container) probe(ctx context.Context, p *corev1.Probe, v *verdict, period time.Duration, told func(ok bool) bool) {
	wait := time.Duration(p.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = period
		err := c.ask(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if v.add(err == nil) && told(v.ok) {
			return
		}
	}
}

// periodOf is the time between two results of a probe.
func periodOf(p *corev1.Probe) time.Duration {
	if p.PeriodSeconds < 1 {
		return 10 * time.Second
	}
	return time.Duration(p.PeriodSeconds) * time.Second
}

// ask runs a probe once.
func (c *container) ask(ctx context.Context, p *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	switch {
	case p.GRPC != nil:
		return c.askGRPC(ctx, p.GRPC)
	case p.TCPSocket != nil:
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.at(p.TCPSocket.Host, p.TCPSocket.Port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return c.handle(ctx, p.HTTPGet, p.Exec)
}

// handle does what probes and hooks have in common.
func (c *container) handle(ctx context.Context, get *corev1.HTTPGetAction, run *corev1.ExecAction) error {
	switch {
	case get != nil:
		return c.get(ctx, get)
	case run != nil:
		return c.exec(ctx, run.Command)
	}
	return errors.New("nothing to ask")
}

// at is the address of a port of the container.
func (c *container) at(host string, port intstr.IntOrString) string {
	number := port.IntValue()
	if port.Type == intstr.String {
		for _, p := range c.spec.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	return net.JoinHostPort(or(host, c.pod.ip), strconv.Itoa(number))
}

// prober trusts every certificate, as kubelets do.
var prober = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // See above.
}}

func (c *container) get(ctx context.Context, g *corev1.HTTPGetAction) error {
	url := fmt.Sprintf("%s://%s/%s", strings.ToLower(or(string(g.Scheme), "http")), c.at(g.Host, g.Port), strings.TrimPrefix(g.Path, "/"))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "kube-probe/1.37")
	for _, h := range g.HTTPHeaders {
		r.Header.Add(h.Name, h.Value)
	}
	rsp, err := prober.Do(r)
	if err != nil {
		return err
	}
	_ = rsp.Body.Close()
	if rsp.StatusCode < http.StatusOK || rsp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", rsp.StatusCode)
	}
	return nil
}

func (c *container) askGRPC(ctx context.Context, g *corev1.GRPCAction) error {
	conn, err := grpc.NewClient(c.at("", intstr.FromInt32(g.Port)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // It was only asked.
	service := ""
	if g.Service != nil {
		service = *g.Service
	}
	r, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	if err == nil && r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		err = fmt.Errorf("service %q is %s", service, r.GetStatus())
	}
	return err
}

// exec runs a command in a container that runs.
func (c *container) exec(ctx context.Context, argv []string) error {
	c.mu.Lock()
	l := c.launched
	c.mu.Unlock()
	if l == nil {
		return errors.New("the container does not run")
	}
	p, err := c.pod.start(c.pod.spec, c.spec.Name, &launch{argv: argv, env: l.env, dir: l.dir}) //nolint:contextcheck // The process ends by a signal.
	if err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
	if p.code != 0 {
		return fmt.Errorf("%s: exit code %d", argv[0], p.code)
	}
	return nil
}
