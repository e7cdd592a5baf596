package cluster

import (
	"context"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A StandInGateway stands in for a gateway: its controller and its data plane, in this process.
//
// It takes Gateways of every class. Each Gateway has an address of its own, at which its HTTP
// listeners pass requests on as HTTPRoutes say. Requests go to the ready pods of Services, to the
// endpoints of EndpointSlices, to DNS names, and to the pods that the endpoint pickers of
// InferencePools pick. It writes the status that a conformant gateway writes, after it does what the status says.
//
// It does what a gateway does without any setting of its own, but for the retries of Envoy Gateway's
// BackendTrafficPolicy. Without one it retries nothing, except for the further endpoints that a picker
// names. It keeps requests of any size for a retry. A rule without time-outs has none. It asks pickers
// as Envoy does, see pickers. It takes up changes of routes and endpoints at once, and requests that
// are under way are not cut. Each response has the name of the cluster in Via, after those of the
// clusters from which it came. No traffic leaves this machine.
//
// It does not check ReferenceGrants and allowedRoutes of listeners. HTTPS listeners have a
// certificate that it makes itself. Other protocols than HTTP and HTTPS are not served, and rules
// with filters that copy requests, or that only one gateway knows, answer with an error.
type StandInGateway struct {
	c *Kubernetes
	// address of the n-th Gateway, from 1.
	address func(n int) string
	plane   *dataPlane
}

// standIn is the name of the controller and of its fields' manager.
const standIn = "fusioninfer.io/stand-in-gateway"

// A kind and where it is served.
type kind struct {
	schema.GroupVersionResource
	name string
}

var (
	gateways = kind{schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}, "Gateway"}
	routes   = kind{schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}, "HTTPRoute"}
	pools    = kind{schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}, "InferencePool"}
	services = kind{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service"}
	policies = kind{schema.GroupVersionResource{Group: "gateway.envoyproxy.io", Version: "v1alpha1", Resource: "backendtrafficpolicies"}, "BackendTrafficPolicy"}
	entries  = kind{schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}, "ServiceEntry"}
)

// RunStandInGateway starts a stand-in for a gateway. Its kinds have to be installed.
func (c *Kubernetes) RunStandInGateway() error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(c.dir, "gateway.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	g := &StandInGateway{c: c, address: c.network.gatewayIP, plane: newDataPlane(
		newEndpoints(typed, c.resolve), c.network.listenIP, log.New(file, "", log.LstdFlags|log.Lmicroseconds))}
	g.plane.name, g.plane.gate = c.name, c.gate
	c.gateway = g
	c.begin(func(ctx context.Context) error {
		defer file.Close() //nolint:errcheck // It is a log.
		defer g.plane.close()
		return g.run(ctx, typed)
	})
	return nil
}

// run syncs whenever something changes that is configured. Endpoints are looked up for each
// request, so their changes need no sync.
func (g *StandInGateway) run(ctx context.Context, typed informers.SharedInformerFactory) error {
	f := dynamicinformer.NewDynamicSharedInformerFactory(g.c.Client, 0)
	changed := make(chan struct{}, 1)
	touch := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	seen := map[kind]cache.GenericLister{}
	for _, k := range []kind{gateways, routes, pools, services, policies, entries} {
		i := f.ForResource(k.GroupVersionResource)
		if _, err := i.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { touch() },
			UpdateFunc: func(any, any) { touch() },
			DeleteFunc: func(any) { touch() },
		}); err != nil {
			return err
		}
		seen[k] = i.Lister()
	}
	f.Start(ctx.Done())
	typed.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	return every(ctx, pollEvery, func(ctx context.Context) error {
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
		// What is gone or has changed by now is met again or not in the next round; a
		// test may take away the kinds, or the API server.
		if err := g.sync(ctx, seen); err != nil {
			touch()
		}
		return nil
	})
}

// A snapshot has the objects of each kind, by name.
type snapshot map[kind]map[string]*unstructured.Unstructured

func (g *StandInGateway) sync(ctx context.Context, seen map[kind]cache.GenericLister) error {
	w := snapshot{}
	for k, lister := range seen {
		all, err := lister.List(labels.Everything())
		if err != nil {
			return err
		}
		w[k] = map[string]*unstructured.Unstructured{}
		for _, v := range all {
			if o, ok := v.(*unstructured.Unstructured); ok {
				w[k][o.GetNamespace()+"/"+o.GetName()] = o
			}
		}
	}
	// Whoever reads a status may rely on what it says.
	listening := g.plane.configure(configOf(w))
	// The Gateways that lead to each pool, and the routes of each Gateway.
	leading, attached := map[string][]map[string]any{}, map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(w[routes])) {
		if err := g.route(ctx, w, w[routes][name], leading, attached); err != nil {
			return err
		}
	}
	for name, o := range w[gateways] {
		if err := g.gateway(ctx, o, attached[name], listening[name]); err != nil {
			return err
		}
	}
	for name, o := range w[pools] {
		if err := g.pool(ctx, w, o, leading[name]); err != nil {
			return err
		}
	}
	return nil
}

// GatewayAddress is where a Gateway listens: the address and port of its first listener, such as
// 127.10.255.1:80. It is empty until the Gateway listens. Its status has another address,
// because EndpointSlices may not have addresses of this machine, see MapEndpoint.
func (c *Kubernetes) GatewayAddress(namespace, name string) string {
	if c.gateway == nil {
		return ""
	}
	all := c.gateway.plane.listening(namespace + "/" + name)
	if len(all) == 0 {
		return ""
	}
	return all[0].address
}

// MapEndpoint makes the gateway of this cluster connect to another address in place of one, both
// with a port. A test maps the pod of an endpoint picker to the process that it runs for it. An
// empty address ends it. Addresses of gateways in a status are mapped to where those listen,
// without being told.
func (c *Kubernetes) MapEndpoint(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mapped == nil {
		c.mapped = map[string]string{}
	}
	if to == "" {
		delete(c.mapped, from)
		return
	}
	c.mapped[from] = to
}

// resolve returns where to connect for an address.
func (c *Kubernetes) resolve(address string) string {
	c.mu.Lock()
	to, ok := c.mapped[address]
	c.mu.Unlock()
	if ok {
		return to
	}
	return resolveGateway(address)
}
