package cluster

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// An observedState is what a request shows of a cluster.
type observedState struct {
	req incoming.Request

	ledger ledger
	// requests are the capacity requests of services.
	requests []reservation.CapacityRequest
	// resolved tells whether Crossplane has resolved the requirements for the requests and
	// for the namespaces that are allowed.
	resolved bool
	// notAllowed are the services whose namespaces the cluster does not allow.
	notAllowed []string
	// ignored are the invalid requests, and why each is ignored.
	ignored []string
	// turn are the services whose requests are missing or lack something, and whose Objects this call
	// reads.
	turn []reservation.ServiceID
	// takesTurns tells that there are more than one call reads.
	takesTurns bool
	// inUse has the replicas of which these services have workloads.
	inUse map[reservation.ServiceID]map[key.ReplicaID]bool
	// withoutRequest are those of these services whose requests are missing, with workloads that are not
	// being deleted.
	withoutRequest []string
	// free is the capacity of the pools whose nodes are known.
	free capacity.Free
	// unknown says for each other pool why its nodes are not known.
	unknown []string
	// unread has the names of these pools.
	unread map[string]bool
	// reach tells whether the cluster can be read.
	reach remote.State
	// identity says which real cluster it is, and who else uses it.
	identity identity
	// entrypoint is nil where the cluster has none, or its address is not known.
	entrypoint *v1alpha1.EntrypointStatus
	// noAddress says why the address of the entrypoint is not known.
	noAddress string
}

// A ledger has the grants of a cluster.
type ledger struct {
	reservation.Ledger

	// exists tells whether the ConfigMap exists. Nothing new is granted until it does.
	exists          bool
	resourceVersion string
	compressed      []byte
}

// observe reads a request. A ledger that cannot be read is an error: a new one would lose all
// reservations.
func observe(req incoming.Request, c *parsed, now time.Time) (*observedState, error) {
	r := &observedState{req: req}
	var err error
	if r.ledger, err = readLedger(req, c); err != nil {
		return nil, err
	}
	_, r.reach = r.unwrap(c.keys().Reachable())
	r.readIdentity(req, c)
	r.readRequests(req, c.Name)
	r.readMissing(req, c, now)
	if c.Spec.LocalQueue() != "" {
		dropPods(c.Name, r.requests)
	}
	r.markNotAllowed(req, c)
	r.readPools(req, c)
	r.readEntrypoint(c)
	return r, nil
}

// unwrap returns the remote object that the Object of a key observes.
func (r *observedState) unwrap(k key.Key) (incoming.Object, remote.State) {
	observed := r.req.Observed(k)
	if !observed.Exists() {
		return observed, remote.State{Reason: remote.NotCreated, Message: "nothing observes it yet"}
	}
	return remote.Unwrap(observed)
}

// Fields of the ledger, of capacity requests and of Objects.
var (
	resourceVersion = incoming.NewPath("metadata", "resourceVersion")
	ledgerData      = incoming.NewPath("binaryData", reservation.LedgerKey)
	requestData     = incoming.NewPath("data", reservation.RequestKey)
	// nameOfManifest is set before provider-kubernetes reports anything.
	nameOfManifest = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "name")
)

func readLedger(req incoming.Request, c *parsed) (ledger, error) {
	found := req.Observed(key.Ledger)
	if !found.Exists() {
		existing, _ := req.Required(composite.Existing(key.Ledger))
		for _, o := range existing {
			found = o
			if owner := composite.ControllerUID(found); owner != "" && owner != string(c.UID) {
				return ledger{}, fmt.Errorf("ConfigMap %s in namespace %s has the name of the ledger and belongs to another object: delete it if its owner is gone for good", ledgerName(c.Name), c.input.Namespace)
			}
		}
	}
	if !found.Exists() {
		return ledger{Ledger: fromStatus(c.Status.Reservations)}, nil
	}
	l := ledger{exists: true, resourceVersion: resourceVersion.Text(found)}
	compressed, err := base64.StdEncoding.DecodeString(ledgerData.Text(found))
	if err == nil {
		l.compressed = compressed
		l.Ledger, err = reservation.DecodeLedger(compressed)
	}
	if err == nil && l.resourceVersion == "" {
		err = errors.New("it has no resourceVersion")
	}
	if err != nil {
		return ledger{}, fmt.Errorf("cannot use ConfigMap %s in namespace %s, which is the ledger of all reservations (restore what it had; if you delete it, it is made again from status.reservations, so check first that these are complete): %w", ledgerName(c.Name), c.input.Namespace, err)
	}
	return l, nil
}

