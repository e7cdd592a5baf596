/*
Package oracle mutates requests for fuzzers, and checks what must hold for every response. The checks share no code with the
rendering.
*/
package oracle

import (
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// Check checks a response. Either it has a Fatal result, or it keeps all observed replicas that are still wanted, and API
// servers accept all its objects.
func Check(tb testing.TB, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	tb.Helper()
	if fixture.IsFatal(rsp) {
		return
	}
	for key := range req.GetObserved().GetResources() {
		if strings.HasPrefix(key, "leaderworkerset/") && rsp.GetDesired().GetResources()[key] == nil && stillWanted(req, key) {
			tb.Fatalf("%s is observed and still wanted, but missing in the response", key)
		}
		if key == nameLock && kind(req.GetObserved().GetComposite().GetResource()) == v1alpha1.KindInferenceModel && rsp.GetDesired().GetResources()[key] == nil {
			tb.Fatalf("an InferenceModel gives up its name")
		}
		if strings.HasPrefix(key, "persistentvolumeclaim/") && keepsClaims(req) && rsp.GetDesired().GetResources()[key] == nil {
			tb.Fatalf("a ModelCache gives up %s", key)
		}
	}
	objects := map[string]*structpb.Struct{}
	for key, r := range rsp.GetDesired().GetResources() {
		// Earlier functions in the pipeline are responsible for their own objects.
		if req.GetDesired().GetResources()[key] == nil {
			objects[key] = r.GetResource()
		}
	}
	checkObjects(tb, objects, req.GetObserved().GetResources())
}

// nameLock is the key of the name lock of an InferenceModel.
const nameLock = "configmap/model-name"

// keepsClaims reports whether a composite resource is a ModelCache in its own cluster.
func keepsClaims(req *fnv1.RunFunctionRequest) bool {
	xr := req.GetObserved().GetComposite().GetResource()
	spec := kube.Lookup(xr, "spec").GetStructValue().GetFields()
	return kind(xr) == v1alpha1.KindModelCache && spec["clusters"] == nil && spec["clusterSelector"] == nil
}

// stillWanted reports whether the spec still has the role and the index of a LeaderWorkerSet.
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

// checkObjects checks objects, by their keys, against the rules of Kubernetes and Volcano.
func checkObjects(tb testing.TB, objects map[string]*structpb.Struct, observed map[string]*fnv1.Resource) {
	tb.Helper()
	groups := map[string]*structpb.Struct{}
	for _, key := range fixture.Keys(objects) {
		o := objects[key]
		// A collection that finds what is in another cluster carries nothing.
		if strings.HasPrefix(key, "cluster/") && kind(o) != "ObservedObjectCollection" {
			checkName(tb, key, o)
			o = kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
			objects[key] = o
		}
		checkName(tb, key, o)
		checkNoNulls(tb, key, structpb.NewStructValue(o), "")
		if kind(o) == "PodGroup" {
			groups[name(o)] = o
		}
	}
	checkDistinct(tb, objects)
	checkRevisions(tb, objects)
	for _, key := range fixture.Keys(objects) {
		if o := objects[key]; kind(o) == "LeaderWorkerSet" {
			checkGang(tb, key, o, groups)
			was := observed[key].GetResource()
			if manifest := kube.Lookup(was, "spec", "forProvider", "manifest").GetStructValue(); manifest != nil {
				was = manifest
			}
			checkTemplates(tb, key, o, was)
		}
	}
	for _, g := range groups {
		checkMembers(tb, g)
	}
}

func kind(o *structpb.Struct) string { return kube.Lookup(o, "kind").GetStringValue() }

func name(o *structpb.Struct) string { return kube.Lookup(o, "metadata", "name").GetStringValue() }

func checkName(tb testing.TB, key string, o *structpb.Struct) {
	tb.Helper()
	if errs := validation.IsDNS1123Label(name(o)); len(errs) > 0 {
		tb.Errorf("%s: name %q: %v", key, name(o), errs)
	}
}

// checkDistinct checks that no two objects of a kind in one cluster have the same name.
func checkDistinct(tb testing.TB, objects map[string]*structpb.Struct) {
	tb.Helper()
	seen := map[[3]string]string{}
	for _, key := range fixture.Keys(objects) {
		cluster := ""
		if parts := strings.Split(key, "/"); parts[0] == "cluster" && len(parts) > 1 {
			cluster = parts[1]
		}
		id := [3]string{cluster, kind(objects[key]), name(objects[key])}
		if other := seen[id]; other != "" {
			tb.Errorf("%s and %s are both %s %q", other, key, id[1], id[2])
		}
		seen[id] = key
	}
}

// checkMembers checks that the minimums of a gang's tasks add up to minMember. Otherwise Volcano ignores the minimums.
func checkMembers(tb testing.TB, group *structpb.Struct) {
	tb.Helper()
	if kube.Lookup(group, "spec", "subGroupPolicy") != nil {
		return
	}
	sum := 0.0
	for _, v := range kube.Lookup(group, "spec", "minTaskMember").GetStructValue().GetFields() {
		sum += v.GetNumberValue()
	}
	if least := kube.Lookup(group, "spec", "minMember").GetNumberValue(); sum != least {
		tb.Errorf("PodGroup %s: minMember is %v, but minTaskMember adds up to %v", name(group), least, sum)
	}
}

func checkGang(tb testing.TB, key string, lws *structpb.Struct, groups map[string]*structpb.Struct) {
	tb.Helper()
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
			tb.Errorf("%s: its pods name PodGroup %q, which is not rendered", key, group)
		}
		if kube.Lookup(tpl, "spec", "schedulerName").GetStringValue() != plan.SchedulerVolcano {
			tb.Errorf("%s: is in a gang, but not scheduled by Volcano", key)
		}
	}
}

