package servingprofile

import (
	"maps"
	"reflect"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// A merger merges documents. What is over wins. Nothing is changed: the result shares the values of
// both, which tells later where each comes from.
type merger struct {
	// profile is the name of the profile, for errors.
	profile string
	errs    field.ErrorList
}

type fields = map[string]*structpb.Value

// A shape is the type of an object, by which Kubernetes says how its lists are merged. The zero shape
// is one that is not known. Its lists are replaced.
type shape struct{ of reflect.Type }

var (
	unknown     = shape{}
	podTemplate = shape{reflect.TypeFor[corev1.PodTemplateSpec]()}
	container   = reflect.TypeFor[corev1.Container]()
)

// field returns the shape of an object's field.
func (s shape) field(name string) (shape, strategicpatch.PatchMeta) {
	if s.of == nil {
		return unknown, strategicpatch.PatchMeta{}
	}
	return found(strategicpatch.PatchMetaFromStruct{T: s.of}.LookupPatchMetadataForStruct(name))
}

// elements returns the shape of the elements of an object's list, and how the list is merged.
func (s shape) elements(name string) (shape, strategicpatch.PatchMeta) {
	if s.of == nil {
		return unknown, strategicpatch.PatchMeta{}
	}
	return found(strategicpatch.PatchMetaFromStruct{T: s.of}.LookupPatchMetadataForSlice(name))
}

// found returns the shape that a look-up found. A field that is younger than the types here has none.
func found(l strategicpatch.LookupPatchMeta, m strategicpatch.PatchMeta, err error) (shape, strategicpatch.PatchMeta) {
	of, ok := l.(strategicpatch.PatchMetaFromStruct)
	if err != nil || !ok {
		return unknown, strategicpatch.PatchMeta{}
	}
	t := of.T
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		t = nil
	}
	return shape{t}, m
}

// choices are fields of which an object has at most one. Setting one of them leaves out the others,
// which no merge patch of Kubernetes does by itself.
var choices = [][]string{
	{"value", "valueFrom"},
	{"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"},
	{"exec", "httpGet", "tcpSocket", "grpc", "sleep"},
}

