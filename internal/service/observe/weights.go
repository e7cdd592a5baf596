package observe

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A claim is the part of a PersistentVolumeClaim that is read.
type claim struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		StorageClassName string   `json:"storageClassName"`
		AccessModes      []string `json:"accessModes"`
		Resources        struct {
			Requests map[string]string `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PersistentVolumeClaimPhase `json:"phase"`
	} `json:"status"`
}

// A job is the part of a Job that is read.
type job struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Active      int32       `json:"active"`
		Ready       int32       `json:"ready"`
		Failed      int32       `json:"failed"`
		Terminating int32       `json:"terminating"`
		Conditions  []condition `json:"conditions"`
	} `json:"status"`
}

// A loadedStatus is the part of the status of the last call that tells which weights are loaded: of a
// service in model, and of a ModelCache beside it.
type loadedStatus struct {
	Status struct {
		Model struct {
			Caches []v1alpha1.CacheStatus `json:"caches"`
		} `json:"model"`
		Caches []v1alpha1.CacheStatus `json:"caches"`
	} `json:"status"`
}

var (
	claimView  = remote.NewDesiredView[claim]()
	jobView    = incoming.NewView[job]()
	loadedView = incoming.NewCompositeView[loadedStatus]()
)

// Weights returns what is known of the weights in a cluster.
func (r *ObservedState) Weights(c *plan.ClusterPlan) plan.WeightsView {
	v := plan.WeightsView{Job: r.job}
	for _, k := range r.req.ObservedOf(c.Target.Cluster, key.PersistentVolumeClaim) {
		v.Claims = append(v.Claims, r.claim(k))
	}
	v.Named = r.namedClaim(c)
	v.PodNames = func(limit int) []string {
		members, _ := r.req.Required(require.LoaderPods(r.plan.LoaderPodsKey(c)))
		return remote.PodNames(members, limit)
	}
	v.Loaded = func(hash, claimName string) (string, bool) { return r.loaded(c, hash, claimName) }
	v.Unfinished = func(hash, claimName string) bool {
		s := r.lastCaches()[cacheKey{cluster: c.Target.Cluster, hash: hash, claimName: claimName}]
		return (s.State == v1alpha1.CacheLoading || s.State == v1alpha1.CacheFailed) && s.ClaimUID == "" && !r.mayBeComplete()[weightsKey{cluster: c.Target.Cluster, hash: hash}]
	}
	return v
}

// A cacheKey identifies a CacheStatus: that of some weights in a claim of a cluster.
type cacheKey struct{ cluster, hash, claimName string }

// readLastCaches returns what the last call has written of weights into the status. What it wrote first of a claim counts.
func readLastCaches(req incoming.Request) map[cacheKey]v1alpha1.CacheStatus {
	former := loadedView.In(req.Composite())
	all := map[cacheKey]v1alpha1.CacheStatus{}
	for _, s := range slices.Backward(slices.Concat(former.Status.Model.Caches, former.Status.Caches)) {
		all[cacheKey{cluster: s.Cluster, hash: s.Weights, claimName: s.ClaimName}] = s
	}
	return all
}

// loaded returns the UID of the claim that was said to have weights in a cluster, and whether one was.
func (r *ObservedState) loaded(c *plan.ClusterPlan, hash, claimName string) (uid string, ok bool) {
	s := r.lastCaches()[cacheKey{cluster: c.Target.Cluster, hash: hash, claimName: claimName}]
	return s.ClaimUID, s.State == v1alpha1.CacheReady
}

// A weightsKey identifies the weights of a hash in a cluster.
type weightsKey struct{ cluster, hash string }

// weightsThatMayBeComplete are those whose Job has completed, or whose cluster does not say whether it has.
func weightsThatMayBeComplete(req incoming.Request) map[weightsKey]bool {
	all := map[weightsKey]bool{}
	for _, k := range req.ObservedKeys() {
		hash, _, ofJob := strings.Cut(k.Name, "/")
		if k.Kind != key.Job || !ofJob {
			continue
		}
		found, state := remote.Unwrap(req.Observed(k))
		if !state.Readable() || find(jobView.In(found).Status.Conditions, string(batchv1.JobComplete)).Status == composite.True {
			all[weightsKey{cluster: k.Cluster, hash: hash}] = true
		}
	}
	return all
}

// namedClaim reads the claim that spec.model.cache.claimName names.
func (r *ObservedState) namedClaim(c *plan.ClusterPlan) plan.ClaimView {
	found := r.namedObject(c)
	if !found.Exists() || found.DeletionTimestamp() != "" {
		return plan.ClaimView{}
	}
	return plan.ClaimView{Key: r.plan.NamedClaimKey(c), Name: found.Name(), UID: uid.Text(found), Created: created(found)}
}

// namedObject is that claim. It does not exist if it cannot be read.
func (r *ObservedState) namedObject(c *plan.ClusterPlan) incoming.Object {
	w := r.plan.Weights
	if w == nil || w.Own {
		return incoming.Object{}
	}
	k := r.plan.NamedClaimKey(c)
	var found incoming.Object
	if c.Target.Remote() {
		o, state := remote.Unwrap(r.req.Observed(k))
		if !state.Readable() {
			return incoming.Object{}
		}
		found = o
	} else if answer, _ := r.req.Required(require.NamedClaim(k)); len(answer) > 0 {
		found = answer[0]
	}
	if found.Name() != w.ClaimName {
		return incoming.Object{}
	}
	return found
}

// The labels of claims that services and ModelCaches make.
var (
	serviceLabel = incoming.NewPath("metadata", "labels", naming.LabelService)
	cacheLabel   = incoming.NewPath("metadata", "labels", naming.LabelModelCache)
)

// claimOfOthers warns of a claim in spec.model.cache.claimName that another service or a ModelCache has made. Its maker deletes it.
func (e *evaluator) claimOfOthers() []plan.Warning {
	for i := range e.plan.Clusters {
		c := &e.plan.Clusters[i]
		if c.Loading == nil {
			continue
		}
		found := e.state.namedObject(c)
		maker, remedy := "", ""
		if s := serviceLabel.Text(found); s != "" && s != c.Base {
			maker, remedy = "service "+text.Value(s)+" has made, and deletes with its next revision", "name one ModelCache in both services"
		} else if m := cacheLabel.Text(found); m != "" {
			maker, remedy = "ModelCache "+text.Value(m)+" has made, and which goes with it", "name it in spec.model.cacheRef"
		}
		if maker != "" {
			return []plan.Warning{{
				Path:    field.NewPath("spec", "model", "cache", "claimName").String(),
				Message: text.InCluster(c.Target.Cluster, "names claim "+found.Name()+", which "+maker+": "+remedy),
			}}
		}
	}
	return nil
}

// lacksNamedClaim tells that there is no claim of the name in spec.model.cache.claimName, beside the service. In another cluster, that is
// not known.
func (r *ObservedState) lacksNamedClaim(c *plan.ClusterPlan) bool {
	if r.plan.Weights.Own || c.Target.Remote() {
		return false
	}
	found, answered := r.req.Required(require.NamedClaim(r.plan.NamedClaimKey(c)))
	return answered && len(found) == 0
}

// claim reads a claim that exists, or that its cluster was told to make.
func (r *ObservedState) claim(k key.Key) plan.ClaimView {
	observed := r.req.Observed(k)
	v := plan.ClaimView{Key: k, Deleting: observed.DeletionTimestamp() != ""}
	c := claimView.In(observed)
	v.Name, v.Size, v.StorageClassName = c.Metadata.Name, c.Spec.Resources.Requests[string(corev1.ResourceStorage)], c.Spec.StorageClassName
	if len(c.Spec.AccessModes) > 0 {
		v.AccessMode = c.Spec.AccessModes[0]
	}
	found, state := remote.Unwrap(observed)
	there := claimView.In(found)
	// Whoever has grown the claim in its cluster is not undone: Kubernetes makes no claim smaller, and its Object would never be
	// ready again. So what was read last counts even while the cluster does not answer.
	v.Size = larger(v.Size, there.Spec.Resources.Requests[string(corev1.ResourceStorage)])
	if state.Readable() {
		v.UID, v.Created = uid.Text(found), created(found)
		v.Bound, v.Lost = there.Status.Phase == corev1.ClaimBound, there.Status.Phase == corev1.ClaimLost
		v.Deleting = v.Deleting || found.DeletionTimestamp() != ""
	}
	return v
}

// larger returns the size that a claim has in its cluster if it is more than the one that was asked for.
func larger(asked, there string) string {
	a, err := kube.ParseQuantity(asked)
	if err != nil {
		return asked
	}
	if t, err := kube.ParseQuantity(there); err == nil && t.Cmp(a) > 0 {
		return there
	}
	return asked
}

func (r *ObservedState) job(k key.Key) plan.JobView {
	v := plan.JobView{Exists: r.Observed(k)}
	found, state := remote.Unwrap(r.req.Observed(k))
	j := jobView.In(found)
	v.Active, v.FailedPods = j.Status.Active > 0, j.Status.Failed
	if !v.Exists || !state.Readable() {
		return v
	}
	v.Created = newest(time.Time{}, j.Metadata.CreationTimestamp)
	v.Complete = find(j.Status.Conditions, string(batchv1.JobComplete)).Status == composite.True && j.Metadata.DeletionTimestamp == ""
	if f := find(j.Status.Conditions, string(batchv1.JobFailed)); f.Status == composite.True {
		v.Failed = newest(time.Time{}, f.LastTransitionTime)
	}
	return v
}

func created(o incoming.Object) time.Time { return newest(time.Time{}, creationTimestamp.Text(o)) }
