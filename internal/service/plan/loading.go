package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

/*
Weights are loaded in these steps, in each cluster by itself:

 1. The claim is made where replicas are to run: in the fleet, where their capacity is reserved.
 2. Once the claim exists, a Job loads the weights into it. Its name has a hash of what its pods are made
    from, because the template of a Job cannot change. So a change of the Input makes another Job, which
    goes on where the former one was.
 3. Once the Job is complete, the status of the service says which claim has the weights, and the Job
    goes. Nothing makes it again, whatever the Input says later.
 4. New replicas are created only now. Those that exist, with other weights, keep their pods until now,
    and are then released as spec.rollout says.
 5. The claim of former weights goes when all replicas serve with the newest ones. Kubernetes keeps it
    until no pod uses it any more (kubernetes.io/pvc-protection). If they never were complete, it goes at once. Where roles may run no replicas until a
    request starts them, it stays until the newest ones are there, and these are loaded meanwhile. One that the newest templates mount stays.

A Job restarts its container for ever, with the kubelet's back-off of at most five minutes. If something
fails the Job all the same, it is recreated after retryAfter.

The pods of a Job have random names. So in another cluster, a collection finds them by their label while the
Job has pods, and Objects observe a few of them. A collection alone would not do: its Objects are ready at
once, so the provider looks at them only every 10 minutes.
*/

// A Cache is a claim with weights that is rendered.
type Cache struct {
	Key       key.Key
	ClaimName string
	// Weights is the hash of what it has, and UID its own. The UID is empty until it exists.
	Weights, UID string
	// Size, StorageClassName and AccessMode are what it was made with. An empty class is left out.
	Size, StorageClassName, AccessMode string
	// Loaded tells that the weights are complete.
	Loaded bool
}

// A Loading is how the newest weights get into a cluster.
type Loading struct {
	// Done tells that they are there.
	Done bool
	// Shared is what is known of them in the ModelCache that the service names. It is nil for a cache of
	// its own. If it is set, the service has no Job.
	Shared *v1alpha1.CacheStatus
	// Wanted tells that they are to be there: otherwise no replica needs them.
	Wanted bool
	// ClaimUID is that of a claim of others that has them. It is empty if it is not known.
	ClaimUID string
	// Job that loads them. It is not rendered if Renders is false: the status says that they are
	// there, or their claim is not.
	Job     key.Key
	JobName string
	Renders bool
	// FindsPods tells that a collection finds the pods of the Job, in another cluster. PodNames are those
	// that Objects observe, and FailedPods is how many have failed.
	FindsPods  bool
	PodNames   []string
	FailedPods int32
}

// MaxLoaderPods is how many pods of a loading Job Objects observe in another cluster. A Job has one at a time,
// beside those that have ended.
const MaxLoaderPods = 3

// A WeightsView is what is observed of weights in one cluster.
type WeightsView struct {
	// Claims of the service, sorted by their keys.
	Claims []ClaimView
	// Loaded returns the UID of the claim that was said to have the weights of a hash, and whether
	// one was.
	Loaded func(hash, claimName string) (uid string, ok bool)
	// Unfinished tells that the weights of a hash were never complete in a claim. It is false where that is not known.
	Unfinished func(hash, claimName string) bool
	// Named is the claim that spec.model.cache.claimName names. Without a UID it is not known.
	Named ClaimView
	// Job returns the Job of a key.
	Job func(key.Key) JobView
	// PodNames returns the names of pods that the collection has found, up to a limit.
	PodNames func(limit int) []string
}

// A ClaimView is an observed claim. Its cluster may be out of reach: then the UID is empty.
type ClaimView struct {
	Key                                key.Key
	Name, UID                          string
	Size, StorageClassName, AccessMode string
	Created                            time.Time
	Deleting                           bool
	// Bound tells that it is known to have a volume, and Lost that it had one that is gone.
	Bound, Lost bool
}