// fromStatus returns what the status says of a ledger that is new or was deleted. The status does
// not have the pods of the grants, and of their pools only the names.
func fromStatus(reservations []v1alpha1.Reservation) reservation.Ledger {
	l := reservation.Ledger{}
	for i := range reservations {
		r := &reservations[i]
		s := reservation.Service{ServiceID: reservation.ServiceID{Namespace: r.Namespace, Name: r.Name, UID: r.UID}}
		for j := range r.Replicas {
			g := reservation.Grant{Generation: r.Replicas[j].Generation, Replicas: scheduling.ReplicasFromStatus(r.Replicas[j : j+1])}
			if pool := r.Replicas[j].Pool; pool != "" {
				g.Pin = &capacity.Pin{Pool: pool}
			}
			s.Grants = append(s.Grants, g)
		}
		l.Services = append(l.Services, s)
	}
	return l
}

// readRequests reads the capacity requests that are in their service's namespace and that
// the service controls. Tenants may write ConfigMaps in their own namespaces only. So a
// request counts for its namespace, whatever service it names. Requests with the same UID in
// different namespaces are of different services.
//
// If all of them are too large together, some of those in the namespaces that have the most are ignored.
func (r *observedState) readRequests(req incoming.Request, cluster string) {
	found, resolved := req.Required(requests)
	r.resolved = resolved
	slices.SortStableFunc(found, func(a, b incoming.Object) int { return strings.Compare(nameOf(a), nameOf(b)) })
	// The pairs of namespace and UID that have a request.
	known := map[[2]string]bool{}
	large := tooLarge(found, maxRead)
	for _, i := range found {
		if large[nameOf(i)] {
			r.ignored = append(r.ignored, nameOf(i)+": the requests of its namespace are too large together, and only the smallest are read")
			continue
		}
		request, err := readRequest(i, cluster)
		switch {
		case err != nil:
			r.ignored = append(r.ignored, fmt.Sprintf("%s: %s", nameOf(i), err))
		case known[[2]string{request.Namespace, request.UID}]:
			r.ignored = append(r.ignored, fmt.Sprintf("%s: the service has two capacity requests", nameOf(i)))
		default:
			known[[2]string{request.Namespace, request.UID}] = true
			r.requests = append(r.requests, *request)
		}
	}
}

const (
	// maxRead is the most bytes of capacity requests that one call decodes. 10,000 services have some 5 MiB. Decoded requests take some four
	// times as much memory, and the function may take 512 MiB.
	maxRead = 24 << 20
	// perObject and perText are the bytes that each JSON object in a request, and each text, counts for at least. A replica may take as
	// little as 31 bytes, and takes some 700 once it is decoded and waits. What services write counts for up to twice its bytes.
	perObject, perText = 64, 16
)

// sizeOf returns the bytes that the text of a request counts for.
func sizeOf(text string) int {
	return max(len(text), perObject*strings.Count(text, "{"), perText*strings.Count(text, `"`)/2)
}

// A sized request has the bytes that it counts for.
type sized struct {
	name  string
	bytes int
}

// tooLarge returns the names of the requests that are not read, so that the others have some bytes at most. Each namespace has a
// share. One that needs less leaves the rest to the others, and of one that needs more, the smallest requests are read.
func tooLarge(found []incoming.Object, bytes int) map[string]bool {
	of, sums := map[string][]sized{}, map[string]int{}
	for _, o := range found {
		each := sized{nameOf(o), sizeOf(requestData.Text(o))}
		of[o.Namespace()] = append(of[o.Namespace()], each)
		sums[o.Namespace()] += each.bytes
	}
	large := map[string]bool{}
	namespaces := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[a], sums[b]), strings.Compare(a, b)) })
	for i, namespace := range namespaces {
		share := bytes / (len(namespaces) - i)
		bytes -= min(share, sums[namespace])
		if sums[namespace] <= share {
			continue
		}
		slices.SortStableFunc(of[namespace], func(a, b sized) int { return cmp.Compare(a.bytes, b.bytes) })
		for _, each := range of[namespace] {
			share -= each.bytes
			large[each.name] = share < 0
		}
	}
	return large
}

