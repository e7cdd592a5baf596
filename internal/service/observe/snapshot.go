package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// Snapshot reads what planning goes by, for a service that is or was placed in the fleet.
// For any other it reads no observed objects, since that costs as much as to evaluate them.
func Snapshot(req incoming.Request, spec *v1alpha1.InferenceServiceSpec, now time.Time) scheduling.Snapshot {
	if !scheduling.InFleet(spec.Placement) && !req.Observed(key.CapacityRequest).Exists() {
		snapshot := scheduling.Snapshot{KnowsModels: knowsModels(req)}
		readConfigs(&snapshot, req, spec.Placement)
		return snapshot
	}
	snapshot := scheduling.Snapshot{
		Now:             now,
		Created:         creationTimestamp.Text(req.Composite().Object),
		UnplacedSince:   composite.FalseSince(req.Composite(), IsPlaced),
		Clusters:        map[string]*v1alpha1.InferenceCluster{},
		Unanswered:      map[string]bool{},
		States:          map[string]*scheduling.ClusterState{},
		ReceivesTraffic: map[string]bool{},
		Silent:          map[string]bool{},
		KnowsModels:     knowsModels(req),
		Entrypoints:     map[string]*v1alpha1.EntrypointStatus{},
		Hostnames:       map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus{},
	}
	readFormer(&snapshot, req)
	readFleet(&snapshot, req)
	readConfigs(&snapshot, req, spec.Placement)
	readNamespace(&snapshot, req)
	if route := req.Observed(key.FleetRoute); route.Exists() {
		snapshot.ReceivesTraffic, snapshot.MayReceiveTraffic, snapshot.Weighted = backendsOf(route, fleetServices(req))
	}
	keys := req.ObservedKeys()
	// Without replicas and an endpoint picker, what is beside the XR belongs to the service wherever it runs. Other functions of the
	// pipeline may compose Deployments, too.
	picker := (&plan.ClusterPlan{}).DeploymentKey()
	beside := slices.ContainsFunc(keys, func(k key.Key) bool {
		_, isReplica := k.ReplicaID()
		return k.Cluster == "" && (isReplica || k == picker) && req.Observed(k).DeletionTimestamp() == ""
	})
	for _, k := range slices.Backward(keys) {
		addObserved(&snapshot, k, req.Observed(k), beside)
	}
	// Crossplane observes what the XR refers to, and users can edit these references. A
	// capacity request that the service controls counts even where that reference is gone.
	existing, _ := req.Required(composite.Existing(key.CapacityRequest))
	for _, i := range existing {
		if owner := composite.ControllerUID(i); snapshot.Request == nil && owner != "" && owner == uid.Text(req.Composite().Object) {
			addObserved(&snapshot, key.CapacityRequest, i, beside)
		}
	}
	return snapshot
}

// knowsModels tells whether InferenceModels go by the status that the service has so far.
func knowsModels(req incoming.Request) bool {
	return modelRoutingStatus.In(req.Composite().Object).GetStructValue() != nil
}

// Fields of the composite resource and of observed objects.
var (
	modelRoutingStatus = incoming.NewPath("status", "modelRouting")
	uid                = incoming.NewPath("metadata", "uid")
	creationTimestamp  = incoming.NewPath("metadata", "creationTimestamp")
	// namespaceOfManifest is set before provider-kubernetes reports anything.
	namespaceOfManifest = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "namespace")
	queueName           = incoming.NewPath("metadata", "labels", naming.LabelKueueQueue)
	priorityClass       = incoming.NewPath("metadata", "labels", naming.LabelKueuePriorityClass)
	priorityClassTold   = remote.NewDesiredPath("metadata", "labels", naming.LabelKueuePriorityClass)
	// gangQueue is what was desired last. Volcano and its CRD give a PodGroup without a queue one.
	gangQueue       = incoming.NewPath("spec", "forProvider", "manifest", "spec", "queue")
	resourceVersion = incoming.NewPath("metadata", "resourceVersion")
	requestData     = incoming.NewPath("data", reservation.RequestKey)
)

// readFormer reads which clusters the last status says are not reconciled.
func readFormer(snapshot *scheduling.Snapshot, req incoming.Request) {
	former := formerStatus{}
	_ = formerView.Read(req.Composite(), &former) // Fields of a wrong type count as absent.
	for _, c := range former.Status.Clusters {
		snapshot.Silent[c.Name] = c.Reason == scheduling.ReasonPaused || c.Reason == scheduling.ReasonNotReconciled
	}
}

// readNamespace reads the labels of the tenant's namespace, if it is required. A namespace
// that does not exist has none.
func readNamespace(snapshot *scheduling.Snapshot, req incoming.Request) {
	answer, answered := req.Required(require.Namespace)
	snapshot.NamespaceResolved = answered
	for _, i := range answer {
		snapshot.NamespaceLabels = i.Labels() // Labels that cannot be read select nothing.
	}
}