// A JobView is an observed loading Job.
type JobView struct {
	Exists, Complete bool
	// Active tells that it has pods that have not ended, and FailedPods how many have failed, as far as is
	// known.
	Active     bool
	FailedPods int32
	Created    time.Time
	// Failed is when it failed for good. Zero if it has not.
	Failed time.Time
}

// retryAfter is how long after it has failed for good a Job is recreated.
const retryAfter = 10 * time.Minute

// load decides which claims and Jobs each cluster has, and which replicas wait for weights.
func (p *Plan) load(running *RunningView) {
	if running.Weights == nil {
		return
	}
	named := p.namedClaims()
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.NotStarted || c.Unschedulable {
			continue
		}
		if p.Shared != nil {
			c.Loading = p.Shared.loading(c)
			c.await(running)
		}
		view := running.Weights(c)
		mayUse := c.mayUse(p.Service, &view, running)
		var newest, adapters *ClaimView
		var unused []Cache
		for j := range view.Claims {
			switch claim := &view.Claims[j]; {
			case IsForAdapters(claim.Key):
				adapters = claim
			case p.Weights != nil && claim.Key == c.claimKey(p.Weights):
				newest = claim
			case mayUse(claim) || named[claim.cache(p.Service).ClaimName]:
				c.Caches = append(c.Caches, claim.cache(p.Service))
			case view.complete(claim.cache(p.Service)):
				unused = append(unused, claim.cache(p.Service))
			}
		}
		c.AdapterClaim = p.adapterClaim(c, adapters, named, running)
		c.HasFormer = c.hasFormer(running)
		if p.Weights != nil {
			c.loadNewest(p, newest, unused, &view, running)
			c.await(running)
		}
	}
	p.warnOfOwnClaim(named)
}

// LoaderPodsKey is the key of the collection that finds the pods of the loading Job in another cluster.
func (p *Plan) LoaderPodsKey(c *ClusterPlan) key.Key { return c.Key(key.LoaderPods, p.Weights.Hash) }

// loaderPods is how many pods of the loading Job Objects may observe in a cluster.
func (p *Plan) loaderPods(c *ClusterPlan) int {
	if !c.Target.Remote() {
		return 0
	}
	return int(min(p.PodLimit, MaxLoaderPods))
}

// LaterLoaderObjects is how many objects are rendered later to find and observe the pods of loading Jobs.
func (p *Plan) LaterLoaderObjects() int {
	n := 0
	for i := range p.Clusters {
		c := &p.Clusters[i]
		limit := p.loaderPods(c)
		if p.Weights == nil || limit == 0 || c.Loading != nil && c.Loading.Done {
			continue
		}
		n += 1 + limit
		if l := c.Loading; l != nil && l.FindsPods {
			n -= 1 + len(l.PodNames)
		}
	}
	return n
}

// complete tells whether a claim was said to have its weights.
func (v *WeightsView) complete(c Cache) bool {
	_, loaded := v.Loaded(c.Weights, c.ClaimName)
	return loaded
}

// loadNewest decides how the newest weights get here. Claim is nil if it does not exist. unused are the claims of former weights
// that are complete, and that no replica uses.
func (c *ClusterPlan) loadNewest(p *Plan, claim *ClaimView, unused []Cache, view *WeightsView, running *RunningView) {
	w := p.Weights
	l := &Loading{Job: c.Key(key.Job, w.Hash, running.Loader), JobName: w.LoaderName + "-" + running.Loader}
	c.Loading = l
	// A role that sleeps has run here with former weights, and wakes with the newest ones.
	wakes := len(unused) > 0 && !c.Leaving && p.runsFromZero()
	l.Wanted = wakes || !c.Leaving && (p.Service.OfCache || c.hasReplicas())
	job := view.Job(l.Job)
	done, current := l.loaded(w, claim, view, job)
	l.Done = done || current && job.Complete
	if wakes && !l.Done {
		c.Caches = append(c.Caches, unused...)
	}
	stale := job.Exists && (!current || !job.Failed.IsZero() && running.Now.Sub(job.Failed) > retryAfter)
	// The Job stays until the status has it. Otherwise a failed apply could lose that it is complete.
	l.Renders = l.Wanted && !done && !c.Leaving && !stale && (!w.Own || claim != nil && !claim.Deleting && !claim.Lost)
	if limit := p.loaderPods(c); limit > 0 && l.Renders && job.Active {
		l.FindsPods, l.FailedPods, l.PodNames = true, job.FailedPods, view.PodNames(limit)
	}
	if !w.Own || !l.Wanted {
		return
	}
	cache := Cache{Key: c.claimKey(w), ClaimName: w.ClaimName, Weights: w.Hash, Size: w.Size, StorageClassName: w.StorageClassName, AccessMode: string(w.AccessMode)}
	if claim != nil {
		cache = claim.cache(p.Service)
	}
	cache.Loaded = l.Done
	c.Caches = append(c.Caches, cache)
}

