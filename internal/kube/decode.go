package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Decode decodes a Struct into the struct that into points to. It skips unknown fields and
// nulls. A value of the wrong type is an error with its path below root, which may be nil;
// the other values are decoded. Of more than MaxProblems errors, the rest is counted in one
// last error.
func Decode(s *structpb.Struct, root *field.Path, into any) field.ErrorList {
	return newDecoder(root).decode(s, into)
}

// DecodeKnown decodes as Decode does. It also returns the fields that into does not have, at most MaxProblems of them.
func DecodeKnown(s *structpb.Struct, root *field.Path, into any) (unknown []UnknownField, errs field.ErrorList) {
	d := newDecoder(root)
	d.notesUnknown = true
	errs = d.decode(s, into)
	return d.unknown, errs
}

// DecodeMap decodes the result of a YAML parser as Decode does a Struct. As in a request, numbers are float64, so one with
// more digits is rounded.
func DecodeMap(m map[string]any, root *field.Path, into any) field.ErrorList {
	s, err := structpb.NewStruct(m)
	if err != nil {
		return field.ErrorList{field.InternalError(root, err)}
	}
	return Decode(s, root, into)
}

// A decoder keeps its path as steps, and makes a field.Path only for an error.
type decoder struct {
	root  *field.Path
	steps []step
	// errs are the first problems, and problems is the number of all.
	errs     field.ErrorList
	problems int
	// unknown are the first fields that are not decoded, if notesUnknown is set.
	notesUnknown bool
	unknown      []UnknownField
}

func newDecoder(root *field.Path) *decoder {
	return &decoder{root: root, steps: make([]step, 0, 16)}
}

func (d *decoder) decode(s *structpb.Struct, into any) field.ErrorList {
	d.structFields(s, reflect.ValueOf(into).Elem())
	if more := d.problems - len(d.errs); more > 0 {
		d.errs = append(d.errs, field.Invalid(d.root, "...", fmt.Sprintf("%d more values cannot be read", more)))
	}
	return d.errs
}

type step struct {
	name  string // Of a field, or of a map's key.
	index int    // Of a list's element, if name is empty.
	key   bool   // The name is a map's key.
}

func (d *decoder) push(s step) { d.steps = append(d.steps, s) }
func (d *decoder) pop()        { d.steps = d.steps[:len(d.steps)-1] }

func (d *decoder) path() *field.Path {
	p := d.root
	for _, s := range d.steps {
		p = s.from(p)
	}
	return p
}

// from returns the path of a step below p. It shortens a long name, which each error below it
// repeats.
func (s step) from(p *field.Path) *field.Path {
	switch {
	case s.key:
		return p.Key(text.Value(s.name))
	case s.name != "":
		return p.Child(text.Value(s.name))
	}
	return p.Index(s.index)
}

func (d *decoder) fail(v *structpb.Value, want string) {
	d.problems++
	if len(d.errs) >= MaxProblems {
		return
	}
	d.errs = append(d.errs, field.Invalid(d.path(), shorten(v), "must be "+want))
}

// shorten returns a short form of a value for an error.
func shorten(v *structpb.Value) any {
	switch v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return "{...}"
	case *structpb.Value_ListValue:
		return "[...]"
	}
	a := asAny(v)
	if s, ok := a.(string); ok {
		return text.Value(s)
	}
	return a
}