// object merges two objects, as Kubernetes merges a strategic merge patch. A null leaves a field out.
func (m *merger) object(under, over fields, of shape, at *field.Path) fields {
	merged := maps.Clone(under)
	if merged == nil {
		merged = fields{}
	}
	for _, names := range choices {
		if of != unknown && slices.ContainsFunc(names, func(n string) bool { return isSet(over[n]) }) {
			for _, n := range names {
				delete(merged, n)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		switch u, o := under[name], over[name]; {
		case !isSet(o):
			delete(merged, name)
		case !isSet(u):
			merged[name] = o
		default:
			merged[name] = m.value(name, u, o, of, at.Child(name))
		}
	}
	if of.of == container {
		m.commandLine(merged, under, over, at)
	}
	return merged
}

// value merges two values of an object's field.
func (m *merger) value(name string, under, over *structpb.Value, parent shape, at *field.Path) *structpb.Value {
	switch o := over.GetKind().(type) {
	case *structpb.Value_StructValue:
		if u := under.GetStructValue(); u != nil {
			of, _ := parent.field(name)
			return objectValue(m.object(u.GetFields(), o.StructValue.GetFields(), of, at))
		}
	case *structpb.Value_ListValue:
		if u := under.GetListValue(); u != nil {
			of, how := parent.elements(name)
			if how.GetPatchMergeKey() != "" && slices.Contains(how.GetPatchStrategies(), "merge") {
				return m.list(u.GetValues(), o.ListValue.GetValues(), how, of, at, over)
			}
		}
	}
	return over
}

// list merges two lists by the key of their elements. Each list's elements keep their order, and new
// elements of the one that is over come as late as that allows: a variable may refer to those before
// it. A list with an element that has no key replaces the other.
func (m *merger) list(under, over []*structpb.Value, how strategicpatch.PatchMeta, of shape, at *field.Path, otherwise *structpb.Value) *structpb.Value {
	position := make(map[any]int, len(under))
	for i, e := range under {
		k := keyOf(e, how.GetPatchMergeKey())
		if k == nil {
			return otherwise
		}
		if _, again := position[k]; !again {
			position[k] = i
		}
	}
	replaced := make(map[int]bool, len(over))
	into := make([]int, len(over)) // The element that each one is merged with, or -1.
	for i, e := range over {
		k := keyOf(e, how.GetPatchMergeKey())
		if k == nil {
			return otherwise
		}
		p, both := position[k]
		if !both || replaced[p] {
			into[i] = -1
			continue
		}
		into[i], replaced[p] = p, true
	}
	merged := make([]*structpb.Value, 0, len(under)+len(over))
	next, pending := 0, 0
	upTo := func(n int) {
		for ; next < n; next++ {
			if !replaced[next] {
				merged = append(merged, under[next])
			}
		}
	}
	for i, e := range over {
		if into[i] < 0 {
			continue
		}
		upTo(into[i])
		merged = append(merged, over[pending:i]...)
		merged = append(merged, m.element(under[into[i]], e, how, of, at.Index(i)))
		pending = i + 1
	}
	upTo(len(under))
	return structpb.NewListValue(&structpb.ListValue{Values: append(merged, over[pending:]...)})
}

// element merges two elements with the same key. Of a volume, a source of the one that is over
// replaces the other's, which Kubernetes calls retaining its keys.
func (m *merger) element(under, over *structpb.Value, how strategicpatch.PatchMeta, of shape, at *field.Path) *structpb.Value {
	u, o := under.GetStructValue().GetFields(), over.GetStructValue().GetFields()
	if slices.Contains(how.GetPatchStrategies(), "retainKeys") {
		u = maps.Clone(u)
		maps.DeleteFunc(u, func(name string, _ *structpb.Value) bool { return !isSet(o[name]) })
		if len(o) == 1 {
			u = under.GetStructValue().GetFields() // Only the key: nothing is said of the source.
		}
	}
	return objectValue(m.object(u, o, of, at))
}

// commandLine decides command and args of a merged container. A command that is over brings its own
// args. Otherwise args are put over the command line flag by flag.
func (m *merger) commandLine(merged, under, over fields, at *field.Path) {
	if isSet(over["command"]) {
		delete(merged, "args")
		if isSet(over["args"]) {
			merged["args"] = over["args"]
		}
		return
	}
	args, given := words(over["args"])
	command, ok := words(merged["command"])
	own, known := words(under["args"])
	if !given || !ok || !known || !isSet(over["args"]) || !isSet(under["args"]) && !isSet(merged["command"]) {
		return
	}
	commandWords, argWords, err := launch.Override(launch.Command{Command: command, Args: own}, args)
	if err != nil {
		m.errs = append(m.errs, field.Forbidden(at.Child("args"), "cannot be merged with the command line of profile "+m.profile+": "+err.Error()+"; set command, which replaces the profile's"))
		return
	}
	line := slices.Concat(merged["command"].GetListValue().GetValues(), under["args"].GetListValue().GetValues())
	if len(commandWords) < len(command) {
		merged["command"] = pick(commandWords, line, nil)
	}
	merged["args"] = pick(argWords, line, over["args"].GetListValue().GetValues())
}

// pick returns the values of words, each of which is one of a list.
func pick(of []launch.Word, under, over []*structpb.Value) *structpb.Value {
	values := make([]*structpb.Value, len(of))
	for i, w := range of {
		if w.Over {
			values[i] = over[w.Index]
		} else {
			values[i] = under[w.Index]
		}
	}
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}

// words returns a list of strings. It is not ok if the value is anything else. No value is an empty
// list.
func words(v *structpb.Value) (list []string, ok bool) {
	if !isSet(v) {
		return nil, true
	}
	if v.GetListValue() == nil {
		return nil, false
	}
	for _, e := range v.GetListValue().GetValues() {
		s, isString := e.GetKind().(*structpb.Value_StringValue)
		if !isString {
			return nil, false
		}
		list = append(list, s.StringValue)
	}
	return list, true
}

// keyOf returns the key of a list's element, or nil if it has none.
func keyOf(v *structpb.Value, key string) any {
	switch k := v.GetStructValue().GetFields()[key].GetKind().(type) {
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_NumberValue:
		return k.NumberValue
	}
	return nil
}

// isSet tells whether there is a value other than null.
func isSet(v *structpb.Value) bool {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	return !null && v.GetKind() != nil
}

func objectValue(f fields) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: f})
}
