package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

/*
Adapters are loaded into the claim of the service in these steps, in each cluster by itself:

 1. The status of the service says which claim is bound there, and which model the engines load.
 2. A Job loads each adapter into a directory of its own. Engines know the adapter by the directory's name.
 3. Once all adapters that get requests are complete, the InferenceModelRewrite names them.
 4. An annotation of the rewrite records what is loaded into which claim. Once that is observed, the Jobs
    go.

Until step 3, a rewrite that exists stays as it is: whoever gets requests keeps them. One that somebody else has edited, so that it cannot be
read, is made right at once. If the service does not say then where adapters are, nothing is changed at all.

No directory is ever changed or removed. So a stale read, or a Job that is made once more, harms nothing: an
adapter that the engines have is always there. A Job that finds its directory ends at once.
*/

// An adapter is that of one target.
type adapter struct {
	target string
	// directory is empty while the engines' model is not known.
	directory string
	// used tells that the target gets requests.
	used bool
	// spec of its Jobs, and the hash of it.
	spec *structpb.Struct
	hash string
}

// A loading is how far the adapters are in the cluster of one pool.
type loading struct {
	// claimUID is empty while no bound claim is known.
	claimUID string
	// former is the rewrite that exists. It is nil without one, or if it cannot be read.
	former *rewrite
	// loaded are the directories that are complete in the claim.
	loaded []string
	// recordUID is the claim, and recorded are the directories in it, that the former rewrite has in its record.
	recordUID string
	recorded  []string
	// jobs are those that are desired, in the order of the adapters.
	jobs []job
	// complete tells that all adapters that get requests are loaded, so that the rewrite names them.
	complete bool
	// waits tells that there is no rewrite until then.
	waits bool
	// unknown tells that the former rewrite cannot be read.
	unknown bool
	// findsPods tells that a collection finds the pods of the Jobs, in another cluster. podNames are those that
	// Objects observe.
	findsPods bool
	podNames  []string
}

// A rewrite is the part of an InferenceModelRewrite that is read.
type rewrite struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Rules []struct {
			Targets []struct {
				ModelRewrite string `json:"modelRewrite"`
				Weight       int32  `json:"weight"`
			} `json:"targets"`
		} `json:"rules"`
	} `json:"spec"`
}

var rewriteView = remote.NewDesiredView[rewrite]()

// readAdapters finds what the service says of its claims, and what is loaded where.
func (r *observedState) readAdapters(p *parsed, now time.Time) error {
	cache := r.adapterCache()
	for i := range p.spec.Targets {
		t := &p.spec.Targets[i]
		if t.Adapter == nil {
			continue
		}
		a := adapter{target: t.Name, used: *t.Weight > 0}
		if cache != nil {
			if err := a.plan(p, t.Adapter, cache); err != nil {
				return err
			}
		}
		r.adapters = append(r.adapters, a)
	}
	if len(r.adapters) == 0 {
		return nil
	}
	r.loading = make([]loading, len(r.pools))
	for i := range r.pools {
		cluster := r.pools[i].Target.Cluster
		r.loading[i] = loading{former: r.formerRewrite(cluster), claimUID: r.claimUID(p, cache, cluster)}
		r.loading[i].readRecord()
		r.readLoaded(&r.loading[i], p, cluster, now)
	}
	r.limitJobs()
	r.findPods()
	return nil
}

// plan says where an adapter is loaded, and how. The claims of all clusters have one name.
func (a *adapter) plan(p *parsed, from *v1alpha1.Adapter, cache *v1alpha1.AdapterCacheStatus) error {
	a.directory = naming.AdapterDirectory(p.identity.Name, a.target, from.URI, from.Revision, cache.ModelName)
	s := from.Source()
	l := loader.New(&p.input.ModelLoader)
	l.Users = loader.Users{User: cache.RunAsUser, Group: cache.RunAsGroup, VolumeGroup: cache.FSGroup}
	if err := l.Adapter(a.directory, loader.Engine{Model: cache.ModelName, MaxRank: cache.MaxRank}, loader.Source{
		Hub: s.Hub, Revision: from.Revision, Bucket: s.Bucket, Path: s.Path,
		TokenSecretRef: cache.TokenSecretRef, CredentialsSecretRef: cache.CredentialsSecretRef,
	}, &p.input.ModelLoader); err != nil {
		return err
	}
	var err error
	if a.spec, err = l.JobSpec(p.loaderName(), naming.AdapterClaim(p.spec.ServiceName, p.identity.Namespace), loader.AdaptersPath); err != nil {
		return fmt.Errorf("cannot render the Job that loads the adapter of target %q: %w", a.target, err)
	}
	a.hash = naming.Hash(kube.Canonical(a.spec))
	return nil
}

