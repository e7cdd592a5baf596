package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

/*
A network is what stands for the cluster's network.

Pods have addresses of 127.0.0.0/8, all of which Linux takes for this machine's
own: a process can listen at the address of a pod without being root, and no
traffic leaves. Each cluster has a part of its own, 127.N.0.0/16. EndpointSlices
may not have such addresses, so there are none of pods: Services are looked up by
the proxy here, and by the gateway.

The proxy is an HTTP proxy which knows one method, CONNECT, and the names of Services.
Whoever calls a function by the name of its Service calls it through this proxy, if
HTTPS_PROXY says so. gRPC honours it, and leaves it to the proxy to find the name.
*/
type network struct{ prefix string }

// A serviceProxy is the proxy of a network.
type serviceProxy struct{ client kubernetes.Interface }

// kubeletPort of a node. Holding it at the first address of a part of the network
// keeps that part for this cluster.
const kubeletPort = "10250"

// openNetwork takes a part of the network that nobody has.
func (c *Kubernetes) openNetwork() error {
	n := &network{}
	lock, err := n.take()
	if err != nil {
		return err
	}
	c.begin(func(ctx context.Context) error {
		<-ctx.Done()
		return lock.Close()
	})
	c.network = n
	return nil
}

// runProxy starts the proxy that finds Services.
func (c *Cluster) runProxy() error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	at, err := c.serveHTTP(&serviceProxy{client: client})
	if err != nil {
		return err
	}
	c.proxy = "http://" + at
	return nil
}

// serveHTTP serves at a free port until the cluster stops, and returns where.
func (c *Kubernetes) serveHTTP(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", address(0)) //nolint:noctx // It returns at once.
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	c.begin(func(context.Context) error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	c.begin(func(ctx context.Context) error {
		<-ctx.Done()
		return server.Close()
	})
	return l.Addr().String(), nil
}

func (n *network) take() (net.Listener, error) {
	var last error
	for i := 10; i < 255; i++ {
		n.prefix = fmt.Sprintf("127.%d.0.", i)
		l, err := net.Listen("tcp", n.nodeIP()+":"+kubeletPort) //nolint:noctx // It returns at once.
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("cannot take a part of 127.0.0.0/8 for pods, which needs Linux: %w", last)
}

func (n *network) nodeIP() string { return n.prefix + "1" }
func (n *network) cidr() string   { return n.prefix + "0/16" }

// gatewayIP is the address in the status of the n-th Gateway, from 1. EndpointSlices, which lead
// from one cluster to another, may not have addresses of this machine. So it is one of those that
// are kept for tests of networks, 198.18.0.0/15.
func (n *network) gatewayIP(number int) string {
	return n.part(statusPrefix) + strconv.Itoa(number)
}

// listenIP is where the n-th Gateway listens, at the end of the cluster's part of the network.
// KWOK gives pods addresses from its beginning.
func (n *network) listenIP(number int) string {
	return strings.TrimSuffix(n.prefix, "0.") + listenPart + strconv.Itoa(number)
}

// part is this cluster's part of another network.
func (n *network) part(prefix string) string {
	return prefix + strings.TrimPrefix(strings.TrimSuffix(n.prefix, "0."), "127.")
}

const (
	statusPrefix = "198.18."
	listenPart   = "255."
	// maxGateways is how many a cluster can have at a time.
	maxGateways = 254
)

// resolveGateway returns where a Gateway listens whose address of its status is given, with a
// port. Other addresses are returned as they are.
func resolveGateway(address string) string {
	host, port, err := net.SplitHostPort(address)
	rest, ok := strings.CutPrefix(host, statusPrefix)
	if err != nil || !ok {
		return address
	}
	part, number, ok := strings.Cut(rest, ".")
	p, err := strconv.Atoi(port)
	if err != nil || !ok {
		return address
	}
	return net.JoinHostPort("127."+part+"."+listenPart+number, strconv.Itoa(listenPort(p)))
}

// listenPort is the port at which a listener of a port listens. It is another one where this
// process may not listen at ports below 1024. It depends on nothing else, so that every cluster
// finds the gateways of the others.
func listenPort(port int) int {
	if port < 1024 && !mayListenBelow1024() {
		return port + 10000
	}
	return port
}

var mayListenBelow1024 = sync.OnceValue(func() bool {
	l, err := net.Listen("tcp", "127.255.255.254:1") //nolint:noctx // It returns at once.
	if err == nil {
		_ = l.Close()
	}
	return !errors.Is(err, syscall.EACCES)
})

// ServeHTTP connects a caller with a pod of a Service, or passes a request on to one.
func (n *serviceProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		pass := &httputil.ReverseProxy{
			Rewrite: func(*httputil.ProxyRequest) {}, // The URL of a request to a proxy has the host.
			Transport: &http.Transport{
				DisableKeepAlives: true,
				DialContext:       func(ctx context.Context, _, host string) (net.Conn, error) { return n.dial(ctx, host) },
			},
		}
		pass.ServeHTTP(w, r)
		return
	}
	pod, err := n.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	h, ok := w.(http.Hijacker)
	if !ok {
		_ = pod.Close()
		http.Error(w, "cannot hijack", http.StatusInternalServerError)
		return
	}
	caller, _, err := h.Hijack()
	if err != nil {
		_ = pod.Close()
		return
	}
	if _, err := io.WriteString(caller, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = errors.Join(pod.Close(), caller.Close())
		return
	}
	between(caller, pod)
}

// between passes on what two say to each other until one of them ends.
func between(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, d := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(d[0], d[1])
			done <- struct{}{}
		}()
	}
	<-done
	_ = errors.Join(a.Close(), b.Close())
	<-done
}

// dial connects with one of a Service's pods. A pod is said to be ready a moment
// before its process is there, so it is tried for a while.
func (n *serviceProxy) dial(ctx context.Context, to string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		conn, err := n.dialOnce(ctx, to)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot connect to %s: %w", to, err)
		case <-time.After(pollEvery):
		}
	}
}

func (n *serviceProxy) dialOnce(ctx context.Context, to string) (net.Conn, error) {
	all, err := n.endpoints(ctx, to)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	err = errors.New("no pod of it is ready")
	for _, a := range all {
		var conn net.Conn
		if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", a); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// endpoints are the addresses of the ready pods of a Service, which is called
// NAME.NAMESPACE, perhaps with the rest of its DNS name.
func (n *serviceProxy) endpoints(ctx context.Context, to string) ([]string, error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(host, ".", 3)
	if len(parts) < 2 {
		return nil, fmt.Errorf("%s is not the name of a Service with its namespace", host)
	}
	svc, err := n.client.CoreV1().Services(parts[1]).Get(ctx, parts[0], metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == port })
	if i < 0 {
		return nil, fmt.Errorf("the Service has no port %s", port)
	}
	pods, err := n.client.CoreV1().Pods(parts[1]).List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(svc.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	var all []string
	for j := range pods.Items {
		p := &pods.Items[j]
		if p.DeletionTimestamp == nil && p.Status.PodIP != "" && podReady(p) {
			all = append(all, net.JoinHostPort(p.Status.PodIP, targetPort(p, svc.Spec.Ports[i].TargetPort, port)))
		}
	}
	return all, nil
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func targetPort(p *corev1.Pod, target intstr.IntOrString, or string) string {
	if target.Type == intstr.Int {
		if target.IntVal == 0 {
			return or
		}
		return strconv.Itoa(int(target.IntVal))
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == target.StrVal {
				return strconv.Itoa(int(port.ContainerPort))
			}
		}
	}
	return or
}
