/*
Package require declares what the function has to know beyond its own composed resources.
These are the service's pods, objects that already have a name that the service needs, the
kinds that the cluster has, and the clusters of the fleet.

Crossplane calls the function again until its requirements are stable, five times at most. The
requirements depend only on the XR, the observed resources, the definitions of kinds, and the
clusters of the fleet with what is free in them. None of these changes between these calls. The
longest chain is the clusters, the tenant's namespace, the definitions of kinds, and the objects
of these. It is stable with the fifth call.
*/
package require

import (
	"slices"

	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

const (
	// Pods is the name of the requirement for all pods of the service.
	Pods = "pods"
	// Fleet is the name of the requirement for the profiles of the fleet's clusters.
	Fleet = "fleet"
	// Estimates is the name of the requirement for the estimates of what is free in the fleet's clusters.
	Estimates = "estimates"
	// Configs is the name of the requirement for the InferenceClusters with their provider
	// configurations.
	Configs = "provider-configs"
	// Namespace is the name of the requirement for the tenant's namespace.
	Namespace = "namespace"
	// ModelCache is the name of the requirement for the ModelCache that the service names.
	ModelCache = "model-cache"
	// CacheUsers is the name of the requirement for the capacity requests of the services that name a
	// ModelCache.
	CacheUsers = "model-cache-users"
)

// Pod is the name of the requirement for a pod that is read by its name.
func Pod(k key.Key) string { return k.String() }

// Loader is the name of the requirement for the pods of a loading Job in the cluster of the XR.
func Loader(k key.Key) string { return "loader/" + k.String() }

// LoaderPods is the name of the requirement for what a collection has found in another cluster.
func LoaderPods(k key.Key) string { return k.String() }

// NamedClaim is the name of the requirement for the claim that spec.model.cache.claimName names.
func NamedClaim(k key.Key) string { return k.String() }

// Headless is the name of the requirement for a Service that may already have the name of a
// LeaderWorkerSet. The LeaderWorkerSet controller makes a headless Service of that name.
func Headless(k key.Key) string { return "headless/" + k.String() }

// WorkersOwner is the name of the requirement for a LeaderWorkerSet whose workers' StatefulSet
// would have the name of the replica of that key.
func WorkersOwner(k key.Key) string { return "above/" + k.String() }

// WorkersName is the name of the requirement for a LeaderWorkerSet that may have the name of
// the StatefulSet of the workers of the replica of that key.
func WorkersName(k key.Key) string { return "below/" + k.String() }

// Answers is the name of the requirement for a cluster's answer to the service.
func Answers(cluster string) string { return "answers/" + cluster }

// Cluster is the name of the requirement for the InferenceCluster of a name.
func Cluster(name string) string { return "cluster/" + name }

// clusters requires what a service reads of the fleet. It requires the profiles of all clusters: the
// service may still run in one that is not selected. And Crossplane can select by equal labels
// only.
//
// The status of an InferenceCluster changes often, so it is required only where a cluster does
// not answer in time.
func clusters(req incoming.Request, r *fnv1.Requirements, p *plan.Plan) {
	if p.NamesConfigs {
		configs(req, r, p)
	}
	if p.Schedule == nil {
		return
	}
	r.Resources[Fleet] = profile.Selector(p.FleetNamespace)
	r.Resources[Estimates] = profile.EstimatesSelector(p.FleetNamespace)
	for _, name := range p.Schedule.Awaits {
		r.Resources[Answers(name)] = profile.PartSelector(p.FleetNamespace, name, p.Schedule.Request.UID)
	}
	for _, name := range p.Schedule.Silent {
		r.Resources[Cluster(name)] = composite.InferenceCluster(name)
	}
}

// configs requires the InferenceClusters, for a service that names provider configurations itself. It
// must name none of theirs, and a cluster has its configuration before it has a profile.
//
// The control plane may not have the kind InferenceCluster, so the definition is required first,
// wherever definitions are required at all.
func configs(req incoming.Request, r *fnv1.Requirements, p *plan.Plan) {
	if p.SkipsMissingKinds {
		clusterKind.Require(r.Resources)
		if available, _ := clusterKind.Available(req); !available {
			return
		}
	}
	r.Resources[Configs] = composite.InferenceClusters()
}

// modelCache selects the ModelCache that the service names, or the XR behind its claim. It is always in
// the namespace of the tenant.
func modelCache(p *plan.Plan) *fnv1.ResourceSelector {
	return composite.TenantObject(p.Service, v1alpha1.KindModelCache, v1alpha1.KindClaimedCache, p.Shared.Name)
}

// ConfiguredClusters returns the InferenceClusters, for a service that names provider configurations
// itself. It also tells whether Crossplane has answered which there are, or that it does not have
// their kind.
func ConfiguredClusters(req incoming.Request) ([]incoming.Object, bool) {
	if all, answered := req.Required(Configs); answered {
		return all, true
	}
	available, answered := clusterKind.Available(req)
	return nil, answered && !available
}

var clusterKind = incoming.Kind{APIVersion: v1alpha1.APIVersion, Name: v1alpha1.KindInferenceCluster}

// caches requires the ModelCache that a service names, or the requests of the services that name a ModelCache.
func caches(r *fnv1.Requirements, p *plan.Plan) {
	if p.Service.OfCache && p.InFleet() {
		r.Resources[CacheUsers] = incoming.ByLabels("v1", "ConfigMap", p.Service.Namespace, map[string]string{naming.LabelUsesModelCache: p.Service.Name})
	}
	if p.Shared != nil {
		r.Resources[ModelCache] = modelCache(p)
	}
}

// Declare adds the requirements to the response. It returns the objects that are deferred
// because their kind is missing. An object that is observed is never deferred.
func Declare(req incoming.Request, rsp *fnv1.RunFunctionResponse, p *plan.Plan, objects []kube.Object) []plan.Deferred {
	r := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{}}
	pods(r, p)
	loaders(req, r, p)
	clusters(req, r, p)
	caches(r, p)
	if p.Schedule != nil && p.Schedule.ReadsNamespace {
		r.Resources[Namespace] = incoming.ByName("v1", "Namespace", "", p.Service.Namespace)
	}
	deferred := gangs(req, r, p, objects)
	var known map[string]bool
	if p.SkipsMissingKinds {
		known = kinds(objects, req)
	}
	conflicts := nameConflicts{plan: p, into: r}
	for _, o := range objects {
		if is := req.Observed(o.Key); is.Exists() {
			conflicts.ofExisting(o, is)
			continue
		}
		// Services need collections only to say why a Job fails, so they do without where the provider has
		// only its Objects.
		skips := p.SkipsMissingKinds || o.Key.Kind == key.LoaderPods
		if needed := neededKind(o); skips && !builtIn(needed) && !known[needed.Definition()] {
			needed.Require(r.Resources)
			available, answered := needed.Available(req)
			if answered && !available {
				deferred = append(deferred, plan.Deferred{Key: o.Key, Reason: plan.DeferredForKind, Message: needed.Missing()})
			}
			if !available {
				continue
			}
		}
		r.Resources[composite.Existing(o.Key)] = named(o, o.APIVersion(), o.Kind())
		if o.Kind() == "LeaderWorkerSet" {
			r.Resources[Headless(o.Key)] = named(o, "v1", "Service")
		}
		conflicts.workersOwner(o)
		conflicts.workersName(o)
	}
	rsp.Requirements = r
	return deferred
}

