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
		errs = append(errs, validateNoCollision(path, i, roles)...)
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
	more := int32(0)
	if spec.Rollout != nil && spec.Rollout.MaxSurge != nil {
		more = min(max(*spec.Rollout.MaxSurge, 0), MaxSurge)
	}
	if spec.Replicas != nil {
		return strings.Join([]string{base, lastIndex(spec.Replicas, MaxGroups, more), r.Name, lastIndex(r.MostReplicas(), MaxReplicas, 0)}, "-")
	}
	// A unit of prefill and decode may have several replicas of a role.
	return strings.Join([]string{base, r.Name, lastIndex(r.MostReplicas(), MaxReplicas, more*count(r.MostReplicas()))}, "-")
}

// lastIndex returns the index of the last of n replicas or groups, and of some more. 0 counts as
// 1, because the service may be scaled up again.
func lastIndex(n *int32, limit, more int32) string {
	return strconv.Itoa(int(min(max(count(n), 1), limit) + more - 1))
}

// validateNoCollision refuses a role if one of its LeaderWorkerSets has the name of another
// role's StatefulSet. A LeaderWorkerSet on several nodes owns a StatefulSet named {name}-0
// for its workers. For replica 1 of role a this is the name of replica 0 of role a-1.
func validateNoCollision(path *field.Path, i int, roles []Role) field.ErrorList {
	cut := strings.LastIndexByte(roles[i].Name, '-')
	if cut < 0 {
		return nil
	}
	index, err := strconv.ParseInt(roles[i].Name[cut+1:], 10, 32)
	if err != nil || strconv.FormatInt(index, 10) != roles[i].Name[cut+1:] {
		return nil
	}
	j := slices.IndexFunc(roles, func(r Role) bool { return r.Name == roles[i].Name[:cut] })
	if j < 0 || roles[j].Multinode == nil || count(roles[j].Multinode.NodeCount) < 2 || index >= int64(count(roles[j].MostReplicas())) {
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
