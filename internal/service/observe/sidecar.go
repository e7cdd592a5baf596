package observe

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// Who is bound by a RoleBinding, and its namespace.
var (
	subjects         = incoming.NewPath("subjects")
	manifestSubjects = incoming.NewPath("spec", "forProvider", "manifest", "subjects")
)

// SidecarAccounts returns the service accounts that a RoleBinding names, each once, in its order. In an
// Object it is the manifest that counts, as it was desired last.
func (r *ObservedState) SidecarAccounts(k key.Key) []string {
	o := r.req.Observed(k)
	list := subjects
	if remote.IsObject(o) {
		list = manifestSubjects
	}
	var all []string
	for _, s := range list.In(o).GetListValue().GetValues() {
		subject := s.GetStructValue().GetFields()
		name := subject["name"].GetStringValue()
		if subject["kind"].GetStringValue() == rbacv1.ServiceAccountKind && name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
