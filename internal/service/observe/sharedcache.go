package observe

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A modelCache is the part of a ModelCache that is read. Only Crossplane writes its status.
type modelCache struct {
	Spec struct {
		URI             string                `json:"uri"`
		Clusters        []string              `json:"clusters"`
		ClusterSelector *metav1.LabelSelector `json:"clusterSelector"`
	} `json:"spec"`
	Status struct {
		ModelName string                 `json:"modelName"`
		ClaimName string                 `json:"claimName"`
		Directory string                 `json:"directory"`
		Caches    []v1alpha1.CacheStatus `json:"caches"`
	} `json:"status"`
}

// A usedStatus is the part of the status of the last call that tells which shared weights engines load.
type usedStatus struct {
	Status struct {
		Model struct {
			Shared *v1alpha1.SharedCacheStatus `json:"shared"`
		} `json:"model"`
	} `json:"status"`
}

var (
	modelCacheView = incoming.NewView[modelCache]()
	usedView       = incoming.NewCompositeView[usedStatus]()
)

// CacheSnapshot reads what planning a ModelCache goes by. Where its claim exists, its place is taken.
func CacheSnapshot(req incoming.Request, p *v1alpha1.Placement, now time.Time) scheduling.Snapshot {
	snapshot := Snapshot(req, &v1alpha1.InferenceServiceSpec{Placement: p}, now)
	for _, k := range req.ObservedKeys() {
		at := snapshot.States[k.Cluster]
		if k.Kind != key.PersistentVolumeClaim || at == nil || k.Cluster == "" || req.Observed(k).DeletionTimestamp() != "" {
			continue
		}
		at.Present[plan.CacheReplica], at.Ready[plan.CacheReplica], at.WasReady[plan.CacheReplica] = true, true, true
	}
	return snapshot
}

// CacheClaim returns the name of the claim that a ModelCache has for weights of a hash, or nothing. It is the same in all clusters.
func CacheClaim(req incoming.Request, hash string) string {
	for _, k := range req.ObservedKeys() {
		if k.Kind != key.PersistentVolumeClaim || k.Name != hash {
			continue
		}
		if name := claimView.In(req.Observed(k)).Metadata.Name; name != "" {
			return name
		}
	}
	return ""
}

// CacheUsers returns the InferenceClusters in which services are placed that name a ModelCache. Their capacity
// requests say that. Whoever else writes such a request has a cache loaded that is the tenant's own. They are not known until
// Crossplane has answered, nor while a request cannot be read: it may be of a service that needs the cache.
func CacheUsers(req incoming.Request) (users []string, known bool) {
	found, known := req.Required(require.CacheUsers)
	all := map[string]bool{}
	for _, o := range found {
		request, err := reservation.DecodeRequest(requestData.Text(o))
		if err != nil {
			known = false
			continue
		}
		for name, at := range request.Clusters {
			if len(at.Running) > 0 {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), known
}

// SharedCache returns what is known of the ModelCache that a service names. A ModelCache that is missing,
// or goes, changes nothing of what runs: the engines keep what they were told last. It returns a
// problem if engines run that were told nothing, because then nobody knows what they are to load.
func SharedCache(req incoming.Request, name string) (*plan.SharedCache, field.ErrorList) {
	s := &plan.SharedCache{Name: name, States: map[string]v1alpha1.CacheStatus{}}
	last := usedView.In(req.Composite())
	if used := last.Status.Model.Shared; used != nil && used.Usable() {
		s.Used = used
	}
	found, resolved := req.Required(require.ModelCache)
	switch {
	case !resolved:
		s.Missing = "Crossplane has not answered yet which ModelCaches there are"
		return s, nil
	case len(found) == 0:
		s.Missing = "there is no ModelCache " + name + " in the namespace of the service"
	default:
		readModelCache(s, found)
	}
	if s.Scope == nil {
		s.Scope = &scheduling.Scope{Reason: scheduling.ReasonNoCache, Message: s.Missing}
	}
	runs := slices.ContainsFunc(req.ObservedKeys(), func(k key.Key) bool { return k.Kind == key.LeaderWorkerSet })
	if s.Used == nil && runs {
		return s, field.ErrorList{field.Invalid(field.NewPath("spec", "model", "cacheRef", "name"), text.Value(name), s.Missing+": what runs stays as it is")}
	}
	return s, nil
}

// forgetsModels refuses a ModelCache that says nothing yet, for a service whose endpoint picker reads InferenceModels only because it did
// so before. While the names of the model are unknown, the status would not say that it does, and the next call would choose another
// endpoint picker.
func (r *ObservedState) forgetsModels() field.ErrorList {
	s := r.plan.Shared
	if s == nil || s.Used != nil || s.Scope == nil || r.plan.Router == nil || !r.plan.Router.KeepsDialect {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "model", "cacheRef", "name"), text.Value(s.Name), s.Missing+": InferenceModels may name this service, and its endpoint picker would not read them any more")}
}

// readModelCache reads the ModelCache. Behind a claim that was recreated there may be two: one of them
// is being deleted.
func readModelCache(s *plan.SharedCache, found []incoming.Object) {
	o := found[0]
	if i := slices.IndexFunc(found, func(o incoming.Object) bool { return o.DeletionTimestamp() == "" }); i >= 0 {
		o = found[i]
	}
	c := modelCacheView.In(o)
	s.Scope = &scheduling.Scope{Names: c.Spec.Clusters, Selector: c.Spec.ClusterSelector, Reason: scheduling.ReasonNoCache, Message: "ModelCache " + s.Name + " is not for this cluster"}
	now := &v1alpha1.SharedCacheStatus{Name: s.Name, ModelName: c.Status.ModelName, ClaimName: c.Status.ClaimName, Directory: c.Status.Directory, Source: c.Spec.URI}
	switch {
	case o.DeletionTimestamp() != "":
		s.Missing = "ModelCache " + s.Name + " is being deleted"
		return
	case !now.Usable():
		s.Missing = "ModelCache " + s.Name + " does not say yet where its weights are: see its condition Accepted"
		return
	}
	s.Used = now
	for _, at := range c.Status.Caches {
		s.States[at.Cluster] = at
	}
}
