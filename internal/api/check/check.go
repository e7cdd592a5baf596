/*
Package check has the checks that the APIs and the inputs of the function share. Each returns
the errors of one value: with its path, the value, and what is valid.
*/
package check

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// OwnPrefix is that of the function's own labels and annotations. It reads some of them back, and selectors and NetworkPolicies go by
// its labels. So nobody else may put them on what is composed.
const OwnPrefix = "fusioninfer.io/"

// OneOf checks that a value is one of the valid ones, or not set. The error names the one that may be meant.
func OneOf[T ~string](path *field.Path, v T, valid ...T) field.ErrorList {
	if v == "" || slices.Contains(valid, v) {
		return nil
	}
	e := field.NotSupported(path, T(text.Value(string(v))), valid)
	known := make([]string, len(valid))
	for i := range valid {
		known[i] = string(valid[i])
	}
	e.Detail += text.DidYouMean("%q", text.Nearest(string(v), known))
	return field.ErrorList{e}
}

// Between checks that a number is at least from and at most to.
func Between[T cmp.Ordered](path *field.Path, v, from, to T) field.ErrorList {
	if v >= from && v <= to {
		return nil
	}
	return field.ErrorList{field.Invalid(path, v, fmt.Sprintf("must be from %v to %v", from, to))}
}

// MaxPort is the highest port number of TCP.
const MaxPort = 65535

// Port checks a port number.
func Port[T ~int32](path *field.Path, v T) field.ErrorList { return Between(path, v, 1, MaxPort) }

// Length checks that a string has at most limit characters, as maxLength of a schema does.
func Length(path *field.Path, v string, limit int) field.ErrorList {
	// A string has at least as many bytes as characters, which are slower to count.
	if len(v) <= limit || utf8.RuneCountInString(v) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(path, text.Value(v), limit)}
}

// Capped returns at most limit elements of a list, and an error if it has more.
func Capped[T any](path *field.Path, list []T, limit int) ([]T, field.ErrorList) {
	if len(list) <= limit {
		return list, nil
	}
	return list[:limit], field.ErrorList{field.TooMany(path, len(list), limit)}
}

// Label checks a DNS label, such as the name of a namespace or a part of another name.
func Label(path *field.Path, v string) field.ErrorList {
	if len(validation.IsDNS1123Label(v)) == 0 {
		return nil
	}
	if len(v) > validation.DNS1123LabelMaxLength {
		return field.ErrorList{field.TooLongCharacters(path, text.Value(v), validation.DNS1123LabelMaxLength)}
	}
	return InvalidOrMissing(path, v, "must consist of lower case letters, digits and '-', and start and end with a letter or digit")
}

// Name checks the name of a Kubernetes object, which is a DNS subdomain.
func Name(path *field.Path, v string) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(v)) == 0 {
		return nil
	}
	if len(v) > validation.DNS1123SubdomainMaxLength {
		return field.ErrorList{field.TooLongCharacters(path, text.Value(v), validation.DNS1123SubdomainMaxLength)}
	}
	return InvalidOrMissing(path, v, "must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit")
}

// Optional checks a value by what Label or Name says, unless it is empty.
func Optional(path *field.Path, v string, valid func(*field.Path, string) field.ErrorList) field.ErrorList {
	if v == "" {
		return nil
	}
	return valid(path, v)
}

// Required is as Optional, but refuses an empty value. message says what it has to be.
func Required(path *field.Path, v, message string, valid func(*field.Path, string) field.ErrorList) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, message)}
	}
	return valid(path, v)
}

// InvalidOrMissing refuses a value that is needed. An empty one may be a field that is not there.
func InvalidOrMissing(path *field.Path, v, message string) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, message)}
	}
	return field.ErrorList{field.Invalid(path, text.Value(v), message)}
}

// Labels checks the keys and values of labels.
func Labels(path *field.Path, labels map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		errs = append(errs, QualifiedKey(path, k)...)
		if msgs := validation.IsValidLabelValue(labels[k]); len(msgs) > 0 {
			errs = append(errs, field.Invalid(path.Key(text.Value(k)), text.Value(labels[k]), msgs[0]))
		}
	}
	return errs
}

// operators are those of a selector's expressions.
var operators = []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}

// Selector checks a selector of labels. That of apimachinery reads labels in random order, and quotes values of any length
// (pkg/apis/meta/v1/validation/validation.go).
func Selector(path *field.Path, s *metav1.LabelSelector) field.ErrorList {
	errs := Labels(path.Child("matchLabels"), s.MatchLabels)
	for i := range s.MatchExpressions {
		errs = append(errs, expression(path.Child("matchExpressions").Index(i), &s.MatchExpressions[i])...)
	}
	return errs
}

