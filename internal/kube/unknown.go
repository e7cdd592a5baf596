package kube

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// UnknownFields returns the fields of v that the type t does not have. v has the
// types of a YAML parser.
func UnknownFields(v any, t reflect.Type, path string) []UnknownField {
	var all []UnknownField
	eachUnknown(v, t, path, func(path string, known map[string]reflect.Type) {
		all = append(all, UnknownField{Path: path, Known: slices.Sorted(maps.Keys(known))})
	})
	return all
}

// An UnknownField is a field that a type does not have.
type UnknownField struct {
	Path string
	// Known are the fields that the type has instead.
	Known []string
}

// NearName returns the name of the known field that the unknown one resembles most, or nothing.
func (u UnknownField) NearName() string {
	return text.Nearest(u.Path[strings.LastIndexByte(u.Path, '.')+1:], u.Known)
}

// Near returns the path of the known field whose name the unknown one resembles most, or nothing.
func (u UnknownField) Near() string {
	name := u.NearName()
	if name == "" {
		return ""
	}
	return u.Path[:strings.LastIndexByte(u.Path, '.')+1] + name
}

// FindUnknownFields returns the first fields that UnknownFields finds, up to MaxProblems.
func FindUnknownFields(v any, t reflect.Type) []UnknownField {
	var all []UnknownField
	eachUnknown(v, t, "", func(path string, known map[string]reflect.Type) {
		if len(all) < MaxProblems {
			all = append(all, UnknownField{Path: path, Known: slices.Sorted(maps.Keys(known))})
		}
	})
	return all
}

func eachUnknown(v any, t reflect.Type, path string, found func(path string, known map[string]reflect.Type)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return
	}
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, e := range v {
			eachUnknown(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), found)
		}
	case map[string]any:
		fields := fieldsOf(t)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch of, known := fields[k]; {
			case t.Kind() == reflect.Map:
				eachUnknown(v[k], t.Elem(), fmt.Sprintf("%s[%s]", path, k), found)
			case t.Kind() != reflect.Struct:
			case known:
				eachUnknown(v[k], of, childPath(path, k), found)
			default:
				found(childPath(path, k), fields)
			}
		}
	}
}

func childPath(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// fieldsByType caches the results of fieldsOf.
var fieldsByType sync.Map

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldsByType.Load(t); ok {
		if fields, ok := known.(map[string]reflect.Type); ok {
			return fields
		}
	}
	fields := map[string]reflect.Type{}
	defer fieldsByType.Store(t, fields)
	if t.Kind() != reflect.Struct {
		return fields
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(fields, fieldsOf(f.Type))
			continue
		}
		fields[name] = f.Type
	}
	return fields
}
