package plan

import (
	"crypto/sha1" //nolint:gosec // Kueue makes names with it.
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// WorkloadKey is the key of the Object that observes Kueue's Workload for a replica.
func (c *ClusterPlan) WorkloadKey(r *Replica) key.Key { return c.Key(key.Workload, string(r.ID)) }

// PriorityClass returns the WorkloadPriorityClass of Kueue that the role's template names. Kueue
// reads it from the LeaderWorkerSet. The policy of the tenant limits it.
func (r *Role) PriorityClass() string { return r.Leader.Labels[naming.LabelKueuePriorityClass] }

// addWorkloads names Kueue's Workloads for the replicas of a group that exist, and keeps what Kueue does not let these change.
func (c *ClusterPlan) addWorkloads(g *Group, existing *scheduling.ClusterState) {
	if c.LocalQueue == "" || existing == nil {
		return
	}
	for i := range g.Replicas {
		r := &g.Replicas[i]
		if uid := existing.UIDs[r.ID]; uid != "" {
			r.Workload = workloadOf(r.Name, uid)
		}
		r.keepPriorityClass(existing)
	}
}

// keepPriorityClass keeps a replica that exists from gaining or losing a priority class. Kueue lets none lose it, and none gain one
// once it was ready. It would refuse all that is applied then, also a later edit (kueue v0.15.0: ValidateUpdateForWorkloadPriorityClassName
// in pkg/controller/jobframework/validation.go). One class may take the place of another.
func (r *Replica) keepPriorityClass(existing *scheduling.ClusterState) {
	if class, exists := existing.PriorityClasses[r.ID]; exists && (class == "") != (r.Role.PriorityClass() == "") {
		r.KeptPriorityClass = &class
	}
}

// warnOfPriorityClass warns of roles whose replicas keep another priority class than the newest template names.
func (p *Plan) warnOfPriorityClass() {
	kept := map[*Role]string{}
	for _, r := range p.Replicas() {
		if class := r.KeptPriorityClass; class != nil {
			kept[r.Role] = *class
		}
	}
	for _, r := range p.Roles {
		class, keeps := kept[r]
		if !keeps {
			continue
		}
		what := "replicas that exist have no priority class of Kueue, which lets none gain one"
		if class != "" {
			what = fmt.Sprintf("replicas that exist keep the priority class %s of Kueue, which lets none lose it", class)
		}
		stop := "set replicas to 0"
		if r.scaling != nil {
			stop += ", in place of scaling"
		}
		templates := r.templates()
		at := templates[len(templates)-1].path.Child("metadata", "labels").Key(naming.LabelKueuePriorityClass)
		p.warn(at, "%s: to change that, %s, and start them again", what, stop)
	}
}

// workloadOf returns the name of Kueue's Workload for the only group of a LeaderWorkerSet. No
// label tells which Workload that is, so the name is made as Kueue makes it
// (kueue v0.15.0: GetWorkloadName in pkg/controller/jobs/leaderworkerset, and
// generateWorkloadName in pkg/controller/jobframework/workload_names.go).
func workloadOf(name, uid string) string {
	const kind, hashLength = "LeaderWorkerSet", 5
	const maxPrefix = 252 - hashLength
	owner := name + "-0"
	prefix := "leaderworkerset-" + owner
	sum := sha1.Sum([]byte(kind + "\n" + lws.GroupVersion.Group + "\n" + owner + "\n" + uid)) //nolint:gosec // As above.
	return prefix[:min(len(prefix), maxPrefix)] + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// refuseGangInKueue refuses a gang for a service that runs in a cluster whose admission is
// Kueue's. A service that does not run there yet does not get there.
func (p *Plan) refuseGangInKueue() field.ErrorList {
	if !p.gang.exists() {
		return nil
	}
	for i := range p.Clusters {
		if c := &p.Clusters[i]; c.LocalQueue != "" && len(c.Groups) > 0 {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "schedulingStrategy", "gang", "mode"), p.gang.mode, fmt.Sprintf(
				"must be %s while the service runs in cluster %s: Kueue admits each replica by itself there", v1alpha1.GangNone, c.Target.Cluster))}
		}
	}
	return nil
}