// checkRevisions checks the label by which requests are kept to one revision. The pods have that of their LeaderWorkerSet. One that is
// held may have a template from before there was the label.
func checkRevisions(tb testing.TB, objects map[string]*structpb.Struct) {
	tb.Helper()
	label := func(o *structpb.Struct, k string) string {
		return kube.Lookup(o, "metadata", "labels", k).GetStringValue()
	}
	for _, key := range fixture.Keys(objects) {
		o := objects[key]
		if kind(o) != "LeaderWorkerSet" {
			continue
		}
		held := kube.Lookup(o, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0
		for _, template := range []string{"leaderTemplate", "workerTemplate"} {
			tpl := kube.Lookup(o, "spec", "leaderWorkerTemplate", template).GetStructValue()
			got, want := label(tpl, naming.LabelSpecHash), label(o, naming.LabelSpecHash)
			if tpl != nil && got != want && (got != "" || !held) {
				tb.Errorf("%s: its pods have the spec hash %q, and it has %q", key, got, want)
			}
		}
	}
}

// checkTemplates checks that rendered templates are valid. The user's template was validated, but the function adds to it. A
// template that was there already is kept, whatever a fuzzer has made of it.
func checkTemplates(tb testing.TB, key string, lws, was *structpb.Struct) {
	tb.Helper()
	for _, field := range []string{"leaderTemplate", "workerTemplate"} {
		doc := kube.Lookup(lws, "spec", "leaderWorkerTemplate", field).GetStructValue()
		if doc == nil || proto.Equal(doc, kube.Lookup(was, "spec", "leaderWorkerTemplate", field).GetStructValue()) {
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
			tb.Errorf("%s: %s: %v", key, field, errs.ToAggregate())
		}
	}
}

// checkNoNulls checks that no field is null, except in the user's templates and routes.
func checkNoNulls(tb testing.TB, key string, v *structpb.Value, path string) {
	tb.Helper()
	if strings.HasSuffix(path, "Template") || strings.HasSuffix(path, ".rules") || strings.HasSuffix(path, ".listeners") || path == ".spec" && (strings.Contains(key, "httproute") || strings.Contains(key, "gateway")) {
		return
	}
	switch k := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		tb.Errorf("%s: %s is null", key, path)
	case *structpb.Value_StructValue:
		for f, e := range k.StructValue.GetFields() {
			if path == "" && f == "status" {
				tb.Errorf("%s: has a status", key)
			}
			checkNoNulls(tb, key, e, path+"."+f)
		}
	case *structpb.Value_ListValue:
		for _, e := range k.ListValue.GetValues() {
			checkNoNulls(tb, key, e, path)
		}
	}
}