func (d *decoder) structFields(s *structpb.Struct, into reflect.Value) {
	info := infoOf(into.Type())
	if len(s.GetFields()) >= len(info.fields) {
		known := 0
		for i := range info.fields {
			if v, ok := s.GetFields()[info.fields[i].name]; ok {
				d.field(info.fields[i].name, v, info.fields[i].of(into))
				known++
			}
		}
		d.noteUnknown(s, info, known, into)
		return
	}
	// Sorted, for a stable order of the errors.
	var few [16]string
	known := few[:0]
	for name := range s.GetFields() {
		if _, ok := info.byName[name]; ok {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	for _, name := range known {
		d.field(name, s.GetFields()[name], info.fields[info.byName[name]].of(into))
	}
	d.noteUnknown(s, info, len(known), into)
}

// noteUnknown notes the fields of an object that its type does not have. known is how many it has.
func (d *decoder) noteUnknown(s *structpb.Struct, info *typeInfo, known int, into reflect.Value) {
	notes := d.notesUnknown && len(d.unknown) < MaxProblems
	if known == len(s.GetFields()) || !notes && info.unknown == nil {
		return
	}
	var names []string
	for name, v := range s.GetFields() {
		if _, ok := info.byName[name]; !ok && !isNull(v) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if info.unknown != nil {
		into.FieldByIndex(info.unknown).Set(reflect.ValueOf(Unknown(names)))
	}
	if !notes {
		return
	}
	at, all := d.path(), slices.Sorted(maps.Keys(info.byName))
	for _, name := range names[:min(len(names), MaxProblems-len(d.unknown))] {
		d.unknown = append(d.unknown, UnknownField{Path: at.Child(text.Value(name)).String(), Name: text.Value(name), Known: all})
	}
}

func (d *decoder) field(name string, v *structpb.Value, into reflect.Value) {
	d.push(step{name: name})
	d.value(v, into)
	d.pop()
}

func (d *decoder) value(v *structpb.Value, into reflect.Value) {
	if isNull(v) {
		return
	}
	if into.Type() == documentType {
		d.document(v, into)
		return
	}
	if into.Kind() == reflect.Pointer {
		p := reflect.New(into.Type().Elem())
		n := d.problems
		d.value(v, p.Elem())
		if d.problems == n || isObject(v, p.Elem()) {
			into.Set(p)
		}
		return
	}
	if infoOf(into.Type()).unmarshals {
		d.unmarshal(v, into)
		return
	}
	switch into.Kind() {
	case reflect.String:
		if s, ok := v.GetKind().(*structpb.Value_StringValue); ok {
			into.SetString(s.StringValue)
			return
		}
		d.fail(v, "a string")
	case reflect.Bool:
		if b, ok := v.GetKind().(*structpb.Value_BoolValue); ok {
			into.SetBool(b.BoolValue)
			return
		}
		d.fail(v, "true or false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.integer(v, into)
	case reflect.Float32, reflect.Float64:
		if n, ok := v.GetKind().(*structpb.Value_NumberValue); ok {
			into.SetFloat(n.NumberValue)
			return
		}
		d.fail(v, "a number")
	case reflect.Struct:
		if s, ok := v.GetKind().(*structpb.Value_StructValue); ok {
			d.structFields(s.StructValue, into)
			return
		}
		d.fail(v, "an object"+like(v, into.Type()))
	case reflect.Map:
		d.mapEntries(v, into)
	case reflect.Slice:
		d.elements(v, into)
	case reflect.Interface:
		into.Set(reflect.ValueOf(asAny(v)))
	default:
		d.fail(v, fmt.Sprintf("a %s, which cannot be decoded", into.Type()))
	}
}

// isObject tells whether a value is an object whose fields are decoded one by one. It counts even
// if some of them cannot be read.
func isObject(v *structpb.Value, into reflect.Value) bool {
	return v.GetStructValue() != nil && into.Kind() == reflect.Struct && !infoOf(into.Type()).unmarshals
}

// document sets a Document without a copy.
func (d *decoder) document(v *structpb.Value, into reflect.Value) {
	if s, ok := v.GetKind().(*structpb.Value_StructValue); ok {
		into.Set(reflect.ValueOf(s.StructValue))
		return
	}
	d.fail(v, "an object")
}

func (d *decoder) integer(v *structpb.Value, into reflect.Value) {
	n, ok := v.GetKind().(*structpb.Value_NumberValue)
	if !ok {
		d.fail(v, "a whole number")
		return
	}
	i, ok := wholeNumber(n.NumberValue)
	switch {
	case !ok:
		d.fail(v, "a whole number")
	case into.OverflowInt(i):
		d.fail(v, fmt.Sprintf("a whole number of at most %d bits", into.Type().Bits()))
	default:
		into.SetInt(i)
	}
}

func (d *decoder) mapEntries(v *structpb.Value, into reflect.Value) {
	s, ok := v.GetKind().(*structpb.Value_StructValue)
	if !ok {
		d.fail(v, "an object")
		return
	}
	t := into.Type()
	m := reflect.MakeMapWithSize(t, len(s.StructValue.GetFields()))
	keys := make([]string, 0, len(s.StructValue.GetFields()))
	for k := range s.StructValue.GetFields() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		e := reflect.New(t.Elem()).Elem()
		d.push(step{name: k, key: true})
		d.value(s.StructValue.GetFields()[k], e)
		d.pop()
		m.SetMapIndex(reflect.ValueOf(k).Convert(t.Key()), e)
	}
	into.Set(m)
}

func (d *decoder) elements(v *structpb.Value, into reflect.Value) {
	l, ok := v.GetKind().(*structpb.Value_ListValue)
	if !ok {
		d.fail(v, "a list")
		return
	}
	values := l.ListValue.GetValues()
	s := reflect.MakeSlice(into.Type(), len(values), len(values))
	for i, e := range values {
		d.push(step{index: i})
		d.value(e, s.Index(i))
		d.pop()
	}
	into.Set(s)
}

// unmarshal decodes types with their own JSON form, such as quantities and times.
func (d *decoder) unmarshal(v *structpb.Value, into reflect.Value) {
	err := unmarshal(v, into.Addr().Interface())
	if _, ofQuantity := into.Addr().Interface().(*resource.Quantity); ofQuantity && errors.Is(err, resource.ErrFormatWrong) {
		d.fail(v, "a number such as 8, 500m or 40Gi")
		return
	}
	if err != nil {
		d.fail(v, fmt.Sprintf("a %s: %s", into.Type().Name(), strings.TrimPrefix(err.Error(), "json: ")))
	}
}

// numberFormat returns the format in which encoding/json writes a number.
func numberFormat(f float64) byte {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return 'e'
	}
	return 'f'
}

// unmarshal decodes the most common types itself, and leaves others to their UnmarshalJSON.
func unmarshal(v *structpb.Value, into any) (err error) {
	switch s := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		switch t := into.(type) {
		case *resource.Quantity:
			*t, err = ParseQuantity(s.StringValue)
			return err
		case *intstr.IntOrString:
			*t = intstr.FromString(s.StringValue)
			return nil
		}
	case *structpb.Value_NumberValue:
		if t, ok := into.(*resource.Quantity); ok {
			// A number is a quantity as encoding/json writes it.
			*t, err = ParseQuantity(strconv.FormatFloat(s.NumberValue, numberFormat(s.NumberValue), -1, 64))
			return err
		}
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}
