package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// listKeys are the key fields of the associative lists of a pod. Server-side apply fails for
// an element without its keys and for two elements with the same keys. Crossplane would then
// stop halfway through applying the composed resources.
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

// listDefaults are the keys that the API server defaults.
var listDefaults = map[string]string{"protocol": "TCP"}

// checkLists refuses what server-side apply refuses in the lists of a document: null elements,
// and in associative lists missing or duplicate keys.
func checkLists(v *structpb.Value, at *field.Path) field.ErrorList {
	c := listChecker{root: at, steps: make([]listStep, 0, 16)}
	if c.value(v); len(c.errs) == 0 {
		return nil
	}
	// Errors are limited in number. Check again in sorted order, so that they are always the same.
	c = listChecker{root: at, sorted: true}
	c.value(v)
	slices.SortStableFunc(c.errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return c.errs
}

// A listChecker builds field paths only for errors, because they are rare and paths are slow.
type listChecker struct {
	root  *field.Path
	steps []listStep
	errs  field.ErrorList
	// sorted visits the fields of objects in the order of their names.
	sorted bool
}

// A listStep is one element of a path: a list index if index is not negative, else a field.
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
			p = p.Child(text.Value(s.name))
		}
	}
	return p
}

// full tells that kube.MaxProblems are found. A hostile document could otherwise make the
// errors far larger than itself.
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
			c.errs = append(c.errs, field.Required(c.path(), "must not be null: it is an element of a list"))
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
	found := make(map[string]bool, len(l))
	for i, e := range l {
		if c.full() {
			return
		}
		s := e.GetStructValue()
		if s == nil {
			continue // Null elements and wrong types have their own errors.
		}
		id, missing := keyOf(s, keys)
		switch {
		case missing != "":
			c.errs = append(c.errs, field.Required(c.path().Index(i).Child(missing), "must be set: it identifies the elements of this list"))
		case found[id]:
			c.errs = append(c.errs, field.Duplicate(c.path().Index(i), text.Value(id)))
		}
		found[id] = true
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
