package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// CacheReplica stands for a ModelCache in a cluster of the fleet. It is a replica of no role, which
// requests a place and no capacity. So a cluster decides as for a service whether the tenant may use
// it, and makes the namespace.
var CacheReplica = key.ReplicaOf("cache", 0)

// BuildCache plans a ModelCache: a service without roles, whose plan has weights and clusters. With any problem it returns no plan.
// PlaceCache decides where the weights are loaded.
func BuildCache(s naming.Identity, spec *v1alpha1.ModelCacheSpec, in *inputv1alpha1.Input, snapshot scheduling.Snapshot) (*Plan, field.ErrorList) {
	p := &Plan{
		Service:        s,
		PodLimit:       *in.PodObservationLimit,
		FleetNamespace: in.Fleet.Namespace,
		Labels:         in.Labels,
		Annotations:    in.Annotations,
		spec:           &v1alpha1.InferenceServiceSpec{Model: spec.Of(), Placement: spec.Placement()},
		snapshot:       &snapshot,
		groups:         1,
		LoadsOnDemand:  spec.LoadPolicy == v1alpha1.LoadOnDemand,
	}
	p.Warnings = warnOfSource(field.NewPath("spec"), p.spec.Model)
	policy := newTenantPolicy(s, in)
	if errs := append(policy.checkCache(field.NewPath("spec"), p.spec.Model.Cache), checkStates(field.NewPath("spec", "clusters"), &snapshot)...); len(errs) > 0 {
		return nil, errs
	}
	p.inFleet = scheduling.InFleet(p.spec.Placement) || scheduling.LeavesFleet(&snapshot)
	w := weightsOf(p.spec.Model, s)
	// Nobody knows yet which pods will use it, so the ModelCache says where its Job may run.
	nodes := &Role{Leader: PodTemplate{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Tolerations: tolerations(spec)}}}
	w.Loader = loaderOf(p.spec.Model, w, nodes, &in.ModelLoader)
	w.StorageClassName = cmp.Or(w.StorageClassName, policy.ModelCaches.StorageClassName)
	if w.AccessMode == corev1.ReadWriteOnce {
		p.warn(field.NewPath("spec", "accessMode"),
			"lets only one node mount the claim: pods of services that name this ModelCache stay Pending on other nodes. Use ReadWriteMany with a class that nodes can share")
	}
	p.Weights = w
	if p.inFleet {
		p.Secrets = p.secrets()
	}
	return p, nil
}

func tolerations(spec *v1alpha1.ModelCacheSpec) []corev1.Toleration {
	all := make([]corev1.Toleration, 0, len(spec.Tolerations))
	for _, t := range spec.Tolerations {
		all = append(all, corev1.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: t.Effect})
	}
	return all
}

// ModelName is the name of a ModelCache's model.
func (p *Plan) ModelName() string { return p.spec.Model.Source().Name }

// PlaceCache decides in which clusters the weights are loaded, and what is next in each. Users are the
// clusters in which services are placed that name the ModelCache, in order. The claim stays there, and while they are not known.
func (p *Plan) PlaceCache(users []string, known bool, running *RunningView) {
	if p.inFleet {
		demand := p.cacheDemand()
		demand.UsedBy = func(cluster string) bool {
			_, used := slices.BinarySearch(users, cluster)
			return used || !known
		}
		if p.LoadsOnDemand {
			demand.Scope = p.onDemand(users)
		}
		p.schedule(demand)
	} else {
		p.Clusters = append(p.Clusters, p.layout(p.Local(), everyReplica))
	}
	p.load(running)
}

// onDemand are the clusters in which services need the weights, and those that have them.
func (p *Plan) onDemand(users []string) *scheduling.Scope {
	s := &scheduling.Scope{Names: slices.Clone(users), Reason: scheduling.ReasonNotNeeded, Message: "no service that names the ModelCache is placed there"}
	for name, at := range p.snapshot.States {
		if at.Present[CacheReplica] {
			s.Names = append(s.Names, name)
		}
	}
	return s
}

// cacheDemand is a place in each cluster, on nodes whose taints the loading Job tolerates. Its node selector may have labels that no
// InferenceCluster lists, such as those of a zone.
func (p *Plan) cacheDemand() *scheduling.Demand {
	const pod = "loader"
	return &scheduling.Demand{
		ServiceID:       reservation.ServiceID{Namespace: p.Service.Namespace, Name: p.Service.Name, UID: p.Service.UID},
		Claimed:         p.Service.Claimed,
		Placement:       p.spec.Placement,
		Groups:          []reservation.ReplicaGroup{{Name: key.GroupOf(0), Replicas: []reservation.ReplicaRequest{{Name: CacheReplica, Pods: map[string]int64{pod: 1}}}}},
		PodRequirements: map[string]capacity.PodRequirements{pod: {Tolerations: capacity.TolerationsOf(p.Weights.Loader.Tolerations)}},
	}
}

// KeepClaim goes on with the claim that a ModelCache has, whatever its name. That has the UID of the ModelCache, which is another one after
// it was restored from a backup.
func (p *Plan) KeepClaim(name string) {
	if len(validation.IsDNS1123Label(name)) == 0 {
		p.Weights.ClaimName, p.Weights.LoaderName = name, name
	}
}

// RefuseOtherWeights refuses a change of what the weights are, and clusters for a ModelCache that is loaded
// in its own. The schema refuses the first too, but a ModelCache may come without validation by it.
// Services that serve with the weights would lose them.
func (p *Plan) RefuseOtherWeights(observed []key.Key) field.ErrorList {
	const remedy = ": make another ModelCache, and name it in the services"
	spec := field.NewPath("spec")
	here := slices.ContainsFunc(observed, func(k key.Key) bool { return k.Kind == key.PersistentVolumeClaim && k.Cluster == "" })
	for _, k := range observed {
		switch {
		case k.Kind != key.PersistentVolumeClaim:
		case k.Name != p.Weights.Hash:
			return field.ErrorList{field.Forbidden(spec, "uri, revision, size, storageClassName and accessMode cannot be changed"+remedy)}
		case k.Cluster != "" && p.spec.Placement == nil && !here:
			return field.ErrorList{field.Required(spec.Child("clusters"), "clusters or clusterSelector must stay once the weights are in clusters of the fleet"+remedy)}
		case k.Cluster == "" && p.spec.Placement != nil:
			return field.ErrorList{field.Forbidden(spec.Child("clusters"), "neither clusters nor clusterSelector can be added once the weights are in the cluster of this object"+remedy)}
		}
	}
	return nil
}