// readRequest returns what a request is for one cluster. It may name a thousand others.
func readRequest(o incoming.Object, cluster string) (*reservation.CapacityRequest, error) {
	request, err := reservation.DecodeRequest(requestData.Text(o))
	if err != nil {
		return nil, err
	}
	if request.Namespace != o.Namespace() {
		return nil, fmt.Errorf("it is for a service in namespace %s", request.Namespace)
	}
	if request.UID != composite.ControllerUID(o) {
		return nil, errors.New("the service that it is for did not compose it")
	}
	return request.Only(cluster), nil
}

// dropPods drops the pods that requests, which this call has decoded, request of a cluster. All of them fit
// then. The ledger of a cluster whose admission is Kueue's says who is there, and counts nothing.
func dropPods(cluster string, requests []reservation.CapacityRequest) {
	for i := range requests {
		for _, g := range requests[i].Clusters[cluster].Groups {
			for r := range g.Replicas {
				g.Replicas[r].Pods = nil
			}
		}
	}
}

// nameOf returns {namespace}/{name} of an object.
func nameOf(o incoming.Object) string { return o.Namespace() + "/" + o.Name() }

// cannotRead says that provider-kubernetes cannot read something, and which object says why. The provider's
// own message is in Reachable only: others are copied to services.
func cannotRead(what string, by incoming.Object) string {
	return fmt.Sprintf("provider-kubernetes cannot read %s: %s %s says why", what, by.Kind(), strings.TrimPrefix(nameOf(by), "/"))
}

// An addressed object is the part of a Gateway that is read.
type addressed struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Addresses []struct {
			Type  v1alpha1.AddressType `json:"type"`
			Value string               `json:"value"`
		} `json:"addresses"`
	} `json:"status"`
}

var gatewayView = incoming.NewView[addressed]()

// readEntrypoint finds where requests reach the cluster. It prefers an IP address to a DNS name,
// because every gateway can send requests to it. Of several it is the one that is known, as long as the
// Gateway has it. The last known address and its port are kept while the Gateway cannot be read. After an edit, the Object may still have the former Gateway.
func (r *observedState) readEntrypoint(c *parsed) {
	e := c.Spec.Entrypoint
	if e == nil {
		return
	}
	if a := e.Address; a != nil {
		r.entrypoint = &v1alpha1.EntrypointStatus{Address: v1alpha1.EntrypointAddressStatus{Type: string(a.Type), Value: a.Value}, Port: *e.Port}
		return
	}
	gateway, state := r.unwrap(c.keys().Gateway())
	g := gatewayView.In(gateway) // What cannot be decoded is no address.
	if ref := e.GatewayRef; g.Metadata.Name != ref.Name || g.Metadata.Namespace != ref.Namespace {
		if g = (addressed{}); state.Readable() {
			state = remote.State{Reason: remote.NotCreated, Message: "it has not been read yet"}
		}
	}
	var ips []*v1alpha1.EntrypointStatus
	for _, a := range g.Status.Addresses {
		if v1alpha1.UnusableAddress(a.Value) == "" {
			ips = append(ips, v1alpha1.IPEntrypoint(a.Value, *e.Port))
		}
	}
	if len(ips) > 0 {
		r.entrypoint = ips[max(0, slices.IndexFunc(ips, func(ip *v1alpha1.EntrypointStatus) bool {
			return c.Status.Entrypoint != nil && ip.Address == c.Status.Entrypoint.Address
		}))]
		return
	}
	for _, a := range g.Status.Addresses {
		if a.Type == v1alpha1.AddressTypeHostname && v1alpha1.UnusableHostname(a.Value) == "" {
			r.entrypoint = v1alpha1.HostnameEntrypoint(a.Value, *e.Port)
			return
		}
	}
	r.noAddress = cmp.Or(state.Message, "it has no address that other machines reach")
	if state.Reason == remote.CannotBeRead {
		r.noAddress = cannotRead("it", r.req.Observed(c.keys().Gateway()))
	}
	if known := c.Status.Entrypoint; !state.Readable() && known != nil {
		r.entrypoint = known
	}
}