// readConfigs reads which provider configurations the fleet uses, for a service that names some
// itself.
func readConfigs(snapshot *scheduling.Snapshot, req incoming.Request, p *v1alpha1.Placement) {
	if !plan.NamesConfigs(p) {
		return
	}
	clusters, answered := require.ConfiguredClusters(req)
	snapshot.ConfigsResolved = answered
	for _, i := range clusters {
		snapshot.Configs = append(snapshot.Configs, remote.ProviderConfigOf(i).Name)
	}
}

// addObserved adds what one composed resource shows of the service in its cluster. beside tells that the service is in the cluster
// of the XR, too.
func addObserved(snapshot *scheduling.Snapshot, k key.Key, observed incoming.Object, beside bool) {
	if k.OnlyObserved() {
		return
	}
	switch k {
	case key.CapacityRequest:
		addRequest(snapshot, observed)
		return
	case key.FleetRoute:
		return
	}
	if name, ipv6, is := k.FleetSliceOf(); is {
		// While an address changes its family there are two slices, and the IPv4 one counts.
		if e := entrypointOfSlice(observed); e != nil && (!ipv6 || snapshot.Entrypoints[name] == nil) {
			snapshot.Entrypoints[name] = e
		}
		return
	}
	if addHostname(snapshot, k, observed) || k.IsFleetBackend() {
		return
	}
	// An object that is being deleted cannot stay, and cannot be changed.
	if observed.DeletionTimestamp() == "" && (k.Cluster != "" || beside) {
		addState(snapshot, k, observed)
	}
}

// addState adds what an object of the service is in its cluster.
func addState(snapshot *scheduling.Snapshot, k key.Key, observed incoming.Object) {
	name := k.Cluster
	if snapshot.States[name] == nil {
		snapshot.States[name] = scheduling.NewClusterState()
	}
	at := snapshot.States[name]
	at.Orphaned = at.Orphaned && remote.Orphaned(observed)
	if ref := remote.ProviderConfigOf(observed); ref.Name != "" {
		found, _ := remote.Unwrap(observed)
		at.ProviderConfig, at.Namespace = ref, cmp.Or(found.Namespace(), namespaceOfManifest.Text(observed), at.Namespace)
	}
	switch k.Kind {
	case key.LeaderWorkerSet:
		replica, _ := k.ReplicaID()
		addReplica(at, replica, observed)
	case key.Deployment:
		at.RouterWasReady, at.RouterReady = readiness(observed)
	case key.PodGroup:
		at.GangQueue = cmp.Or(at.GangQueue, gangQueue.Text(observed))
	case key.HTTPRoute:
		at.HasRoute = exists(observed)
		at.RouteRefused = refusedByAll(observed)
	case key.InferencePool:
		at.HasPool = exists(observed)
		at.PoolRefused = refusedByAll(observed)
	}
}

// exists tells whether an object existed when it could be read last.
func exists(observed incoming.Object) bool {
	found, _ := remote.Unwrap(observed)
	return found.Exists() && !found.Empty() && found.DeletionTimestamp() == ""
}

// refusedByAll tells whether gateways have reported on a route or a pool, and all of them refuse it. One that reports nothing has
// no say: some gateway controllers never do.
func refusedByAll(observed incoming.Object) bool {
	found, _ := remote.Unwrap(observed)
	o := stateOf(found)
	parents := o.view.Status.Parents
	return len(parents) > 0 && !slices.ContainsFunc(parents, func(p parent) bool {
		return !o.refuses(p)
	})
}

// addRequest adds the last capacity request. One that cannot be read counts as absent, and is
// written again.
func addRequest(snapshot *scheduling.Snapshot, observed incoming.Object) {
	if a, err := reservation.DecodeRequest(requestData.Text(observed)); err == nil {
		snapshot.Request = a
	}
	snapshot.RequestVersion = resourceVersion.Text(observed)
	for label := range observed.Labels() { // Labels that cannot be read are none.
		if cluster, is := reservation.ClusterOfLabel(label); is {
			snapshot.Labelled = append(snapshot.Labelled, cluster)
		}
	}
}

// addReplica adds a replica that exists, by its LeaderWorkerSet.
func addReplica(at *scheduling.ClusterState, replica key.ReplicaID, observed incoming.Object) {
	at.Present[replica] = true
	if created, err := time.Parse(time.RFC3339, creationTimestamp.Text(observed)); err == nil {
		at.Created[replica] = created
	}
	readPin(at, replica, observed)
	readNote(at, replica, observed)
	readAdmission(at, replica, observed)
	at.WasReady[replica], at.Ready[replica] = readiness(observed)
	if updating(observed) {
		at.Updating[replica] = true
	}
	if restarting(observed) {
		at.Restarting[replica] = true
	}
	readTold(at, replica, observed)
}