// readLoaded finds what is loaded in a cluster, and which Jobs are to load the rest.
func (r *observedState) readLoaded(l *loading, p *parsed, cluster string, now time.Time) {
	l.complete = true
	for i := range r.adapters {
		a := &r.adapters[i]
		recorded := a.directory != "" && slices.Contains(l.recorded, a.directory)
		done := recorded
		if a.directory != "" && !recorded && l.claimUID != "" {
			name := naming.AdapterJob(p.identity, a.directory, l.claimUID, a.hash)
			j := job{adapter: a, name: name, key: key.New(cluster, key.Job, name)}
			if failed := r.readJob(&j, now); !failed {
				l.jobs = append(l.jobs, j)
			}
			done = j.done
		}
		if done {
			l.loaded = append(l.loaded, a.directory)
		}
		l.complete = l.complete && (done || !a.used)
	}
	if l.former == nil && r.req.Observed(rewriteKey(cluster)).Exists() {
		// Somebody else has changed the rewrite so that it cannot be read. It is made right at once, because
		// whatever is left out is deleted. What is loaded is not known, so it is no record.
		l.complete, l.unknown = !slices.ContainsFunc(r.adapters, adapter.lost), true
	}
	l.waits = !l.complete && l.former == nil
}

// lost tells that an adapter gets requests, and that it is not known by which name.
func (a adapter) lost() bool { return a.used && a.directory == "" }

// lostAdapters refuses to name targets in place of a rewrite that cannot be read, while the service does not say where adapters are. A call
// that does not know the service yet refuses nothing: Crossplane would not look for it.
func (r *observedState) lostAdapters(p *parsed) field.ErrorList {
	edited := slices.IndexFunc(r.loading, func(l loading) bool { return l.unknown && l.waits })
	if !r.resolved || edited < 0 {
		return nil
	}
	lost := r.adapters[slices.IndexFunc(r.adapters, adapter.lost)].target
	at := slices.IndexFunc(p.spec.Targets, func(t v1alpha1.OwnedTarget) bool { return t.Name == lost })
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "targets").Index(at).Child("adapter"), text.InCluster(r.pools[edited].Target.Cluster, fmt.Sprintf(
		"needs status.adapterCache of service %s, because the InferenceModelRewrite was edited and cannot be read: delete the InferenceModelRewrite, or leave the adapter out", p.spec.ServiceName)))}
}

// served returns what the endpoint picker gets: the targets of the spec, or while adapters are being loaded, those of the
// former rewrite. It returns false if there is no rewrite yet, and is to be none.
func (l *loading) served(p *parsed, adapters []adapter) (modelroute.Model, bool) {
	m := modelroute.Model{Name: p.model.Name, Priority: p.model.Priority}
	if l.waits {
		return m, false
	}
	if !l.complete {
		for _, t := range l.former.Spec.Rules[0].Targets {
			m.Targets = append(m.Targets, modelroute.Target{Name: t.ModelRewrite, Weight: t.Weight})
		}
		return m, true
	}
	directories := map[string]string{}
	for i := range adapters {
		directories[adapters[i].target] = adapters[i].directory
	}
	for _, t := range p.model.Targets {
		m.Targets = append(m.Targets, modelroute.Target{Name: cmp.Or(directories[t.Name], t.Name), Weight: t.Weight})
	}
	return m, true
}

