package incoming_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	_ "github.com/fusioninfer/function-inferenceservice/internal/cluster" // Declares what it reads, as service does.
	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	_ "github.com/fusioninfer/function-inferenceservice/internal/service"
)

// documents reads the documents of a file, and adds managedFields as an API server does.
func documents(tb testing.TB, file string) []*structpb.Struct {
	tb.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	var all []*structpb.Struct
	for _, doc := range bytes.Split(b, []byte("\n---\n")) {
		o := map[string]any{}
		if err := yaml.Unmarshal(doc, &o); err != nil {
			tb.Fatal(err)
		}
		if len(o) == 0 {
			continue
		}
		m, _ := o["metadata"].(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		m["managedFields"] = []any{map[string]any{"manager": "crossplane", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": managed(o)}}
		o["metadata"] = m
		s, err := structpb.NewStruct(o)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// managed returns the managed fields of an object: an entry for each field.
func managed(v any) map[string]any {
	fields := map[string]any{}
	o, _ := v.(map[string]any)
	for name, v := range o {
		fields["f:"+name] = managed(v)
	}
	return fields
}

// exampleRequests returns the encoded requests of the examples with observed objects.
func exampleRequests(tb testing.TB) [][]byte {
	tb.Helper()
	files, err := filepath.Glob("../../example/*/observed.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no examples: %v", err)
	}
	var all [][]byte
	for _, file := range files {
		req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{}}, RequiredResources: map[string]*fnv1.Resources{"r": {}}}
		req.Observed.Composite = &fnv1.Resource{Resource: documents(tb, filepath.Join(filepath.Dir(file), "xr.yaml"))[0]}
		for _, o := range documents(tb, file) {
			key := o.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()["crossplane.io/composition-resource-name"].GetStringValue()
			req.Observed.Resources[key] = &fnv1.Resource{Resource: o}
		}
		for _, o := range documents(tb, filepath.Join(filepath.Dir(file), "required.yaml")) {
			req.RequiredResources["r"].Items = append(req.RequiredResources["r"].Items, &fnv1.Resource{Resource: o})
		}
		b, err := proto.Marshal(req)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// TestLargeFields shows that no package reads large fields of objects. What an Object tells its cluster to
// make pods of is read: it is rendered again while the capacity for other pods is not reserved.
func TestLargeFields(t *testing.T) {
	_, object := incoming.Fields()
	for _, path := range [][]string{
		{"metadata", "managedFields"},
		{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
		{"spec", "template"},
		{"spec", "leaderWorkerTemplate", "leaderTemplate"},
		{"spec", "forProvider", "manifest", "spec", "template"},
		{"status", "atProvider", "manifest", "spec", "leaderWorkerTemplate", "leaderTemplate"},
		{"status", "atProvider", "manifest", "metadata", "managedFields"},
		{"spec", "versions", "schema"},
		{"data", "config.yaml"},
	} {
		s, kept := object, true
		for _, name := range path {
			if s, kept = s.Below(name); !kept {
				break
			}
		}
		if kept {
			t.Errorf("%s is read: declare a View of the parts that are needed", strings.Join(path, "."))
		}
	}
}

// BenchmarkUnmarshal decodes the requests of all examples with observed objects.
func BenchmarkUnmarshal(b *testing.B) {
	codec.Register()
	proto := encoding.GetCodecV2("proto")
	all := exampleRequests(b)
	n := 0
	for _, req := range all {
		n += len(req)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		for _, req := range all {
			if err := proto.Unmarshal(mem.BufferSlice{mem.SliceBuffer(req)}, &fnv1.RunFunctionRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
