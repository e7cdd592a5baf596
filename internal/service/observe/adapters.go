package observe

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An adapterStatus is the part of the status of the last call that tells where adapters are loaded.
type adapterStatus struct {
	Status struct {
		AdapterCache formerAdapters `json:"adapterCache"`
	} `json:"status"`
}

// formerAdapters are the fields of an AdapterCacheStatus that later calls go by.
type formerAdapters struct {
	ModelName     string                        `json:"modelName"`
	ModelSource   string                        `json:"modelSource"`
	MaxRank       int32                         `json:"maxRank"`
	FormerMaxRank int32                         `json:"formerMaxRank"`
	RunAsUser     int64                         `json:"runAsUser"`
	Clusters      []v1alpha1.AdapterClaimStatus `json:"clusters"`
}

// removed tells that spec.adapterCache was removed while requests may have gone to its adapters.
func (f *formerAdapters) removed() bool { return f.ModelName != "" && f.RunAsUser == 0 }

// served tells that requests may have gone to adapters.
func (f *formerAdapters) served() bool { return len(f.Clusters) > 0 || f.removed() }

var adapterView = incoming.NewCompositeView[adapterStatus]()

// formerAdapters is what the last call has said of adapters.
func (r *ObservedState) formerAdapters() formerAdapters {
	former := adapterView.In(r.req.Composite())
	return former.Status.AdapterCache
}

// HasAdapterClaim tells that a claim for adapters exists in some cluster, or that its cluster was told to make it.
func (r *ObservedState) HasAdapterClaim() bool {
	return slices.ContainsFunc(r.req.ObservedKeys(), plan.IsForAdapters)
}

// adapterStatus says where InferenceModels load adapters. Without spec.adapterCache it has only the model of the adapters that
// engines may serve, or is nil.
func (e *evaluator) adapterStatus() *v1alpha1.AdapterCacheStatus {
	a := e.plan.Adapters
	if a == nil {
		if former := e.state.formerAdapters(); e.plan.FormerAdapters && former.served() {
			return &v1alpha1.AdapterCacheStatus{ModelName: former.ModelName, ModelSource: former.ModelSource}
		}
		return nil
	}
	rank := e.state.maxRank()
	st := &v1alpha1.AdapterCacheStatus{
		ModelName: a.ModelName, ModelSource: e.plan.ModelSource(), MaxRank: rank, FormerMaxRank: e.state.formerMaxRank(rank),
		RunAsUser: a.User, RunAsGroup: a.Group, FSGroup: a.VolumeGroup,
		TokenSecretRef: a.TokenSecretRef, CredentialsSecretRef: a.CredentialsSecretRef,
	}
	former := e.state.formerAdapters()
	for i := range e.plan.Clusters {
		if c := &e.plan.Clusters[i]; c.AdapterClaim != nil {
			st.Clusters = append(st.Clusters, e.state.adapterClaim(c, former.Clusters)...)
		}
	}
	slices.SortFunc(st.Clusters, func(a, b v1alpha1.AdapterClaimStatus) int { return cmp.Compare(a.Name, b.Name) })
	return st
}

// adapterClaim returns the claim of a cluster once it has a volume, and all replicas mount it. A claim that
// cannot be read is where it was. What was said once stays: later templates mount it, too.
func (r *ObservedState) adapterClaim(c *plan.ClusterPlan, former []v1alpha1.AdapterClaimStatus) []v1alpha1.AdapterClaimStatus {
	if !r.Observed(c.AdapterClaim.Key) {
		return nil
	}
	at := v1alpha1.AdapterClaimStatus{Name: c.Target.Cluster, ClaimName: c.AdapterClaim.ClaimName}
	i := slices.IndexFunc(former, func(s v1alpha1.AdapterClaimStatus) bool { return s.Name == at.Name && s.ClaimName == at.ClaimName })
	switch claim := r.claim(c.AdapterClaim.Key); {
	case claim.Deleting:
		return nil
	case claim.UID == "" && i < 0, claim.UID != "" && !claim.Bound:
		return nil
	case i < 0 && c.HasFormer:
		return nil
	case claim.UID == "":
		at.UID = former[i].UID
	default:
		at.UID = claim.UID
	}
	return []v1alpha1.AdapterClaimStatus{at}
}

// adapterCacheChanged finds a claim for adapters that was made with something else than what the spec says.
// Engines mount it, so it stays.
func (r *ObservedState) adapterCacheChanged() field.ErrorList {
	if err := r.otherModel(); err != nil {
		return field.ErrorList{err}
	}
	for _, k := range r.req.ObservedKeys() {
		if !plan.IsForAdapters(k) {
			continue
		}
		if claim := r.claim(k); !claim.Deleting {
			if errs := r.plan.RefuseOtherClaim(&claim); len(errs) > 0 {
				return errs
			}
		}
	}
	return nil
}

