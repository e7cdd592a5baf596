package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// foreignSuffix stands for what is added to a service's name in a namespace that is not its
// tenant's: '-' and a short hash of the tenant's namespace.
const foreignSuffix = "-xxxxxxxxxx"

// validateNames checks that the names of all LeaderWorkerSets are short enough and differ.
// It builds only the longest name of each role.
func validateNames(path *field.Path, spec *InferenceServiceSpec, name, tenant string) field.ErrorList {
	base, where := longestBase(spec, name, tenant)
	roles := spec.Roles[:min(len(spec.Roles), MaxRoles)]
	var errs field.ErrorList
	for i, r := range roles {
		if r.ComponentType == ComponentTypeRouter || r.Name == "" {
			continue
		}
		n := longestName(base, spec, r)
		if len(r.Name) > MaxRoleName {
			// The limit is the one that holds with this service's name, so that it is said once.
			limit := min(MaxRoleName, max(MaxWorkloadName-(len(n)-len(r.Name)), 1))
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), text.Value(r.Name), fmt.Sprintf("has %d characters, and may have at most %d beside the name of the service%s", len(r.Name), limit, where)))
			continue
		}
		if len(n) > MaxWorkloadName {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), r.Name, fmt.Sprintf("the name of the LeaderWorkerSet, %s%s, would have %d characters, and may have at most %d: shorten the name of the service or of the role by %d", n, where, len(n), MaxWorkloadName, len(n)-MaxWorkloadName)))
		}
		errs = append(errs, validateNoCollision(path, i, spec, roles)...)
	}
	return errs
}

// longestBase returns the longest name that the service has in any cluster, and an
// explanation of it for a message.
func longestBase(spec *InferenceServiceSpec, name, tenant string) (base, where string) {
	if spec.Placement == nil {
		return name, ""
	}
	for _, c := range spec.Placement.Clusters {
		if c.Namespace != "" && c.Namespace != tenant {
			return name + foreignSuffix, " (in the namespace " + c.Namespace + ", with a hash in place of " + foreignSuffix[1:] + ")"
		}
	}
	return name, ""
}

// longestName is the name of the last replica of a role, with those that a rollout adds.
func longestName(base string, spec *InferenceServiceSpec, r Role) string {
	last := strconv.Itoa(lastReplica(spec, r))
	if spec.Replicas != nil {
		return strings.Join([]string{base, strconv.Itoa(lastIndex(spec.Replicas, MaxGroups, surge(spec))), r.Name, last}, "-")
	}
	return strings.Join([]string{base, r.Name, last}, "-")
}

// lastReplica returns the index of the last replica of a role in its group, with those that a rollout adds.
func lastReplica(spec *InferenceServiceSpec, r Role) int {
	more := int32(0)
	switch {
	case spec.Replicas != nil: // A rollout adds groups.
	case r.ComponentType == ComponentTypeWorker:
		more = surge(spec)
	default:
		more = surge(spec) * count(r.MostReplicas()) // A unit of prefill and decode may have several replicas of a role.
	}
	return lastIndex(r.MostReplicas(), MaxReplicas, more)
}

// surge is how many units a rollout may add.
func surge(spec *InferenceServiceSpec) int32 {
	if spec.Rollout == nil || spec.Rollout.MaxSurge == nil {
		return 0
	}
	return min(max(*spec.Rollout.MaxSurge, 0), MaxSurge)
}

// lastIndex returns the index of the last of n replicas or groups, and of some more. 0 counts as
// 1, because the service may be scaled up again.
func lastIndex(n *int32, limit, more int32) int {
	return int(min(max(count(n), 1), limit) + more - 1)
}

// validateNoCollision refuses a role if one of its LeaderWorkerSets has the name of another
// role's StatefulSet. A LeaderWorkerSet on several nodes owns a StatefulSet named {name}-0
// for its workers. For replica 1 of role a this is the name of replica 0 of role a-1. Replicas that a rollout adds have names, too.
func validateNoCollision(path *field.Path, i int, spec *InferenceServiceSpec, roles []Role) field.ErrorList {
	cut := strings.LastIndexByte(roles[i].Name, '-')
	if cut < 0 {
		return nil
	}
	index, err := strconv.ParseInt(roles[i].Name[cut+1:], 10, 32)
	if err != nil || strconv.FormatInt(index, 10) != roles[i].Name[cut+1:] {
		return nil
	}
	j := slices.IndexFunc(roles, func(r Role) bool { return r.Name == roles[i].Name[:cut] })
	if j < 0 || roles[j].Multinode == nil || count(roles[j].Multinode.NodeCount) < 2 || count(roles[j].MostReplicas()) == 0 || index > int64(lastReplica(spec, roles[j])) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Index(i).Child("name"), roles[i].Name, fmt.Sprintf("must be another name: the workers of replica %d of %s would have the same name as replica 0 of this role", index, path.Index(j)))}
}

// count returns the number of replicas or of nodes, which is 1 where it is not set.
func count(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
