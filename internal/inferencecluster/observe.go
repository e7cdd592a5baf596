package inferencecluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	existing "github.com/fusioninfer/function-inferenceservice/internal/require"
)

// A reality is what a request shows of a cluster.
type reality struct {
	observed map[string]*fnv1.Resource

	ledger ledger
	// asks of services, and whether Crossplane was able to say which there are, and which
	// of them the cluster allows.
	asks     []fleet.Ask
	answered bool
	// barred are the services that ask, and that the cluster does not allow.
	barred []string
	// ignored asks, and why.
	ignored []string
	// room of the pools whose nodes are known, and why others are not.
	room    fleet.Room
	unknown []string
	// reach tells whether the cluster can be read.
	reach placement.State
	// reachedBy names the Object that tells.
	reachedBy string
	// gateway is nil where there is none, or none that is known.
	gateway *v1alpha1.GatewayStatus
	// noGateway says why the address of a gateway is not known.
	noGateway string
}

// A ledger is what a cluster has granted so far.
type ledger struct {
	// there tells that it exists: only then more can be granted.
	there           bool
	resourceVersion string
	grants          []fleet.Grant
}

// look reads a request. A ledger that cannot be used is an error, because everything
// that was granted would be lost.
func look(req *fnv1.RunFunctionRequest, c *cluster) (*reality, error) {
	r := &reality{observed: req.GetObserved().GetResources()}
	var err error
	if r.ledger, err = readLedger(req, c); err != nil {
		return nil, err
	}
	_, r.reach = r.unwrap(c.key(reachable))
	r.reachedBy = "Object " + strings.TrimPrefix(nameOf(r.observed[c.key(reachable)].GetResource()), "/")
	r.readAsks(req)
	r.bar(req, c)
	r.readPools(req, c)
	r.readGateway(c)
	return r, nil
}

// unwrap returns what an Object has found in the cluster.
func (r *reality) unwrap(key string) (*structpb.Struct, placement.State) {
	observed := r.observed[key].GetResource()
	if observed == nil {
		return nil, placement.State{Reason: placement.NotThereYet, Message: "nothing observes it yet"}
	}
	return placement.Unwrap(observed)
}

func readLedger(req *fnv1.RunFunctionRequest, c *cluster) (ledger, error) {
	found := req.GetObserved().GetResources()[keyLedger].GetResource()
	if found == nil {
		for _, o := range req.GetRequiredResources()[existing.Existing(keyLedger)].GetItems() {
			found = o.GetResource()
			if owner := observe.ControllerUID(found); owner != "" && owner != string(c.UID) {
				return ledger{}, fmt.Errorf("ConfigMap %s in namespace %s is somebody else's, and would be the ledger: delete it if its owner is gone for good", ledgerName(c.Name), c.input.Fleet.Namespace)
			}
		}
	}
	if found == nil {
		// It is made now, or was deleted. The status has what it had.
		l := ledger{}
		for i := range c.Status.Allocations {
			a := &c.Status.Allocations[i]
			l.grants = append(l.grants, fleet.Grant{UID: a.UID, Namespace: a.Namespace, Name: a.Name, Replicas: a.Replicas, Serial: a.Serial})
		}
		return l, nil
	}
	l := ledger{there: true, resourceVersion: kube.Lookup(found, "metadata", "resourceVersion").GetStringValue()}
	var err error
	l.grants, err = fleet.DecodeGrants(kube.Lookup(found, "data", fleet.GrantsKey).GetStringValue())
	if err == nil && l.resourceVersion == "" {
		err = errors.New("it has no resourceVersion")
	}
	if err != nil {
		return ledger{}, fmt.Errorf("cannot use ConfigMap %s in namespace %s, which is the ledger of what was granted (delete it to have it made anew from the status): %w", ledgerName(c.Name), c.input.Fleet.Namespace, err)
	}
	return l, nil
}

// readAsks reads those that are what they say: of the service that composed them, in
// its namespace. A tenant may write ConfigMaps, but not for another tenant: two asks with
// one UID in two namespaces are of two services, whoever is lying.
func (r *reality) readAsks(req *fnv1.RunFunctionRequest) {
	found, answered := req.GetRequiredResources()[asks]
	r.answered = answered
	items := slices.Clone(found.GetItems())
	slices.SortStableFunc(items, func(a, b *fnv1.Resource) int {
		return strings.Compare(nameOf(a.GetResource()), nameOf(b.GetResource()))
	})
	// UIDs by their namespaces.
	known := map[[2]string]bool{}
	for _, i := range items {
		a, err := readAsk(i.GetResource())
		switch {
		case err != nil:
			r.ignored = append(r.ignored, fmt.Sprintf("%s: %s", nameOf(i.GetResource()), err))
		case known[[2]string{a.Namespace, a.UID}]:
			r.ignored = append(r.ignored, fmt.Sprintf("%s: the service asks twice", nameOf(i.GetResource())))
		default:
			known[[2]string{a.Namespace, a.UID}] = true
			r.asks = append(r.asks, *a)
		}
	}
}

