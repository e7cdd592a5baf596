package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// listKeys are the fields that tell the elements of a pod's lists apart.
// Server-side apply takes no element without them, and none twice: it would fail as
// a whole, and Crossplane would stop half-way through its own apply.
var listKeys = map[string][]string{
	"containers":       {"name"},
	"initContainers":   {"name"},
	"env":              {"name"},
	"volumes":          {"name"},
	"volumeMounts":     {"mountPath"},
	"volumeDevices":    {"devicePath"},
	"imagePullSecrets": {"name"},
	"ports":            {"containerPort", "protocol"},
	"hostAliases":      {"ip"},
	"resourceClaims":   {"name"},
	"schedulingGates":  {"name"},
	"claims":           {"name"},
}

// listDefaults are keys that need not be written.
var listDefaults = map[string]string{"protocol": "TCP"}

// checkLists finds what server-side apply refuses in the lists of a document:
// elements that are null, and elements of such lists without a key or with
// the same one.
func checkLists(v any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t := v.(type) {
	case kube.Document:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			if l, ok := t[k].([]any); ok {
				errs = append(errs, checkKeys(l, listKeys[k], at.Child(k))...)
			}
			errs = append(errs, checkLists(t[k], at.Child(k))...)
		}
	case []any:
		for i, e := range t {
			if e == nil {
				errs = append(errs, field.Required(at.Index(i), "an element of a list cannot be null"))
				continue
			}
			errs = append(errs, checkLists(e, at.Index(i))...)
		}
	}
	return errs
}

func checkKeys(l []any, keys []string, at *field.Path) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(l))
	for i, e := range l {
		d, ok := e.(kube.Document)
		if !ok {
			continue // Null or of the wrong type, which is said elsewhere.
		}
		id, missing := keyOf(d, keys)
		switch {
		case missing != "":
			errs = append(errs, field.Required(at.Index(i).Child(missing), "tells the elements of this list apart"))
		case seen[id]:
			errs = append(errs, field.Duplicate(at.Index(i), id))
		}
		seen[id] = true
	}
	return errs
}

func keyOf(d kube.Document, keys []string) (id, missing string) {
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		v, ok := d[k]
		if !ok || v == nil || v == "" {
			if listDefaults[k] == "" {
				return "", k
			}
			v = listDefaults[k]
		}
		parts = append(parts, fmt.Sprint(v))
	}
	return strings.Join(parts, "/"), ""
}