// restarting tells whether a replica was given other pods than those that its last status is about. What
// was desired last counts, because that status is the one from before for a while. A release that finds pods of the newest template replaces none.
func restarting(observed incoming.Object) bool {
	revision, held := given(observed)
	found, state := remote.Unwrap(observed)
	_, _, started := groupsUpdated(stateOf(found))
	switch {
	case held:
		return false
	case state.Refused:
		return replacing(found) // It keeps the pods that it has.
	}
	return started || former.Text(observed) != "" && (specHash.Text(found) != revision || behindPartition(found) || replacing(found))
}

// updating tells whether the pods of a LeaderWorkerSet may soon be replaced, or are being
// replaced. An update that is held back replaces no pods.
func updating(observed incoming.Object) bool {
	found, state := remote.Unwrap(observed)
	return state.Outdated || replacing(found)
}

// replacing tells whether the controller of a LeaderWorkerSet has not seen its newest spec yet, or
// replaces pods.
func replacing(found incoming.Object) bool {
	s := stateOf(found)
	_, _, unseen := generationObserved(s)
	_, _, started := groupsUpdated(s)
	return unseen && s.observedGeneration() > 0 || started
}

// readAdmission reads what Kueue's Workload for a LeaderWorkerSet depends on.
func readAdmission(at *scheduling.ClusterState, replica key.ReplicaID, observed incoming.Object) {
	found, _ := remote.Unwrap(observed)
	// What was told counts until the cluster reports. After that it may be what Kueue refuses.
	at.PriorityClasses[replica] = priorityClassTold.Text(observed)
	if id := uid.Text(found); id != "" {
		at.UIDs[replica], at.PriorityClasses[replica] = id, priorityClass.Text(found)
	}
	at.LocalQueue = cmp.Or(at.LocalQueue, queueName.Text(found))
}

// readiness tells whether an object was ready when it could be read last, and whether it
// is now.
func readiness(observed incoming.Object) (served, ready bool) {
	found, state := remote.Unwrap(observed)
	v := objectView.In(found)
	served = v.Metadata.DeletionTimestamp == "" && v.Status.ReadyReplicas > 0
	return served, served && state.Readable()
}

// An endpointSlice is the part of an EndpointSlice that is read.
type endpointSlice struct {
	Endpoints []struct {
		Addresses []string `json:"addresses"`
	} `json:"endpoints"`
	Ports []struct {
		Port int32 `json:"port"`
	} `json:"ports"`
}

var endpointSliceView = incoming.NewView[endpointSlice]()

// entrypointOfSlice is the entrypoint in a slice, or nil.
func entrypointOfSlice(observed incoming.Object) *v1alpha1.EntrypointStatus {
	s := endpointSlice{}
	if len(endpointSliceView.Read(observed, &s)) > 0 || len(s.Endpoints) == 0 || len(s.Endpoints[0].Addresses) == 0 || len(s.Ports) == 0 {
		return nil
	}
	return v1alpha1.IPEntrypoint(s.Endpoints[0].Addresses[0], s.Ports[0].Port)
}

// A hostnamed object is the part of a Service or ServiceEntry that is read, if it stands for a
// DNS name. The ports of the two have different fields.
type hostnamed struct {
	Spec struct {
		ExternalName string `json:"externalName"`
		Endpoints    []struct {
			Address string `json:"address"`
		} `json:"endpoints"`
		Ports []struct {
			Port   int32 `json:"port"`
			Number int32 `json:"number"`
		} `json:"ports"`
	} `json:"spec"`
}

var hostnamedView = incoming.NewView[hostnamed]()

// addHostname adds the entrypoint of an object with a DNS name. It tells whether the object is
// one. A DNS name that could not have been rendered is ignored.
func addHostname(snapshot *scheduling.Snapshot, k key.Key, observed incoming.Object) bool {
	cluster, h, is := k.FleetHostnameOf()
	if !is {
		return false
	}
	name, port := "", int32(0)
	if h == key.HostnameSlice {
		if e := entrypointOfSlice(observed); e != nil {
			name, port = e.Address.Value, e.Port
		}
	} else {
		o := hostnamedView.In(observed)
		name = o.Spec.ExternalName
		for _, e := range o.Spec.Endpoints {
			name = cmp.Or(name, e.Address)
		}
		for _, p := range o.Spec.Ports {
			port = cmp.Or(port, p.Port, p.Number)
		}
	}
	if v1alpha1.UnusableHostname(name) == "" && port > 0 {
		if snapshot.Hostnames[h] == nil {
			snapshot.Hostnames[h] = map[string]*v1alpha1.EntrypointStatus{}
		}
		snapshot.Hostnames[h][cluster] = v1alpha1.HostnameEntrypoint(name, port)
	}
	return true
}

// fleetServices returns the names of the backends that the fleet route references, or did
// before.
func fleetServices(req incoming.Request) []string {
	var names []string
	for _, k := range req.ObservedKeys() {
		if k.IsFleetBackend() {
			names = append(names, req.Observed(k).Name())
		}
	}
	return names
}