// readRecord reads what the former rewrite says of what is loaded. A claim that was recreated is empty.
func (l *loading) readRecord() {
	if l.former == nil {
		return
	}
	record := strings.Fields(l.former.Metadata.Annotations[naming.AnnotationLoadedAdapters])
	if len(record) == 0 || len(record) > maxRecord || l.claimUID != "" && l.claimUID != record[0] {
		return
	}
	l.recordUID, l.recorded = record[0], record[1:]
}

// annotations of the rewrite record what is loaded, and into which claim. What the former rewrite names stays in
// the record as long as that rewrite stays.
func (l *loading) annotations() map[string]string {
	all, uid := slices.Clone(l.loaded), cmp.Or(l.claimUID, l.recordUID)
	for _, d := range l.recorded {
		if !l.complete && l.former.names(d) {
			all = append(all, d)
		}
	}
	if uid == "" || len(all) == 0 || l.unknown {
		return nil
	}
	slices.Sort(all)
	return map[string]string{naming.AnnotationLoadedAdapters: strings.Join(append([]string{uid}, slices.Compact(all)...), " ")}
}

// maxRecord is the most words of a record: the claim, the targets of the former rewrite, and those of the spec.
const maxRecord = 1 + 2*v1alpha1.MaxTargets

// adapterCache is what the service says of its claims, or nil. Whoever may write the status of services could
// write anything there, so nothing that no service says counts.
func (r *observedState) adapterCache() *v1alpha1.AdapterCacheStatus {
	if r.service == nil {
		return nil
	}
	c := r.service.Status.AdapterCache
	if c == nil || c.ModelName == "" || min(c.RunAsUser, c.RunAsGroup) < 1 || min(c.FSGroup, int64(c.MaxRank)) < 0 || max(c.RunAsUser, c.RunAsGroup, c.FSGroup) > math.MaxInt32 || strings.ContainsFunc(c.ModelName, func(c rune) bool { return c < ' ' }) {
		return nil
	}
	if t := c.TokenSecretRef; t != nil && (len(validation.IsDNS1123Subdomain(t.Name)) > 0 || len(validation.IsConfigMapKey(t.TokenKey())) > 0) {
		return nil
	}
	if s := c.CredentialsSecretRef; s != nil && len(validation.IsDNS1123Subdomain(s.Name)) > 0 {
		return nil
	}
	return c
}

// claimUID returns the UID of the bound claim in a cluster, or nothing.
func (r *observedState) claimUID(p *parsed, c *v1alpha1.AdapterCacheStatus, cluster string) string {
	if c == nil {
		return ""
	}
	for _, s := range c.Clusters {
		if s.Name == cluster && s.ClaimName == naming.AdapterClaim(p.spec.ServiceName, p.identity.Namespace) && len(validation.IsDNS1123Label(s.UID)) == 0 {
			return s.UID
		}
	}
	return ""
}

// formerRewrite reads the rewrite of a cluster.
func (r *observedState) formerRewrite(cluster string) *rewrite {
	observed := r.req.Observed(rewriteKey(cluster))
	if !observed.Exists() {
		return nil
	}
	w, unread := rewriteView.Read(observed)
	if len(unread) > 0 || len(w.Spec.Rules) != 1 || len(w.Spec.Rules[0].Targets) == 0 || len(w.Spec.Rules[0].Targets) > v1alpha1.MaxTargets {
		return nil
	}
	for _, t := range w.Spec.Rules[0].Targets {
		if t.ModelRewrite == "" || t.Weight < 1 || t.Weight > v1alpha1.MaxWeight {
			return nil
		}
	}
	return &w
}

// names tells whether a rewrite gives requests to a target.
func (w *rewrite) names(target string) bool {
	if w == nil {
		return false
	}
	for _, t := range w.Spec.Rules[0].Targets {
		if t.ModelRewrite == target {
			return true
		}
	}
	return false
}

// loadingIn returns what is loaded for a pool, or nil without adapters.
func (r *observedState) loadingIn(pool int) *loading {
	if len(r.loading) == 0 {
		return nil
	}
	return &r.loading[pool]
}
