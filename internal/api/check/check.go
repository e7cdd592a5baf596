/*
Package check has the checks that the service and the input of the function have
in common. Each returns what is wrong with one value, with its path, the value,
and what would be right.
*/
package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxShown is how much of a value an error repeats, so that a long value does not
// hide what is wrong with it.
const maxShown = 80

// Shown is a string as an error repeats it.
func Shown(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}

// OneOf checks a value that may be unset, and otherwise has to be one of some.
func OneOf[T ~string](path *field.Path, v T, valid ...T) field.ErrorList {
	if v == "" || slices.Contains(valid, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, T(Shown(string(v))), valid)}
}

// Between checks a number.
func Between[T cmp.Ordered](path *field.Path, v, from, to T) field.ErrorList {
	if v >= from && v <= to {
		return nil
	}
	return field.ErrorList{field.Invalid(path, v, fmt.Sprintf("must be from %v to %v", from, to))}
}

// Length checks that a string is not longer than a limit.
func Length(path *field.Path, v string, limit int) field.ErrorList {
	// Counted in characters, as a schema does.
	if len(v) <= limit || utf8.RuneCountInString(v) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(path, Shown(v), limit)}
}

// Capped returns a list's elements up to a limit, and an error if there are more.
func Capped[T any](path *field.Path, list []T, limit int) ([]T, field.ErrorList) {
	if len(list) <= limit {
		return list, nil
	}
	return list[:limit], field.ErrorList{field.TooMany(path, len(list), limit)}
}

// Label checks a DNS label: part of a name, or the name of a namespace.
func Label(path *field.Path, v string) field.ErrorList {
	if len(validation.IsDNS1123Label(v)) == 0 {
		return nil
	}
	if len(v) > validation.DNS1123LabelMaxLength {
		return field.ErrorList{field.TooLongCharacters(path, Shown(v), validation.DNS1123LabelMaxLength)}
	}
	return field.ErrorList{field.Invalid(path, Shown(v), "must be lower case letters, digits and '-', with a letter or digit first and last")}
}

// Name checks the name of a Kubernetes object, a DNS subdomain.
func Name(path *field.Path, v string) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(v)) == 0 {
		return nil
	}
	if len(v) > validation.DNS1123SubdomainMaxLength {
		return field.ErrorList{field.TooLongCharacters(path, Shown(v), validation.DNS1123SubdomainMaxLength)}
	}
	return field.ErrorList{field.Invalid(path, Shown(v), "must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last")}
}

// Labels checks the keys and values of labels.
func Labels(path *field.Path, labels map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		errs = append(errs, qualified(path, k)...)
		if msgs := validation.IsValidLabelValue(labels[k]); len(msgs) > 0 {
			errs = append(errs, field.Invalid(path.Key(Shown(k)), Shown(labels[k]), msgs[0]))
		}
	}
	return errs
}

// Annotations checks the keys of annotations.
func Annotations(path *field.Path, annotations map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		// Kubernetes takes upper case in the prefix of an annotation's key.
		errs = append(errs, qualified(path, strings.ToLower(k))...)
	}
	return errs
}

func qualified(path *field.Path, key string) field.ErrorList {
	if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(path.Key(Shown(key)), Shown(key), msgs[0])}
	}
	return nil
}

// Resources checks what a container requests and is limited to.
func Resources(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := amounts(path.Child("limits"), r.Limits)
	errs = append(errs, amounts(path.Child("requests"), r.Requests)...)
	for _, n := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[n]
		if limit, ok := r.Limits[n]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(n)), request.String(), fmt.Sprintf("must be at most the limit, %s", limit.String())))
		}
	}
	return errs
}

// Amounts checks what something has of each resource.
func Amounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, n := range slices.Sorted(maps.Keys(list)) {
		errs = append(errs, qualified(path, string(n))...)
	}
	return append(errs, amounts(path, list)...)
}

func amounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, n := range slices.Sorted(maps.Keys(list)) {
		if q := list[n]; q.Cmp(resource.Quantity{}) < 0 {
			errs = append(errs, field.Invalid(path.Key(string(n)), q.String(), "must not be negative"))
		}
	}
	return errs
}
