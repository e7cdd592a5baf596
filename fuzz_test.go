package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/inferencecluster"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
	"github.com/fusioninfer/function-inferenceservice/test/hostile"
)

// FuzzMutatedExamples changes places of the examples to values that are wrong
// in every way, and holds the answers against the promises of the project.
func FuzzMutatedExamples(f *testing.F) {
	examples := exampleRequests(f)
	for i := range examples {
		f.Add(uint8(i), []byte{})
		for _, m := range [][]byte{{3, 0, 1}, {7, 0, 2, 9, 0, 5}, {20, 0, 9, 1, 0, 3, 40, 0, 11}} {
			f.Add(uint8(i), m)
		}
	}
	f.Fuzz(func(t *testing.T, example uint8, mutations []byte) {
		req := proto.Clone(examples[int(example)%len(examples)]).(*fnv1.RunFunctionRequest)
		for len(mutations) >= 3 {
			mutate(req, int(mutations[0])|int(mutations[1])<<8, mutations[2])
			mutations = mutations[3:]
		}
		checkPromises(t, req)
	})
}

// maxSeed is the most bytes of a seed.
const maxSeed = 8 << 10

// FuzzRequest takes requests of any shape.
func FuzzRequest(f *testing.F) {
	for _, r := range exampleRequests(f) {
		j, err := protojson.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(j)
	}
	for _, c := range hostile.Cases() {
		// What JSON has no form for, such as numbers that are none, has none as a seed. Those
		// that are large are slow to change, and TestHostile has them.
		if j, err := protojson.Marshal(c.Make()); err == nil && len(j) <= maxSeed {
			f.Add(j)
		}
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"observed":{"composite":{"resource":{"spec":{"roles":[null,{},{"name":"","replicas":-1}]}}}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		req := &fnv1.RunFunctionRequest{}
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(in, req) != nil {
			return
		}
		checkPromises(t, req)
	})
}

// exampleRequests are the requests that the examples make.
func exampleRequests(tb testing.TB) []*fnv1.RunFunctionRequest {
	tb.Helper()
	files, err := filepath.Glob("example/*/xr.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no examples: %v", err)
	}
	var all []*fnv1.RunFunctionRequest
	for _, f := range files {
		req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{
			Composite: &fnv1.Resource{Resource: readStructs(tb, f)[0]},
			Resources: map[string]*fnv1.Resource{},
		}}
		dir := filepath.Dir(f)
		for _, s := range readStructs(tb, filepath.Join(dir, "input.yaml")) {
			req.Input = s
		}
		for _, s := range readStructs(tb, filepath.Join(dir, "observed.yaml")) {
			key := kube.Lookup(s, "metadata", "annotations", "crossplane.io/composition-resource-name").GetStringValue()
			req.Observed.Resources[key] = &fnv1.Resource{Resource: s}
		}
		required := readStructs(tb, filepath.Join(dir, "required.yaml"))
		if inferencecluster.Is(req) {
			fulfil(tb, req, required)
			required = nil
		}
		for _, s := range required {
			name := require.Pods
			if kube.Lookup(s, "kind").GetStringValue() == v1alpha1.KindCluster {
				name = require.Fleet
			}
			if req.RequiredResources == nil {
				req.RequiredResources = map[string]*fnv1.Resources{}
			}
			if req.GetRequiredResources()[name] == nil {
				req.RequiredResources[name] = &fnv1.Resources{}
			}
			req.RequiredResources[name].Items = append(req.RequiredResources[name].Items, &fnv1.Resource{Resource: s})
		}
		all = append(all, req)
	}
	return all
}

// fulfil gives a request what the function requires of some objects.
func fulfil(tb testing.TB, req *fnv1.RunFunctionRequest, all []*structpb.Struct) {
	tb.Helper()
	rsp, err := (&Function{log: logging.NewNopLogger()}).RunFunction(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}
	req.RequiredResources = map[string]*fnv1.Resources{}
	for name, sel := range rsp.GetRequirements().GetResources() {
		found := &fnv1.Resources{}
		for _, o := range all {
			if kube.Lookup(o, "kind").GetStringValue() != sel.GetKind() || sel.GetMatchLabels() == nil {
				continue
			}
			labels := kube.Lookup(o, "metadata", "labels").GetStructValue().GetFields()
			if !slices.ContainsFunc(sortedKeys(sel.GetMatchLabels().GetLabels()), func(k string) bool {
				return labels[k].GetStringValue() != sel.GetMatchLabels().GetLabels()[k]
			}) {
				found.Items = append(found.Items, &fnv1.Resource{Resource: o})
			}
		}
		req.RequiredResources[name] = found
	}
}

func readStructs(tb testing.TB, file string) []*structpb.Struct {
	tb.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	var all []*structpb.Struct
	for _, doc := range strings.Split("\n"+string(b), "\n---") {
		j, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		s := &structpb.Struct{}
		if string(j) == "null" {
			continue
		}
		if err := s.UnmarshalJSON(j); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all = append(all, s)
	}
	return all
}

