/*
Package servingprofile puts what a service says over the serving profile that it names.

A serving profile is a part of the Input: for each type of role, what such a role is unless the
service says otherwise. What it has for one type is a fragment. The result is a spec as if the service
had written all of it. Little of what comes later knows that there are profiles: status.profile, the
messages of errors, and two decisions of package plan. It warns of a context that is longer than the
profile allows, and checks no template of a role whose type is unknown, because that has no fragment.

Scalars of the service win, and its objects are merged field by field. Pod templates are merged by the
rules of Kubernetes' strategic merge patch, which are read from the types of Kubernetes: containers,
variables and volumes by name, mounts by path. Four things differ:

  - Args are merged flag by flag, in every container. A service that sets command brings a whole command
    line: the profile's args, which are for its own command, do not apply to it.
  - Of fields that exclude each other, such as value and valueFrom, those of the service replace the
    profile's. This holds for the sources of volumes as well.
  - New elements of the service's lists come after the profile's, not before them.
  - Directives such as $patch are refused. A service says what it wants, and null for what it does not.

The rules are applied here rather than by Kubernetes' own function. Its cost grows with the square of a
list's length, and it refuses fields that are younger than its types. A test compares the two.
*/
package servingprofile

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An Applied is a profile as it was applied to a service.
type Applied struct {
	// Name of the profile.
	Name string
	// Hash of what it gives the roles of this service.
	Hash string

	// spec is the merged one, service that of the service alone, and fragments what the profile gave it, by the
	// type of role.
	spec, service *structpb.Struct
	fragments     map[string]*structpb.Struct
}

const (
	fieldProfileName    = "profileName"
	fieldRoles          = "roles"
	fieldComponentType  = "componentType"
	fieldTemplate       = "template"
	fieldLeaderTemplate = "leaderTemplate"
)

// maxNames is how many profiles an error lists.
const maxNames = 32

// Apply returns the spec of a service with the profile that it names under it. A spec that names none is
// returned as it is, with a nil Applied. So is one that names an unknown profile, with an error. The
// spec and the profiles have to be within the bounds of kube.CheckBounds. The result need not be.
func Apply(spec *structpb.Struct, profiles []inputv1alpha1.Profile) (*structpb.Struct, *Applied, field.ErrorList) {
	name := spec.GetFields()[fieldProfileName].GetStringValue()
	if name == "" {
		return spec, nil, nil
	}
	i := slices.IndexFunc(profiles, func(p inputv1alpha1.Profile) bool { return p.Name == name })
	if i < 0 {
		return spec, nil, field.ErrorList{unknownProfile(name, profiles)}
	}
	fragments, err := encode(profiles[i].Roles)
	if err != nil {
		return spec, nil, field.ErrorList{field.InternalError(field.NewPath("spec", fieldProfileName), err)}
	}
	roles := spec.GetFields()[fieldRoles].GetListValue().GetValues()
	merged := make([]*structpb.Value, len(roles))
	used := map[string]any{}
	m := merger{profile: name}
	path := field.NewPath("spec", fieldRoles)
	for i, r := range roles {
		merged[i] = r
		of := r.GetStructValue().GetFields()[fieldComponentType].GetStringValue()
		if f, ok := fragments[of]; ok && r.GetStructValue() != nil {
			merged[i] = objectValue(m.role(f.GetFields(), r.GetStructValue().GetFields(), path.Index(i)))
			used[of] = kube.AsMap(f)
		}
	}
	if len(m.errs) > 0 {
		return spec, nil, m.errs[:min(len(m.errs), kube.MaxProblems)]
	}
	a := &Applied{Name: name, spec: spec, service: spec, fragments: map[string]*structpb.Struct{}}
	if a.Hash, err = hash(used); err != nil {
		return spec, nil, field.ErrorList{field.InternalError(field.NewPath("spec", fieldProfileName), err)}
	}
	for of := range used {
		a.fragments[of] = fragments[of]
	}
	if len(used) > 0 {
		a.spec = kube.With(spec, structpb.NewListValue(&structpb.ListValue{Values: merged}), fieldRoles)
	}
	return a.spec, a, nil
}