// otherModel refuses that engines which load adapters get another model. Each adapter has the name of the model in
// it. So in a rollout either the former replicas or the new ones would refuse requests for adapters. Models in claims
// and images have one name, so where they come from counts, too. An earlier version has not said that. Former replicas go on serving
// adapters after spec.adapterCache was removed.
func (r *ObservedState) otherModel() *field.Error {
	former := r.formerAdapters()
	if !former.served() || former.removed() && r.adapterClaimsGo() {
		return nil
	}
	was, is, wait := former.ModelSource, r.plan.ModelSource(), ""
	switch a := r.plan.Adapters; {
	case a != nil && former.ModelName != a.ModelName:
		was, is = former.ModelName, a.ModelName
	case a != nil:
	case !r.plan.FormerAdapters:
		return nil
	default:
		wait = "Remove adapterCache first, and change the model once the rollout is complete. Or make"
		// Without adapters, the same model may have another path.
		if was == "" || is == "" {
			was, is = former.ModelName, r.plan.OtherModel(former.ModelName)
		}
	}
	if was == "" || is == "" || was == is {
		return nil
	}
	for _, replica := range r.plan.Replicas() {
		if r.Replica(replica.Key).MayServe() {
			return field.Forbidden(field.NewPath("spec", "model"), fmt.Sprintf(
				"must stay %s while engines serve adapters of spec.adapterCache, and is %s: an adapter is for one model. %s another service, or %s",
				text.Value(was), text.Value(is), cmp.Or(wait, "Make"), r.stopFirst("replicas", r.roleNames()...)))
		}
	}
	return nil
}

// adapterClaimsGo tells that all claims for adapters are being deleted, because no replica can have a former template.
func (r *ObservedState) adapterClaimsGo() bool {
	return !slices.ContainsFunc(r.req.ObservedKeys(), func(k key.Key) bool { return plan.IsForAdapters(k) && !r.claim(k).Deleting })
}

// losesAdapters warns of requests for adapters that replicas without spec.adapterCache refuse.
func (e *evaluator) losesAdapters() []plan.Warning {
	former := e.state.formerAdapters()
	if !e.plan.FormerAdapters || !former.served() || e.state.adapterClaimsGo() {
		return nil
	}
	return []plan.Warning{{
		Path: field.NewPath("spec", "adapterCache").String(),
		Message: "was removed, and each replica that is replaced loses its adapters: requests for InferenceModels that have some fail there. " +
			"Give these models other targets, or add adapterCache again",
	}}
}

// maxRank is the highest rank that all engines serve, or 0 if that is not known. While a replica has a former template, adapters
// have to fit that one and the newest. If one of the two ranks is not known, the other one counts: without any, InferenceModels
// would take adapters of every rank.
func (r *ObservedState) maxRank() int32 {
	newest, former := r.plan.Adapters.MaxRank, r.formerAdapters().MaxRank
	mixed := slices.ContainsFunc(r.plan.Clusters, func(c plan.ClusterPlan) bool { return c.HasFormer })
	switch {
	case !mixed || former <= 0:
		return newest
	case newest == 0:
		return former
	}
	return min(former, newest)
}

// formerMaxRank is the highest rank that engines have served while there is a claim, if that is more than a rank.
func (r *ObservedState) formerMaxRank(rank int32) int32 {
	former := r.formerAdapters()
	if most := max(former.MaxRank, former.FormerMaxRank); len(former.Clusters) > 0 && most > rank {
		return most
	}
	return 0
}

// lowerRank warns of engines that may refuse adapters which are loaded. Only the Job that loads an adapter reads its
// rank, so the warning stays as long as the claim.
func (e *evaluator) lowerRank() []plan.Warning {
	if e.plan.Adapters == nil || e.plan.Adapters.MaxRank == 0 {
		return nil
	}
	now := e.plan.Adapters.MaxRank
	before := e.state.formerMaxRank(now)
	if before == 0 {
		return nil
	}
	return []plan.Warning{{
		Path: field.NewPath("spec", "adapterCache").String(),
		Message: fmt.Sprintf("engines serve adapters of a rank up to %d by --max-lora-rank, and served them up to %d: they refuse requests for an adapter that is loaded and has a higher rank. "+
			"Set the flag back to %d, or give names that have such an adapter other targets", now, before, before),
	}}
}
