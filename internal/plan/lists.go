package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
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
func checkLists(v *structpb.Value, at *field.Path) field.ErrorList {
	c := listChecker{root: at, steps: make([]listStep, 0, 16)}
	if c.value(v); len(c.errs) == 0 {
		return nil
	}
	// Once more, so that the same problems are the first each time.
	c = listChecker{root: at, sorted: true}
	c.value(v)
	slices.SortStableFunc(c.errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return c.errs
}

// A listChecker makes paths for errors only, of which there are hardly ever any.
type listChecker struct {
	root  *field.Path
	steps []listStep
	errs  field.ErrorList
	// sorted takes the fields of objects in the order of their names.
	sorted bool
}

// A listStep is a field, or the element of a list, where index is not negative.
type listStep struct {
	name  string
	index int
}

func (c *listChecker) path() *field.Path {
	p := c.root
	for _, s := range c.steps {
		if s.index >= 0 {
			p = p.Index(s.index)
		} else {
			p = p.Child(check.Shown(s.name))
		}
	}
	return p
}

// full tells that there are enough problems. What is collected without a bound costs more
// than the document.
func (c *listChecker) full() bool { return len(c.errs) >= kube.MaxProblems }

func (c *listChecker) value(v *structpb.Value) {
	if c.full() {
		return
	}
	switch t := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		names := maps.Keys(t.StructValue.GetFields())
		if c.sorted {
			names = slices.Values(slices.Sorted(names))
		}
		for k := range names {
			c.below(listStep{name: k, index: -1}, t.StructValue.GetFields()[k])
		}
	case *structpb.Value_ListValue:
		for i, e := range t.ListValue.GetValues() {
			c.below(listStep{index: i}, e)
		}
	}
}

func (c *listChecker) below(s listStep, v *structpb.Value) {
	c.steps = append(c.steps, s)
	switch t := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		if s.index >= 0 && !c.full() {
			c.errs = append(c.errs, field.Required(c.path(), "an element of a list cannot be null"))
		}
	case *structpb.Value_ListValue:
		c.keys(t.ListValue.GetValues(), listKeys[s.name])
		c.value(v)
	default:
		c.value(v)
	}
	c.steps = c.steps[:len(c.steps)-1]
}

func (c *listChecker) keys(l []*structpb.Value, keys []string) {
	if len(keys) == 0 {
		return
	}
	seen := make(map[string]bool, len(l))
	for i, e := range l {
		if c.full() {
			return
		}
		s := e.GetStructValue()
		if s == nil {
			continue // Null or of the wrong type, which is said elsewhere.
		}
		id, missing := keyOf(s, keys)
		switch {
		case missing != "":
			c.errs = append(c.errs, field.Required(c.path().Index(i).Child(missing), "tells the elements of this list apart"))
		case seen[id]:
			c.errs = append(c.errs, field.Duplicate(c.path().Index(i), check.Shown(id)))
		}
		seen[id] = true
	}
}

func keyOf(s *structpb.Struct, keys []string) (id, missing string) {
	for i, k := range keys {
		part := listDefaults[k]
		switch t := s.GetFields()[k].GetKind().(type) {
		case *structpb.Value_StringValue:
			part = cmp.Or(t.StringValue, part)
		case *structpb.Value_NumberValue:
			part = strconv.FormatFloat(t.NumberValue, 'f', -1, 64)
		}
		if part == "" {
			return "", k
		}
		if i > 0 {
			part = id + "/" + part
		}
		id = part
	}
	return id, ""
}