// wrongValues are what mutations put in the place of something right.
func wrongValues() []*structpb.Value {
	return []*structpb.Value{
		structpb.NewNullValue(),
		structpb.NewStringValue(""),
		structpb.NewStringValue("x"),
		structpb.NewNumberValue(0),
		structpb.NewNumberValue(-1),
		structpb.NewNumberValue(3),
		structpb.NewNumberValue(2e9),
		structpb.NewNumberValue(1.5),
		structpb.NewBoolValue(true),
		structpb.NewStructValue(&structpb.Struct{}),
		structpb.NewListValue(&structpb.ListValue{}),
		structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNullValue()}}),
		structpb.NewStringValue(strings.Repeat("a", 64)),
		structpb.NewStringValue("$(X) '\"\n"),
		structpb.NewStringValue("None"),
		structpb.NewStringValue("SubGroup"),
		structpb.NewStringValue("VLLM"),
		structpb.NewStringValue("router"),
		structpb.NewStringValue("decoder"),
		structpb.NewStringValue("1e300000000"),
		structpb.NewNumberValue(math.NaN()),
		hostileList(structpb.NewNullValue()),
		hostileList(structpb.NewStructValue(&structpb.Struct{})),
	}
}

// hostileList is longer than any list may be.
func hostileList(of *structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: slices.Repeat([]*structpb.Value{of}, 2000)})
}

// mutate replaces one place of the request's XR, input or observed objects.
func mutate(req *fnv1.RunFunctionRequest, place int, with uint8) {
	roots := []*structpb.Struct{req.GetObserved().GetComposite().GetResource(), req.GetInput()}
	for _, k := range sortedKeys(req.GetObserved().GetResources()) {
		roots = append(roots, req.GetObserved().GetResources()[k].GetResource())
	}
	var set []func(*structpb.Value)
	for _, r := range roots {
		collect(structpb.NewStructValue(r), &set)
	}
	if len(set) > 0 {
		values := wrongValues()
		set[place%len(set)](values[int(with)%len(values)])
	}
}

