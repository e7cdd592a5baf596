package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// UnknownFields returns the fields of v that the type t does not have, at most so many. v has the types of a
// YAML parser.
func UnknownFields(v any, t reflect.Type, most int) []UnknownField {
	var all []UnknownField
	eachUnknown(v, t, "", func(path string, known map[string]int) {
		if len(all) < most {
			all = append(all, UnknownField{Path: path, Known: slices.Sorted(maps.Keys(known))})
		}
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

func eachUnknown(v any, t reflect.Type, path string, found func(path string, known map[string]int)) {
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
			eachUnknown(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), found)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch i, known := info.byName[k]; {
			case t.Kind() == reflect.Map:
				eachUnknown(v[k], t.Elem(), fmt.Sprintf("%s[%s]", path, k), found)
			case t.Kind() != reflect.Struct:
			case known:
				eachUnknown(v[k], t.FieldByIndex(info.fields[i].index).Type, childPath(path, k), found)
			default:
				found(childPath(path, k), info.byName)
			}
		}
	}
}

// DropNulls removes the fields of v that the type t has and that are null, as an API server does by a schema. It returns their paths.
// What a schema leaves open, such as a pod template, keeps its nulls. v has the types of a YAML parser.
func DropNulls(v any, t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	info := infoOf(t)
	if info.unmarshals {
		return nil
	}
	var all []string
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, e := range v {
			all = append(all, DropNulls(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			i, known := info.byName[k]
			switch {
			case !known:
			case v[k] == nil:
				delete(v, k)
				all = append(all, childPath(path, k))
			default:
				all = append(all, DropNulls(v[k], t.FieldByIndex(info.fields[i].index).Type, childPath(path, k))...)
			}
		}
	}
	return all
}

func childPath(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