// NoProfiles is what an error says of a profile where the Input has none.
const NoProfiles = "must be left out until the platform team sets profiles in the Input of the Composition"

func unknownProfile(name string, profiles []inputv1alpha1.Profile) *field.Error {
	path := field.NewPath("spec", fieldProfileName)
	if len(profiles) == 0 {
		return field.Invalid(path, text.Value(name), NoProfiles)
	}
	names := make([]string, len(profiles))
	for i := range profiles {
		names[i] = text.Value(profiles[i].Name)
	}
	slices.Sort(names)
	return field.Invalid(path, text.Value(name), "must be one of the profiles that the platform team has set in the Input: "+text.Names(names, maxNames)+text.DidYouMean("%q", text.Nearest(name, names)))
}

// WithTemplate lists the profiles that have a template for roles of a type, for an error. It is empty if there are
// none.
func WithTemplate(profiles []inputv1alpha1.Profile, componentType string) string {
	var names []string
	for i := range profiles {
		if slices.ContainsFunc(profiles[i].Roles, func(r inputv1alpha1.ProfileRole) bool {
			return r.ComponentType == componentType && r.Template != nil
		}) {
			names = append(names, text.Value(profiles[i].Name))
		}
	}
	slices.Sort(names)
	return text.Names(names, maxNames)
}

// encode returns the fragments of a profile by the type of role.
func encode(roles []inputv1alpha1.ProfileRole) (map[string]*structpb.Struct, error) {
	all := make(map[string]*structpb.Struct, len(roles))
	for i := range roles {
		s, err := kube.Encode(&roles[i])
		if err != nil {
			return nil, err
		}
		delete(s.GetFields(), fieldComponentType)
		all[roles[i].ComponentType] = s
	}
	return all, nil
}

// hash returns a hash of fragments that is the same for the same content.
func hash(used map[string]any) (string, error) {
	b, err := json.Marshal(used)
	return naming.Hash(string(b)), err
}

// role merges a role with its fragment. A leaderTemplate that one of them leaves out is the template
// there, so that what the service says of its pods holds for leaders too.
func (m *merger) role(under, over fields, at *field.Path) fields {
	for _, name := range []string{fieldTemplate, fieldLeaderTemplate} {
		m.errs = append(m.errs, kube.CheckDirectives(over[name].GetStructValue(), at.Child(name))...)
	}
	merged := m.object(without(under, fieldTemplate, fieldLeaderTemplate), without(over, fieldTemplate, fieldLeaderTemplate), unknown, at)
	m.template(merged, fieldTemplate, under[fieldTemplate], over[fieldTemplate], at)
	_, said := over[fieldLeaderTemplate]
	if removed := said && !isSet(over[fieldLeaderTemplate]); removed || !said && !isSet(under[fieldLeaderTemplate]) {
		return merged
	}
	leaderUnder, leaderOver := under[fieldLeaderTemplate], over[fieldLeaderTemplate]
	if !isSet(leaderUnder) {
		leaderUnder = under[fieldTemplate]
	}
	if !isSet(leaderOver) {
		leaderOver = over[fieldTemplate]
	}
	m.template(merged, fieldLeaderTemplate, leaderUnder, leaderOver, at)
	return merged
}

// template merges two pod templates, each of which may be missing, into a field of a role.
func (m *merger) template(into fields, name string, under, over *structpb.Value, at *field.Path) {
	switch {
	case under.GetStructValue() != nil && over.GetStructValue() != nil:
		into[name] = objectValue(m.object(under.GetStructValue().GetFields(), over.GetStructValue().GetFields(), podTemplate, at.Child(name)))
	case isSet(over):
		into[name] = over
	case isSet(under):
		into[name] = under
	}
}

func without(f fields, names ...string) fields {
	f = maps.Clone(f)
	for _, n := range names {
		delete(f, n)
	}
	return f
}
