package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// full has every field that has a default, and most others.
const full = `
metadata: {name: svc, namespace: default}
spec:
  profileName: h100
  replicas: 2
  roles:
  - name: router
    componentType: router
    strategy: pd-disaggregation
    httproute: {hostnames: [a.example.com]}
    gateway: {gatewayClassName: istio}
    endpointPickerConfig: "kind: EndpointPickerConfig"
    endpointPicker: {resources: {requests: {cpu: 500m}, limits: {cpu: 1, memory: 1Gi}}, kvConnector: mooncake}
    servedModels:
    - {name: a, priority: 3, targets: [{name: b}, {name: c, weight: 3}]}
    - {name: d, criticality: Sheddable}
  - name: prefill
    componentType: prefiller
    replicas: 3
    multinode: {nodeCount: 2}
    template: {spec: {containers: []}}
    leaderTemplate: {spec: {containers: []}}
  - name: decode
    componentType: decoder
    multinode: {nodeCount: 4, launcher: VLLM}
    template: {spec: {containers: []}}
  schedulingStrategy:
    schedulerName: volcano
    queueName: research
    gang:
      mode: MinimumFirst
      minRoleReplicas: {prefill: 1, decode: 1}
      networkTopology: {highestTierAllowed: 2}
      priorityClassName: high
  placement:
    clusters:
    - {name: a, providerConfigRef: {name: a}, namespace: x}
    - {name: b, providerConfigRef: {name: b, kind: ProviderConfig}}
    - {name: c, inferenceClusterRef: {name: c}}
`

func documents(t *testing.T) map[string][]byte {
	t.Helper()
	docs := seeds(t)
	docs["full"] = []byte(full)
	return docs
}