// gangs requires the kind of PodGroups that do not exist, as long as what exists waits for it. It returns those that nothing renders
// meanwhile, if the kind is missing.
func gangs(req incoming.Request, r *fnv1.Requirements, p *plan.Plan, objects []kube.Object) []plan.Deferred {
	if len(p.NewGangs) == 0 {
		return nil
	}
	gangKind.Require(r.Resources)
	if available, answered := gangKind.Available(req); available || !answered {
		return nil
	}
	rendered := make(map[key.Key]bool, len(objects))
	for _, o := range objects {
		rendered[o.Key] = true
	}
	var deferred []plan.Deferred
	for _, k := range p.NewGangs {
		if !rendered[k] {
			deferred = append(deferred, plan.Deferred{Key: k, Reason: plan.DeferredForKind, Message: gangKind.Missing()})
		}
	}
	return deferred
}

// HasGangKind tells whether Crossplane has found the kind of PodGroups.
func HasGangKind(req incoming.Request) bool {
	available, _ := gangKind.Available(req)
	return available
}

var gangKind = incoming.Kind{APIVersion: volcano.SchemeGroupVersion.String(), Name: "PodGroup"}

// neededKind returns the kind without which o is of no use: its own. A routing sidecar waits until it was
// able to list InferencePools, in a service without a router too. So its rights need that kind.
func neededKind(o kube.Object) incoming.Kind {
	if kind := incoming.KindOf(o); o.Key.Kind != key.Role || !plan.IsOfSidecars(o.Key) || !builtIn(kind) {
		return kind
	}
	return incoming.Kind{APIVersion: inference.GroupVersion.String(), Name: modelroute.KindPool}
}

