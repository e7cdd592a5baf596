package kube

import (
	"maps"
	"reflect"
)

// A FieldSet is a set of fields: their names, with the FieldSet below each. A nil FieldSet
// has all fields. FieldSets share parts with each other and are never changed.
type FieldSet map[string]FieldSet

// FieldAt returns the set of the one field at a path, with a set of fields below it.
func FieldAt(path []string, below FieldSet) FieldSet {
	if len(path) == 0 {
		return below
	}
	return FieldSet{path[0]: FieldAt(path[1:], below)}
}

// FieldsOf returns the set of fields that Decode reads into a value of type t.
func FieldsOf(t reflect.Type) FieldSet { return fieldsRead(t, map[reflect.Type]bool{}) }

// fieldsRead follows decoder.value. It returns all fields for a type that contains itself,
// whose depth is not bounded, and for a map, whose keys are not known.
func fieldsRead(t reflect.Type, within map[reflect.Type]bool) FieldSet {
	switch {
	case t == documentType, within[t]:
		return nil
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice && !infoOf(t).unmarshals:
		return fieldsRead(t.Elem(), within)
	case t.Kind() != reflect.Struct, infoOf(t).unmarshals:
		return nil
	}
	within[t] = true
	defer delete(within, t)
	s := FieldSet{}
	for _, f := range infoOf(t).fields {
		s[f.name] = fieldsRead(t.FieldByIndex(f.index).Type, within)
	}
	return s
}

// Below returns the fields below a field, and whether that field is in the set.
func (s FieldSet) Below(name string) (FieldSet, bool) {
	if s == nil {
		return nil, true
	}
	below, ok := s[name]
	return below, ok
}

// Union returns the fields of both sets.
func (s FieldSet) Union(o FieldSet) FieldSet {
	if s == nil || o == nil {
		return nil
	}
	all := maps.Clone(s)
	for name, below := range o {
		if known, ok := all[name]; ok {
			below = known.Union(below)
		}
		all[name] = below
	}
	return all
}