// TestDefault shows that defaults are set where a field is not set, and nowhere else.
func TestDefault(t *testing.T) {
	xr, errs := decode(t, []byte(full))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	v1alpha1.Default(&xr.Spec)
	once := xr.Spec.Roles
	got := []any{
		*once[0].Replicas, once[0].EndpointPicker.KVConnector, *once[0].ServedModels[0].Targets[0].Weight, *once[0].ServedModels[0].Targets[1].Weight,
		*once[1].Replicas, once[1].EndpointPicker, once[1].Multinode.Launcher, *once[2].Replicas, once[2].Multinode.Launcher,
		xr.Spec.SchedulingStrategy.Gang.NetworkTopology.Mode,
		xr.Spec.Placement.Clusters[0].ProviderConfigRef.Kind, xr.Spec.Placement.Clusters[1].ProviderConfigRef.Kind,
	}
	want := []any{
		int32(1), "mooncake", int32(1), int32(3),
		int32(3), (*v1alpha1.EndpointPicker)(nil), v1alpha1.LauncherRay, int32(1), v1alpha1.LauncherVLLM,
		v1alpha1.TopologyHard,
		v1alpha1.KindClusterProviderConfig, v1alpha1.KindProviderConfig,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if v1alpha1.Default(&v1alpha1.InferenceServiceSpec{}); xr.Spec.Replicas == nil || *xr.Spec.Replicas != 2 {
		t.Errorf("want spec.replicas as it was, got %v", xr.Spec.Replicas)
	}
}

// TestLimitsAgree shows that the schema has the limits of the function.
func TestLimitsAgree(t *testing.T) {
	s, err := schematest.New(schematest.XR)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	role := items(spec.Properties["roles"])
	model := items(role.Properties["servedModels"])
	cluster := items(spec.Properties["placement"].Properties["clusters"])
	want := map[string]int{
		"roles":                v1alpha1.MaxRoles,
		"replicas":             v1alpha1.MaxGroups,
		"role name":            v1alpha1.MaxRoleName,
		"role replicas":        v1alpha1.MaxReplicas,
		"minReplicas":          v1alpha1.MaxReplicas,
		"maxReplicas":          v1alpha1.MaxReplicas,
		"prefill":              v1alpha1.MaxReplicas,
		"decode":               v1alpha1.MaxReplicas,
		"tolerancePercent":     v1alpha1.MaxTolerancePercent,
		"nodeCount":            v1alpha1.MaxNodes,
		"endpointPickerConfig": v1alpha1.MaxConfig,
		"servedModels":         v1alpha1.MaxModels,
		"model name":           v1alpha1.MaxName,
		"targets":              v1alpha1.MaxTargets,
		"weight":               v1alpha1.MaxWeight,
		"clusters":             v1alpha1.MaxClusters,
		"failoverAfterSeconds": v1alpha1.MaxFailoverAfterSeconds,
		"config name":          v1alpha1.MaxName,
	}
	got := map[string]int{
		"roles":                int(ptr.Deref(spec.Properties["roles"].MaxItems, 0)),
		"replicas":             int(ptr.Deref(spec.Properties["replicas"].Maximum, 0)),
		"role name":            int(ptr.Deref(role.Properties["name"].MaxLength, 0)),
		"role replicas":        int(ptr.Deref(role.Properties["replicas"].Maximum, 0)),
		"minReplicas":          int(ptr.Deref(role.Properties["scaling"].Properties["minReplicas"].Maximum, 0)),
		"maxReplicas":          int(ptr.Deref(role.Properties["scaling"].Properties["maxReplicas"].Maximum, 0)),
		"prefill":              int(ptr.Deref(spec.Properties["scaling"].Properties["ratio"].Properties["prefill"].Maximum, 0)),
		"decode":               int(ptr.Deref(spec.Properties["scaling"].Properties["ratio"].Properties["decode"].Maximum, 0)),
		"tolerancePercent":     int(ptr.Deref(spec.Properties["scaling"].Properties["ratio"].Properties["tolerancePercent"].Maximum, 0)),
		"nodeCount":            int(ptr.Deref(role.Properties["multinode"].Properties["nodeCount"].Maximum, 0)),
		"endpointPickerConfig": int(ptr.Deref(role.Properties["endpointPickerConfig"].MaxLength, 0)),
		"servedModels":         int(ptr.Deref(role.Properties["servedModels"].MaxItems, 0)),
		"model name":           int(ptr.Deref(model.Properties["name"].MaxLength, 0)),
		"targets":              int(ptr.Deref(model.Properties["targets"].MaxItems, 0)),
		"weight":               int(ptr.Deref(items(model.Properties["targets"]).Properties["weight"].Maximum, 0)),
		"clusters":             int(ptr.Deref(spec.Properties["placement"].Properties["clusters"].MaxItems, 0)),
		"failoverAfterSeconds": int(ptr.Deref(spec.Properties["placement"].Properties["failoverAfterSeconds"].Maximum, 0)),
		"config name":          int(ptr.Deref(cluster.Properties["providerConfigRef"].Properties["name"].MaxLength, 0)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-function +schema:\n%s", diff)
	}
}

func items(p extv1.JSONSchemaProps) extv1.JSONSchemaProps { return *p.Items.Schema }

// TestValidateAgrees damages services at random, and shows that the function refuses what
// an API server refuses: an XR may have been stored under another schema. No value is
// replaced by an empty string, because the function takes it for an absent one.
func TestValidateAgrees(t *testing.T) {
	s, err := schematest.New(schematest.XR)
	if err != nil {
		t.Fatal(err)
	}
	docs := documents(t)
	names := slices.Sorted(maps.Keys(docs))
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range 1500 {
		obj := map[string]any{}
		if err := yaml.Unmarshal(docs[names[i%len(names)]], &obj); err != nil {
			t.Fatal(err)
		}
		obj["metadata"] = map[string]any{"name": "svc", "namespace": "default"}
		obj = runtime.DeepCopyJSON(obj)
		damage(random, obj["spec"].(map[string]any), damages())
		doc, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		errs := slices.DeleteFunc(s.Validate(doc), leftToOthers)
		if len(errs) == 0 {
			continue
		}
		refused++
		if problems(t, string(doc)) == nil {
			t.Fatalf("only the schema refuses %s:\n%v", doc, errs.ToAggregate())
		}
	}
	if refused < 500 {
		t.Errorf("want at least 500 damaged services to be refused, got %d", refused)
	}
}

// leftToOthers tells which errors of the schema Validate does not have: unknown fields,
// which the function ignores; the scheduler of a gang, which planning checks; and
// quantities, because Kubernetes accepts fractions without quotes, and the schema does not.
func leftToOthers(err *field.Error) bool {
	return err.Detail == "unknown field" || err.Field == "spec.schedulingStrategy.schedulerName" || strings.Contains(err.Error(), ".resources.")
}

func damages() []any {
	return []any{nil, int64(-1), int64(0), int64(1 << 31), int64(2000000000), 1.5, "x", "Not A Name", true, []any{}, []any{"x"}, map[string]any{}, map[string]any{"name": "x"}}
}

// damage replaces or removes one value at any depth of an object. It does not change the
// inside of fields whose content the schema does not describe.
func damage(random *rand.Rand, obj map[string]any, with []any) {
	keys := slices.Sorted(maps.Keys(obj))
	if len(keys) == 0 {
		return
	}
	k := keys[random.IntN(len(keys))]
	foreign := slices.Contains([]string{"template", "leaderTemplate", "httproute", "gateway"}, k)
	if random.IntN(4) > 0 && !foreign && descend(random, obj[k], with) {
		return
	}
	if random.IntN(5) == 0 {
		delete(obj, k)
		return
	}
	obj[k] = with[random.IntN(len(with))]
}

func descend(random *rand.Rand, v any, with []any) bool {
	switch t := v.(type) {
	case map[string]any:
		damage(random, t, with)
		return len(t) > 0
	case []any:
		if len(t) == 0 {
			return false
		}
		i := random.IntN(len(t))
		if m, ok := t[i].(map[string]any); ok && random.IntN(10) > 0 {
			damage(random, m, with)
		} else {
			t[i] = with[random.IntN(len(with))]
		}
		return true
	}
	return false
}