// loaded tells whether the weights are known to be in the claim, and whether a Job that exists loads into that claim. A
// claim that was recreated is empty, whatever was loaded into the former one. While the cluster of a Job does
// not say when the Job was made, the Job stays.
func (l *Loading) loaded(w *Weights, claim *ClaimView, view *WeightsView, job JobView) (done, current bool) {
	uid, done := view.Loaded(w.Hash, w.ClaimName)
	if w.Own {
		l.Wanted = l.Wanted || claim != nil
		there := claim != nil && !claim.Deleting && !claim.Lost
		return done && there && (claim.UID == "" || claim.UID == uid),
			job.Exists && there && (job.Created.IsZero() || !job.Created.Before(claim.Created))
	}
	// While nothing is known of a claim of somebody else, nothing changes.
	l.Wanted = l.Wanted || done || job.Exists
	named := &view.Named
	if l.ClaimUID = named.UID; done {
		l.ClaimUID = cmp.Or(named.UID, uid)
	}
	return done && (named.UID == "" || uid == "" || named.UID == uid),
		job.Exists && (job.Created.IsZero() || !job.Created.Before(named.Created))
}

// await holds the replicas that run with another template until the newest weights are there.
func (c *ClusterPlan) await(running *RunningView) {
	if c.Loading.Done {
		return
	}
	for r := range c.Replicas() {
		s := running.Replica(r.Key)
		r.AwaitsWeights = s.Exists && !s.Updated(running.Revision[r.Role.Name])
		r.Held = r.Held || r.AwaitsWeights
	}
}

// DeferForWeights defers new replicas until the weights are there. With all replicas of a group, it
// defers their PodGroup, for which a queue would keep room.
func (p *Plan) DeferForWeights(observed func(key.Key) bool) []Deferred {
	var all []Deferred
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Loading == nil || c.Loading.Done {
			continue
		}
		message := fmt.Sprintf("replicas wait until the weights are in %s: see the condition ModelReady", p.whereWeightsAre())
		for j := range c.Groups {
			g := &c.Groups[j]
			wait := c.waitForWeights(g, observed)
			for k := range g.Replicas {
				if r := &g.Replicas[k]; wait[r.Key] {
					all = append(all, Deferred{Key: r.Key, Reason: DeferredForWeights, Message: message})
				}
			}
			if pg := g.PodGroup; pg != nil && len(wait) == len(g.Replicas) && !observed(pg.Key) {
				all = append(all, Deferred{Key: pg.Key, Reason: DeferredForWeights, Message: message})
			}
		}
	}
	return all
}

// waitForWeights returns the replicas of a group that start once the weights are there.
func (c *ClusterPlan) waitForWeights(g *Group, observed func(key.Key) bool) map[key.Key]bool {
	if c.Loading == nil || c.Loading.Done {
		return nil
	}
	wait := map[key.Key]bool{}
	for k := range g.Replicas {
		if r := &g.Replicas[k]; !observed(r.Key) {
			wait[r.Key] = true
		}
	}
	return wait
}
