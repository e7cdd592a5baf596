package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/utils/ptr"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
)

// endpoints finds where requests go, by what informers know at that moment. A pod gets requests
// only while it is ready, and none once it is being deleted.
type endpoints struct {
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	// resolve returns where to connect for an address with a port.
	resolve func(address string) string
}

func newEndpoints(f informers.SharedInformerFactory, resolve func(string) string) *endpoints {
	return &endpoints{
		pods:     f.Core().V1().Pods().Lister(),
		services: f.Core().V1().Services().Lister(),
		slices:   f.Discovery().V1().EndpointSlices().Lister(),
		resolve:  resolve,
	}
}

// dial connects with an address. No traffic leaves this machine, whatever a route says.
func (e *endpoints) dial(ctx context.Context, to string) (net.Conn, error) {
	at := e.resolve(to)
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is not on this machine: see MapEndpoint", to)
	}
	if err := reachable(at); err != nil {
		return nil, fmt.Errorf("%s: %w", to, err)
	}
	return (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", at)
}

// A backend is where a request can go, and how.
type backend struct {
	// addresses that are ready, with ports.
	addresses []string
	// h2c says that they speak HTTP/2 without TLS.
	h2c bool
}

// errNoBackend is the error for a backend that does not exist.
var errNoBackend = errors.New("backend does not exist")

const h2c = "kubernetes.io/h2c"

// service returns the backend at a port of a Service. A Service with a selector goes by the pods themselves, as
// Kubernetes' endpointslice controller does. That one cannot run here: pods have loopback addresses, and the API
// server refuses them in EndpointSlices (pkg/apis/core/validation, ValidateEndpointIP).
func (e *endpoints) service(namespace, name string, port int32) (backend, error) {
	s, err := e.services.Services(namespace).Get(name)
	if err != nil {
		return backend{}, fmt.Errorf("%w: %w", errNoBackend, err)
	}
	i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return backend{}, fmt.Errorf("%w: Service %s/%s has no port %d", errNoBackend, namespace, name, port)
	}
	p := &s.Spec.Ports[i]
	b := backend{h2c: ptr.Deref(p.AppProtocol, "") == h2c}
	number := strconv.Itoa(int(port))
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		b.addresses = []string{net.JoinHostPort(s.Spec.ExternalName, number)}
	case len(s.Spec.Selector) == 0:
		b.addresses, err = e.ofSlices(namespace, name, p.Name)
	default:
		b.addresses, err = e.ofPods(namespace, s.Spec.Selector, func(pod *corev1.Pod) []string {
			return []string{targetPort(pod, p.TargetPort, number)}
		})
	}
	return b, err
}

// pool returns the ready endpoints of an InferencePool.
func (e *endpoints) pool(p *inference.InferencePool) ([]string, error) {
	selector := map[string]string{}
	for k, v := range p.Spec.Selector.MatchLabels {
		selector[string(k)] = string(v)
	}
	return e.ofPods(p.Namespace, selector, func(*corev1.Pod) []string {
		var all []string
		for _, t := range p.Spec.TargetPorts {
			all = append(all, strconv.Itoa(int(t.Number)))
		}
		return all
	})
}

// picker returns the ready pods of an InferencePool's endpoint picker.
func (e *endpoints) picker(p *inference.InferencePool) ([]string, error) {
	ref := p.Spec.EndpointPickerRef
	if ptr.Deref(ref.Group, "") != "" || ref.Kind != "" && ref.Kind != "Service" || ref.Port == nil {
		return nil, fmt.Errorf("%w: an endpoint picker is a port of a Service", errNoBackend)
	}
	b, err := e.service(p.Namespace, string(ref.Name), int32(ref.Port.Number))
	return b.addresses, err
}

func (e *endpoints) ofPods(namespace string, selector map[string]string, ports func(*corev1.Pod) []string) ([]string, error) {
	pods, err := e.pods.Pods(namespace).List(labels.SelectorFromSet(selector))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.PodIP == "" || !podReady(p) {
			continue
		}
		for _, port := range ports(p) {
			all = append(all, net.JoinHostPort(p.Status.PodIP, port))
		}
	}
	return all, nil
}

func (e *endpoints) ofSlices(namespace, service, port string) ([]string, error) {
	found, err := e.slices.EndpointSlices(namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, s := range found {
		i := slices.IndexFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return ptr.Deref(p.Name, "") == port && p.Port != nil })
		if i < 0 {
			continue
		}
		for _, endpoint := range s.Endpoints {
			if !ptr.Deref(endpoint.Conditions.Ready, true) {
				continue
			}
			for _, a := range endpoint.Addresses {
				all = append(all, net.JoinHostPort(a, strconv.Itoa(int(*s.Ports[i].Port))))
			}
		}
	}
	return all, nil
}