// pods requires the pods of a service that runs in the cluster of its XR: all of them, or those that
// the plan reads by their names.
func pods(r *fnv1.Requirements, p *plan.Plan) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Target.Remote() {
			continue
		}
		if !p.ReadsPods(c) {
			podsByName(r, c)
			continue
		}
		r.Resources[Pods] = incoming.ByLabels("v1", "Pod", c.Target.Namespace, map[string]string{naming.LabelService: c.Base})
	}
}

// loaders requires the pods of the Jobs that load weights, to say why one fails. It also requires a claim for
// weights that somebody else has made in the cluster of the XR, to see when it is recreated. In another cluster,
// these pods are the Objects of a collection, which are required once the provider has said which they are.
func loaders(req incoming.Request, r *fnv1.Requirements, p *plan.Plan) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if !c.Target.Remote() && p.ReadsClaim(c) {
			r.Resources[NamedClaim(p.NamedClaimKey(c))] = incoming.ByName("v1", "PersistentVolumeClaim", c.Target.Namespace, p.Weights.ClaimName)
		}
		if c.Loading != nil && c.Loading.FindsPods {
			if found := remote.MembersOf(req.Observed(p.LoaderPodsKey(c)), p.Service); found != nil {
				r.Resources[LoaderPods(p.LoaderPodsKey(c))] = found
			}
		}
		if c.Target.Remote() || p.PodLimit == 0 || c.Loading == nil || !c.Loading.Renders {
			continue
		}
		r.Resources[Loader(c.Loading.Job)] = incoming.ByLabels("v1", "Pod", c.Target.Namespace, map[string]string{naming.LabelModelLoader: p.Weights.LoaderName})
	}
}

func podsByName(r *fnv1.Requirements, c *plan.ClusterPlan) {
	for replica := range c.Replicas() {
		for i := range replica.PodsRead {
			r.Resources[Pod(c.PodKey(replica, i))] = incoming.ByName("v1", "Pod", c.Target.Namespace, replica.PodName(i))
		}
	}
}

// kinds returns the names of the definitions of observed objects' kinds. The cluster has these
// kinds, so their definitions, which are large, are not required.
func kinds(objects []kube.Object, req incoming.Request) map[string]bool {
	known := map[string]bool{}
	for _, o := range objects {
		if req.Observed(o.Key).Exists() {
			known[incoming.KindOf(o).Definition()] = true
		}
	}
	return known
}

// builtIn tells whether Kubernetes itself has the kind.
func builtIn(kind incoming.Kind) bool {
	return slices.Contains([]string{"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "policy/v1", "autoscaling/v2", "discovery.k8s.io/v1", "networking.k8s.io/v1"}, kind.APIVersion)
}

// named selects an object by the name of o.
func named(o kube.Object, apiVersion, kind string) *fnv1.ResourceSelector {
	return incoming.ByName(apiVersion, kind, o.Namespace(), o.Name())
}
