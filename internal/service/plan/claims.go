package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// namedClaims are the claims that the newest templates mount. One of them may be a former claim of the service itself, by spec.model or by a
// volume of a template. It stays, because these pods could not start again without it.
func (p *Plan) namedClaims() map[string]bool {
	all := map[string]bool{}
	for _, r := range p.Roles {
		for _, t := range r.templates() {
			for i := range t.Spec.Volumes {
				if v := t.Spec.Volumes[i].PersistentVolumeClaim; v != nil {
					all[v.ClaimName] = true
				}
			}
		}
	}
	return all
}

// warnOfOwnClaim warns of a claim that stays only because the spec names it.
func (p *Plan) warnOfOwnClaim(named map[string]bool) {
	newest := ""
	if p.Weights != nil && p.Weights.Own {
		newest = p.Weights.ClaimName
	}
	for i := range p.Clusters {
		kept := p.Clusters[i].Caches
		if a := p.Clusters[i].AdapterClaim; a != nil && p.Adapters == nil {
			kept = append(slices.Clone(kept), *a)
		}
		for _, c := range kept {
			if !named[c.ClaimName] || c.ClaimName == newest {
				continue
			}
			at := field.NewPath("spec", "roles")
			if m := p.spec.Model; m != nil && m.Cache != nil && m.Cache.ClaimName == c.ClaimName {
				at = field.NewPath("spec", "model", "cache", "claimName")
			} else if m != nil && m.Source().Claim == c.ClaimName {
				at = field.NewPath("spec", "model", "uri")
			}
			p.warn(at, "names claim %s, which this service has made: it stays while it is named, and is deleted with the service. Use a claim of your own, or a ModelCache", c.ClaimName)
			return
		}
	}
}

// ClaimKey is the key of the claim with the newest weights in a cluster. The service may have none.
func (p *Plan) ClaimKey(c *ClusterPlan) key.Key { return c.claimKey(p.Weights) }

// NamedClaimKey is the key of the Object that observes the claim which spec.model.cache.claimName names.
func (p *Plan) NamedClaimKey(c *ClusterPlan) key.Key { return c.Key(key.NamedClaim, p.Weights.Hash) }

// ReadsClaim tells whether a claim that spec.model.cache.claimName names is read in a cluster.
func (p *Plan) ReadsClaim(c *ClusterPlan) bool {
	return p.Weights != nil && !p.Weights.Own && c.Loading != nil && c.Loading.Wanted
}

func (c *ClusterPlan) claimKey(w *Weights) key.Key { return c.Key(key.PersistentVolumeClaim, w.Hash) }

// cache keeps a claim as it was made. A name that cannot be read is the one that the service gives.
func (v *ClaimView) cache(s naming.Identity) Cache {
	name := v.Name
	if len(validation.IsDNS1123Label(name)) > 0 {
		name = claimName(s, v.Key)
	}
	return Cache{Key: v.Key, ClaimName: name, Weights: v.Key.Name, UID: v.UID, Size: v.Size, StorageClassName: v.StorageClassName, AccessMode: v.AccessMode}
}

// hasFormer tells whether a replica is there that does not have the newest template. One that has it, and
// does not serve yet, gets no requests until it does.
func (c *ClusterPlan) hasFormer(running *RunningView) bool {
	return c.anyExisting(running, func(r *Replica, s rollout.State) bool { return !s.Updated(running.Revision[r.Role.Name]) })
}

// usesFormer tells whether a replica may have pods with other than the newest template.
func (c *ClusterPlan) usesFormer(running *RunningView) bool {
	return c.anyExisting(running, func(r *Replica, s rollout.State) bool {
		return !s.Serving || !s.Updated(running.Revision[r.Role.Name])
	})
}

// anyExisting tells whether something holds for a replica that exists here.
func (c *ClusterPlan) anyExisting(running *RunningView, holds func(*Replica, rollout.State) bool) bool {
	for r := range c.Replicas() {
		if s := running.Replica(r.Key); s.Exists && holds(r, s) {
			return true
		}
	}
	return false
}

// mayUse returns whether pods may use a claim of former weights. None uses one whose weights never were complete, because
// replicas get a template once its weights are there. That claim goes at once: it may fill the quota of the namespace.
// The replicas are looked at once for all claims.
func (c *ClusterPlan) mayUse(s naming.Identity, view *WeightsView, running *RunningView) func(*ClaimView) bool {
	usesFormer, runsFormerAsGiven := c.usesFormer(running), c.runsFormerAsGiven(running)
	return func(claim *ClaimView) bool {
		of := claim.cache(s)
		switch {
		case !usesFormer:
			return false
		case view.complete(of):
			return true
		case claim.Deleting:
			return false // It would be recreated, and be empty.
		}
		return !view.Unfinished(of.Weights, of.ClaimName) || runsFormerAsGiven
	}
}

// runsFormerAsGiven tells whether a replica may have pods of a former template that it was given last. If weights that were complete
// are lost, the status says that they load, while pods still have the claim.
func (c *ClusterPlan) runsFormerAsGiven(running *RunningView) bool {
	return c.anyExisting(running, func(r *Replica, s rollout.State) bool {
		return s.Revision != running.Revision[r.Role.Name] && (!s.Held || s.Runs)
	})
}