func expression(path *field.Path, r *metav1.LabelSelectorRequirement) field.ErrorList {
	var errs field.ErrorList
	if r.Key == "" {
		errs = append(errs, field.Required(path.Child("key"), "must be the key of a label"))
	} else {
		errs = append(errs, qualified(path.Child("key"), r.Key)...)
	}
	values := path.Child("values")
	switch r.Operator {
	case "":
		errs = append(errs, field.Required(path.Child("operator"), "must be In, NotIn, Exists or DoesNotExist"))
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(values, fmt.Sprintf("operator %s needs at least one", r.Operator)))
		}
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Forbidden(values, fmt.Sprintf("must be left out: operator %s has none", r.Operator)))
		}
	default:
		errs = append(errs, OneOf(path.Child("operator"), r.Operator, operators...)...)
	}
	for i, v := range r.Values {
		if msgs := validation.IsValidLabelValue(v); len(msgs) > 0 {
			errs = append(errs, field.Invalid(values.Index(i), text.Value(v), msgs[0]))
		}
	}
	return errs
}

// Annotations checks the keys of annotations.
func Annotations(path *field.Path, annotations map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		// Kubernetes accepts upper case in the prefix of an annotation's key.
		errs = append(errs, QualifiedKey(path, strings.ToLower(k))...)
	}
	return errs
}

// QualifiedKey checks the key of a label or an annotation.
func QualifiedKey(path *field.Path, key string) field.ErrorList {
	return qualified(path.Key(text.Value(key)), key)
}

func qualified(path *field.Path, key string) field.ErrorList {
	if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(path, text.Value(key), msgs[0])}
	}
	return nil
}

// leastSize is the least size of a claim. No weights are smaller, so what is less has the wrong unit.
var leastSize = resource.MustParse("1Mi")

// Size checks the size of a claim for weights, which the error quotes as Kubernetes writes it.
func Size(path *field.Path, q resource.Quantity) field.ErrorList {
	shown := text.Value(q.String())
	switch number := strings.TrimSuffix(shown, "m"); {
	case q.Sign() <= 0:
		return field.ErrorList{field.Invalid(path, shown, "must be more than 0")}
	case q.Cmp(leastSize) >= 0:
		return nil
	case number != shown:
		return field.ErrorList{field.Invalid(path, shown, fmt.Sprintf("must be at least %[1]s, and m stands for thousandths of a byte: did you mean %[2]sM or %[2]sMi?", leastSize.String(), number))}
	case strings.Trim(number, "0123456789") == "":
		return field.ErrorList{field.Invalid(path, shown, fmt.Sprintf("must be at least %[1]s, and a number alone stands for bytes: did you mean %[2]sMi or %[2]sGi?", leastSize.String(), number))}
	default:
		return field.ErrorList{field.Invalid(path, shown, "must be at least "+leastSize.String())}
	}
}

// Resources checks the requests and limits of a container.
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

// resourceName matches the qualified names of resources that a node may have. Devices have a domain (pkg/apis/core/v1/helper/helpers.go of
// Kubernetes). Nodes of older releases also have how many volumes of each kind they can attach. The schema of InferenceClusters
// has the same expression and the same text.
var resourceName = regexp.MustCompile(`/|^(cpu|memory|ephemeral-storage|pods)$|^(hugepages|attachable-volumes)-`)

// ResourceName checks the name of a resource that a node may have, such as nvidia.com/gpu. Names in ResourceQuotas may have another prefix.
func ResourceName(path *field.Path, name string) field.ErrorList {
	if errs := qualified(path, name); len(errs) > 0 {
		return errs
	}
	if !resourceName.MatchString(name) || strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) || strings.HasPrefix(name, "limits.") {
		return field.ErrorList{field.Invalid(path, text.Value(name), "must be a resource that nodes have: cpu, memory, ephemeral-storage, pods, hugepages-{size}, or a device with its domain, such as nvidia.com/gpu")}
	}
	return nil
}

// Amounts checks the names and quantities of the resources of a node.
func Amounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, n := range slices.Sorted(maps.Keys(list)) {
		errs = append(errs, ResourceName(path.Key(text.Value(string(n))), string(n))...)
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

// An Attachment is the part of a gateway to which a reference of a route attaches it. An empty section and port 0 are none.
type Attachment struct {
	Section string
	Port    int32
}

// Collides tells whether a route cannot have two such references to one gateway, by the rules of HTTPRoutes' parentRefs. The standard channel
// of the Gateway API tells them apart by sections. The experimental one does so byPort, too.
func (a Attachment) Collides(b Attachment, byPort bool) bool {
	if !byPort {
		return a.Section == "" || b.Section == "" || a.Section == b.Section
	}
	return (a.Section == "") != (b.Section == "") || (a.Port == 0) != (b.Port == 0) || a == b
}
