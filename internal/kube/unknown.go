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
)

// UnknownFields returns the paths of the fields of v that the type t does not have. v has the
// types of a YAML parser.
func UnknownFields(v any, t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	var all []string
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, e := range v {
			all = append(all, UnknownFields(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		fields := fieldsOf(t)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch of, known := fields[k]; {
			case t.Kind() == reflect.Map:
				all = append(all, UnknownFields(v[k], t.Elem(), fmt.Sprintf("%s[%s]", path, k))...)
			case t.Kind() != reflect.Struct:
			case known:
				all = append(all, UnknownFields(v[k], of, childPath(path, k))...)
			default:
				all = append(all, childPath(path, k))
			}
		}
	}
	return all
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
