/*
Package hostile has requests that a user of InferenceServices could cause to exhaust the time
or the memory of the function, which serves all users. Tests, fuzzers and make bench share
them. Code makes them, because as files they would take 40 MB.
*/
package hostile

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// MaxSize is the largest size of a request, in bytes. An API server stores objects of about
// this size.
const MaxSize = 1_500_000

// A Case is one hostile request.
type Case struct {
	Name string
	// Make returns a new request each time.
	Make func() *fnv1.RunFunctionRequest
}

// notUTF8 is text that protobuf refuses to encode. Requests have standIn instead, which Wire
// replaces.
const (
	notUTF8 = "\xff\xfe\xfd"
	standIn = "\x01\x02\x03"
)

// Wire returns the encoded request.
func (c Case) Wire() ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.Make())
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", c.Name, err)
	}
	return bytes.ReplaceAll(b, []byte(standIn), []byte(notUTF8)), nil
}

// Cases returns all cases.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{quantities(), lists(), texts(), depths(), routers(), sizes(), observations(), clusters(), inputs(), profiles(), ofModels(), ofCaches()} {
		all = append(all, part...)
	}
	return all
}

// The types of a YAML parser.
type (
	object = map[string]any
	list   = []any
)

// service is a Case of a service with these roles.
func service(name string, roles func() list) Case {
	return withSpec(name, func() object { return object{"roles": roles()} })
}

func withSpec(name string, spec func() object) Case {
	return Case{Name: name, Make: func() *fnv1.RunFunctionRequest { return request(spec()) }}
}

func request(spec object) *fnv1.RunFunctionRequest {
	req := about("InferenceService", object{"name": "hostile", "namespace": "team-a", "uid": "2a2a2a2a-0000-4000-8000-000000000001", "generation": 1, "creationTimestamp": "2026-03-01T12:00:00Z"}, spec)
	req.Input = structOf(openInput())
	return req
}

// openInput returns an Input that allows everything, so that no request is refused by policy.
func openInput() object {
	return object{
		"apiVersion": "fn.fusioninfer.io/v1alpha1", "kind": "Input",
		"podSecurity":            object{"enforce": "privileged"},
		"allowedProviderConfigs": repeat(32, named("c", nil)),
		"routes":                 object{"allowedParentRefs": list{object{"namespace": "team-a"}}, "allowedAddresses": list{"*"}, "allowedHostnames": list{"*"}, "allowedFilters": list{"RequestMirror"}},
	}
}

func about(kind string, metadata, spec object) *fnv1.RunFunctionRequest {
	return &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "hostile"},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: structOf(object{
			"apiVersion": "fusioninfer.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
		})}},
	}
}

// worker returns a role whose container has these additional fields.
func worker(container object) object { return role("worker", pod(container)) }

func role(kind string, template any) object {
	return object{"name": "a", "componentType": kind, "template": template}
}

func pod(container object) object {
	return object{"spec": object{"containers": list{engine(container)}}}
}

func engine(more object) object {
	c := object{"name": "vllm", "image": "vllm/vllm-openai:v0.11.0", "args": list{"--model", "m"}}
	for k, v := range more {
		c[k] = v
	}
	return c
}

// inContainer is a Case of a worker whose container has additional fields. inPod is one whose pod
// spec has.
func inContainer(name string, container func() object) Case {
	return service(name, func() list { return list{worker(container())} })
}

func inPod(name string, spec func() object) Case {
	return service(name, func() list {
		p := spec()
		if p["containers"] == nil {
			p["containers"] = list{engine(nil)}
		}
		return list{role("worker", object{"spec": p})}
	})
}

// repeat returns a list of n elements.
func repeat(n int, of func(i int) any) list {
	l := make(list, n)
	for i := range l {
		l[i] = of(i)
	}
	return l
}

func same(v any) func(int) any { return func(int) any { return v } }

func named(prefix string, more object) func(int) any {
	return func(i int) any {
		o := object{"name": fmt.Sprintf("%s%d", prefix, i)}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
}

// keys returns an object with n keys.
func keys(n int, prefix string, v any) object {
	o := make(object, n)
	for i := range n {
		o[fmt.Sprintf("%s%d", prefix, i)] = v
	}
	return o
}

// nested returns objects or lists that are nested n deep.
func nested(n int, inLists bool) *structpb.Value {
	v := structpb.NewStringValue("x")
	for range n {
		if inLists {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		} else {
			v = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": v}})
		}
	}
	return v
}

// text repeats a part up to a length.
func text(length int, part string) string { return strings.Repeat(part, length/len(part)) }

func structOf(o object) *structpb.Struct { return valueOf(o).GetStructValue() }

// valueOf converts like structpb.NewValue, but accepts text that is not UTF-8, and Values.
func valueOf(v any) *structpb.Value {
	switch t := v.(type) {
	case *structpb.Value:
		return t
	case object:
		fields := make(map[string]*structpb.Value, len(t))
		for k, e := range t {
			fields[k] = valueOf(e)
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	case list:
		values := make([]*structpb.Value, len(t))
		for i, e := range t {
			values[i] = valueOf(e)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: values})
	case string:
		return structpb.NewStringValue(t)
	case int:
		return structpb.NewNumberValue(float64(t))
	case float64:
		return structpb.NewNumberValue(t)
	case bool:
		return structpb.NewBoolValue(t)
	}
	return structpb.NewNullValue()
}
