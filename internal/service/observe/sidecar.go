package observe

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// subjects are who is bound by a RoleBinding.
var subjects = remote.NewDesiredPath("subjects")

// SidecarAccounts returns the service accounts that a RoleBinding names, each once, in its order.
func (r *ObservedState) SidecarAccounts(k key.Key) []string {
	var all []string
	seen := map[string]bool{} // There may be thousands.
	for _, s := range subjects.In(r.composed(k)).GetListValue().GetValues() {
		subject := s.GetStructValue().GetFields()
		name := subject["name"].GetStringValue()
		if subject["kind"].GetStringValue() == rbacv1.ServiceAccountKind && name != "" && !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}