func readAsk(o *structpb.Struct) (*fleet.Ask, error) {
	a, err := fleet.DecodeAsk(kube.Lookup(o, "data", fleet.AskKey).GetStringValue())
	if err != nil {
		return nil, err
	}
	if a.Namespace != kube.Lookup(o, "metadata", "namespace").GetStringValue() {
		return nil, fmt.Errorf("it is for a service in namespace %s", a.Namespace)
	}
	if a.UID != observe.ControllerUID(o) {
		return nil, errors.New("the service that it is for did not compose it")
	}
	return a, nil
}

// nameOf is namespace and name of an object.
func nameOf(o *structpb.Struct) string {
	return kube.Lookup(o, "metadata", "namespace").GetStringValue() + "/" + kube.Lookup(o, "metadata", "name").GetStringValue()
}

// readPools reads what the pools have. A node that several pools select is in the first.
func (r *reality) readPools(req *fnv1.RunFunctionRequest, c *cluster) {
	taken := map[string]bool{}
	for i := range c.Spec.Pools {
		p := &c.Spec.Pools[i]
		if p.Nodes != nil {
			each := []fleet.Nodes{{Count: int64(*p.Nodes), Left: fleet.Amounts(p.Allocatable)}}
			r.room.Pools = append(r.room.Pools, fleet.NewPool(p.Name, p.NodeSelector, each))
			continue
		}
		found, why := r.readNodes(req, c, p.Name, taken)
		if why != "" {
			r.unknown = append(r.unknown, fmt.Sprintf("pool %s: %s", p.Name, why))
			continue
		}
		r.room.Pools = append(r.room.Pools, fleet.NewPool(p.Name, p.NodeSelector, found))
	}
}

// readNodes returns the nodes of a pool that take pods, or why they are not known.
func (r *reality) readNodes(req *fnv1.RunFunctionRequest, c *cluster, pool string, taken map[string]bool) ([]fleet.Nodes, string) {
	collection := r.observed[c.key(nodesOf(pool))].GetResource()
	if s := placement.Synced(collection); s.Reason == placement.NotThereYet {
		return nil, s.Message
	}
	// A collection that cannot be read any more has the nodes that it had.
	members, answered := req.GetRequiredResources()[nodesOf(pool)]
	if !answered {
		if s := placement.Synced(collection); !s.Readable() {
			return nil, cmp.Or(s.Message, "they cannot be read")
		}
		return nil, "they have not been read yet"
	}
	var found []fleet.Nodes
	for _, m := range members.GetItems() {
		remote, state := placement.Unwrap(m.GetResource())
		if state.Reason == placement.NotThereYet {
			return nil, "not all of them have been read yet"
		}
		n := node{}
		if len(kube.Decode(remote, nil, &n)) > 0 || taken[n.Metadata.Name] || !n.takesPods() {
			continue
		}
		taken[n.Metadata.Name] = true
		found = append(found, fleet.Nodes{Count: 1, Left: fleet.OfNode(n.Status.Allocatable)})
	}
	return found, ""
}

// readGateway finds where requests reach the cluster. An address that was known is kept
// for as long as nothing else is.
func (r *reality) readGateway(c *cluster) {
	g := c.Spec.Gateway
	if g == nil {
		return
	}
	if g.Address != "" {
		r.gateway = &v1alpha1.GatewayStatus{Address: g.Address, Port: g.Port}
		return
	}
	remote, state := r.unwrap(c.key(gateway))
	seen := struct {
		Status struct {
			Addresses []struct {
				Value string `json:"value"`
			} `json:"addresses"`
		} `json:"status"`
	}{}
	_ = kube.Decode(remote, nil, &seen) // What cannot be decoded is no address.
	for _, a := range seen.Status.Addresses {
		if v1alpha1.UnusableAddress(a.Value) == "" {
			r.gateway = &v1alpha1.GatewayStatus{Address: a.Value, Port: g.Port}
			return
		}
	}
	r.noGateway = cmp.Or(state.Message, "it has no IP address that other machines reach")
	if !state.Readable() && c.Status.Gateway != nil {
		r.gateway = &v1alpha1.GatewayStatus{Address: c.Status.Gateway.Address, Port: g.Port}
	}
}
