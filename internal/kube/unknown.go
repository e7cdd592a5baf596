package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// UnknownFields returns the fields of v that the type t does not have, the first ones up to the number most. v has the
// types of a YAML parser.
func UnknownFields(v any, t reflect.Type, most int) []UnknownField {
	var all []UnknownField
	eachField(v, t, "", func(_ map[string]any, name, path string, known map[string]int) {
		if _, is := known[name]; !is && len(all) < most {
			all = append(all, UnknownField{Path: path, Name: name, Known: slices.Sorted(maps.Keys(known))})
		}
	})
	return all
}

// An UnknownField is a field that a type does not have.
type UnknownField struct {
	// Path of the field below the document, such as spec.roles[0].replica.
	Path string
	// Name of the field, with which the path ends. A label in its place may have dots.
	Name string
	// Known are the fields that the type has instead.
	Known []string
}

// NearName returns the name of the known field that the unknown one resembles most, or nothing.
func (u UnknownField) NearName() string {
	return text.Nearest(u.Name, u.Known)
}

// Beside returns the path of another field of the same object.
func (u UnknownField) Beside(name string) string { return strings.TrimSuffix(u.Path, u.Name) + name }

// Near returns the path of the known field whose name the unknown one resembles most, or nothing.
func (u UnknownField) Near() string {
	name := u.NearName()
	if name == "" {
		return ""
	}
	return u.Beside(name)
}

// eachField visits the fields of v and of what is in it, by the type t: those of structs, and not the keys of maps. known are the fields
// that their type has. What visit removes from its object is not looked into. A type with an encoding of its own is left out.
func eachField(v any, t reflect.Type, path string, visit func(of map[string]any, name, path string, known map[string]int)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	info := infoOf(t)
	if info.unmarshals {
		return
	}
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, e := range v {
			eachField(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch {
			case t.Kind() == reflect.Map:
				eachField(v[k], t.Elem(), fmt.Sprintf("%s[%s]", path, k), visit)
			case t.Kind() == reflect.Struct:
				visit(v, k, childPath(path, k), info.byName)
				if i, known := info.byName[k]; known {
					eachField(v[k], t.FieldByIndex(info.fields[i].index).Type, childPath(path, k), visit)
				}
			}
		}
	}
}

// DropNulls removes the fields of v that the type t has and that are null, as an API server does by a schema. It returns their paths.
// What a schema leaves open, such as a pod template, keeps its nulls. v has the types of a YAML parser.
func DropNulls(v any, t reflect.Type, path string) []string {
	var all []string
	eachField(v, t, path, func(of map[string]any, name, path string, known map[string]int) {
		if _, is := known[name]; is && of[name] == nil {
			delete(of, name)
			all = append(all, path)
		}
	})
	return all
}

func childPath(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// HasField tells whether a struct has a field of that name in JSON.
func HasField(t reflect.Type, name string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return known == name
	})
}