func collect(v *structpb.Value, set *[]func(*structpb.Value)) {
	if s := v.GetStructValue(); s != nil {
		for _, k := range sortedKeys(s.GetFields()) {
			*set = append(*set, func(w *structpb.Value) { s.Fields[k] = w })
			collect(s.GetFields()[k], set)
		}
	}
	if l := v.GetListValue(); l != nil {
		for i, e := range l.GetValues() {
			*set = append(*set, func(w *structpb.Value) { l.Values[i] = w })
			collect(e, set)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// checkPromises is the oracle.
func checkPromises(t *testing.T, req *fnv1.RunFunctionRequest) {
	t.Helper()
	before := proto.Clone(req)
	log, clock := &defectLog{}, stopped()
	rsp, err := (&Function{log: log, clock: clock}).RunFunction(context.Background(), req)
	if err != nil {
		t.Fatalf("an error in place of an answer: %v", err)
	}
	if log.text != "" {
		t.Fatalf("a panic: %s", log.text)
	}
	if !proto.Equal(before, req) {
		t.Fatal("the request was changed")
	}
	again, _ := (&Function{log: logging.NewNopLogger(), clock: clock}).RunFunction(context.Background(), proto.Clone(before).(*fnv1.RunFunctionRequest))
	opts := proto.MarshalOptions{Deterministic: true}
	a, _ := opts.Marshal(rsp)
	b, _ := opts.Marshal(again)
	if string(a) != string(b) {
		t.Fatal("the same request gave two answers")
	}
	if fatal(rsp) {
		return
	}
	for key := range req.GetObserved().GetResources() {
		if strings.HasPrefix(key, "leaderworkerset/") && rsp.GetDesired().GetResources()[key] == nil && stillWanted(req, key) {
			t.Fatalf("%s is observed and wanted, and was left out", key)
		}
	}
	checkObjects(t, rsp)
}

// stillWanted tells whether a LeaderWorkerSet's role and index are in the spec.
func stillWanted(req *fnv1.RunFunctionRequest, key string) bool {
	parts := strings.Split(key, "/")
	spec := kube.Lookup(req.GetObserved().GetComposite().GetResource(), "spec").GetStructValue()
	if spec.GetFields()["replicas"] != nil || spec.GetFields()["placement"] != nil || len(parts) != 3 {
		return false
	}
	for _, r := range spec.GetFields()["roles"].GetListValue().GetValues() {
		f := r.GetStructValue().GetFields()
		n := f["replicas"].GetNumberValue()
		if _, set := f["replicas"].GetKind().(*structpb.Value_NumberValue); !set {
			n = 1
		}
		if f["name"].GetStringValue() == parts[1] && strconv.Itoa(int(n)) > parts[2] && len(parts[2]) == 1 && n < 10 {
			return true
		}
	}
	return false
}

func fatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

// checkObjects holds the rendered objects against what Kubernetes and Volcano
// ask for.
func checkObjects(t *testing.T, rsp *fnv1.RunFunctionResponse) {
	t.Helper()
	names := map[string]string{}
	groups := map[string]*structpb.Struct{}
	for _, key := range sortedKeys(rsp.GetDesired().GetResources()) {
		o := rsp.GetDesired().GetResources()[key].GetResource()
		if strings.HasPrefix(key, "cluster/") {
			name := kube.Lookup(o, "metadata", "name").GetStringValue()
			if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
				t.Errorf("%s: name %q: %v", key, name, errs)
			}
			o = kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
		}
		kind, name := kube.Lookup(o, "kind").GetStringValue(), kube.Lookup(o, "metadata", "name").GetStringValue()
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("%s: name %q: %v", key, name, errs)
		}
		id := fmt.Sprint(strings.Join(strings.Split(key, "/")[:min(2, strings.Count(key, "/")+1)], "/"), kind, name)
		if strings.HasPrefix(key, "cluster/") {
			if other := names[id]; other != "" {
				t.Errorf("%s and %s are both %s %q", other, key, kind, name)
			}
			names[id] = key
		}
		if kind == "PodGroup" {
			groups[name] = o
		}
		checkNoNulls(t, key, structpb.NewStructValue(o), "")
	}
	for _, key := range sortedKeys(rsp.GetDesired().GetResources()) {
		o := rsp.GetDesired().GetResources()[key].GetResource()
		if strings.HasPrefix(key, "cluster/") {
			o = kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
		}
		if kube.Lookup(o, "kind").GetStringValue() == "LeaderWorkerSet" {
			checkGang(t, key, o, groups)
			checkTemplates(t, key, o)
		}
	}
	for name, g := range groups {
		sum := 0.0
		for _, v := range kube.Lookup(g, "spec", "minTaskMember").GetStructValue().GetFields() {
			sum += v.GetNumberValue()
		}
		if kube.Lookup(g, "spec", "subGroupPolicy") == nil && sum != kube.Lookup(g, "spec", "minMember").GetNumberValue() {
			t.Errorf("PodGroup %s: minMember is not the sum of minTaskMember, which turns all its checks off", name)
		}
	}
}

func checkGang(t *testing.T, key string, lws *structpb.Struct, groups map[string]*structpb.Struct) {
	t.Helper()
	for _, template := range []string{"leaderTemplate", "workerTemplate"} {
		tpl := kube.Lookup(lws, "spec", "leaderWorkerTemplate", template).GetStructValue()
		if tpl == nil {
			continue
		}
		group := kube.Lookup(tpl, "metadata", "annotations", "scheduling.k8s.io/group-name").GetStringValue()
		if group == "" {
			continue
		}
		if groups[group] == nil {
			t.Errorf("%s: joins PodGroup %q, which is not rendered", key, group)
		}
		if kube.Lookup(tpl, "spec", "schedulerName").GetStringValue() != plan.SchedulerVolcano {
			t.Errorf("%s: is in a gang and not scheduled by Volcano", key)
		}
		if kube.Lookup(tpl, "metadata", "labels", plan.LabelSpecHash) != nil {
			t.Errorf("%s: the spec hash is on pods", key)
		}
	}
}

// checkTemplates holds that the API server makes pods of what is rendered: what is
// added to a user's template, which was validated, keeps it valid.
func checkTemplates(t *testing.T, key string, lws *structpb.Struct) {
	t.Helper()
	for _, name := range []string{"leaderTemplate", "workerTemplate"} {
		doc := kube.Lookup(lws, "spec", "leaderWorkerTemplate", name).GetStructValue()
		if doc == nil {
			continue
		}
		tpl := struct {
			Metadata struct {
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Spec corev1.PodSpec `json:"spec"`
		}{}
		errs := kube.Decode(doc, nil, &tpl)
		errs = append(errs, podspec.Validate(&corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: tpl.Metadata.Labels, Annotations: tpl.Metadata.Annotations}, Spec: tpl.Spec}, nil)...)
		if len(errs) > 0 {
			t.Errorf("%s: %s: %v", key, name, errs.ToAggregate())
		}
	}
}

// checkNoNulls looks outside of the user's templates, which may have anything.
func checkNoNulls(t *testing.T, key string, v *structpb.Value, path string) {
	t.Helper()
	if strings.HasSuffix(path, "Template") || strings.HasSuffix(path, ".rules") || strings.HasSuffix(path, ".listeners") || path == ".spec" && (strings.Contains(key, "httproute") || strings.Contains(key, "gateway")) {
		return
	}
	switch k := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		t.Errorf("%s: %s is null", key, path)
	case *structpb.Value_StructValue:
		for f, e := range k.StructValue.GetFields() {
			if path == "" && f == "status" {
				t.Errorf("%s: has a status", key)
			}
			checkNoNulls(t, key, e, path+"."+f)
		}
	case *structpb.Value_ListValue:
		for _, e := range k.ListValue.GetValues() {
			checkNoNulls(t, key, e, path)
		}
	}
}

// A defectLog remembers what the function says of a defect.
type defectLog struct{ text string }

func (l *defectLog) Info(msg string, keysAndValues ...any) {
	l.text += fmt.Sprintln(append([]any{msg}, keysAndValues...)...)
}
func (l *defectLog) Debug(string, ...any)             {}
func (l *defectLog) WithValues(...any) logging.Logger { return l }
