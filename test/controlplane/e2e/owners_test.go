package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// An owner writes InferenceModels, with the rights that docs/models.md gives owners and no others.
type owner struct {
	t         *testing.T
	client    dynamic.Interface
	namespace string
}

var ownersRole = regexp.MustCompile("(?s)```yaml\n(apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: model-owner, namespace: default}\n.*?)```")

// newOwner makes an account with the Role of the documents, for one model, and returns its client.
func newOwner(t *testing.T, c *cluster.Cluster, namespace, model string) *owner {
	t.Helper()
	said := ownersRole.FindStringSubmatch(read(t, "docs", "models.md"))
	if len(said) < 2 || strings.Count(said[1], "[npc-bot]") != 1 {
		t.Fatal("docs/models.md has no Role for the owner of npc-bot")
	}
	name := "owner-of-" + model
	text := strings.NewReplacer("[npc-bot]", "["+model+"]", "model-owner", name, "namespace: default", "namespace: "+namespace).Replace(said[1])
	kubectl(t, c, "apply", "-f", written(t, "owner.yaml", text+fmt.Sprintf(`
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[2]s}]
`, name, namespace)))
	role := &rbacv1.Role{}
	if err := yaml.Unmarshal([]byte(text), role); err != nil {
		t.Fatal(err)
	}
	want := sets.New[string]()
	for _, r := range role.Rules {
		want.Insert(permitted(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames)...)
	}
	(&tenant{T: t, c: c, namespace: namespace}).getsOnly(name, want)
	file, err := c.As(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &owner{t: t, client: client, namespace: namespace}
}

func (o *owner) of(group, version, resource string) dynamic.ResourceInterface {
	return o.client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace(o.namespace)
}

func (o *owner) models() dynamic.ResourceInterface {
	return o.of("fusioninfer.io", "v1alpha1", "inferencemodels")
}

// apply applies a model, as its owner does.
func (o *owner) apply(model *unstructured.Unstructured) {
	o.t.Helper()
	if _, err := o.models().Apply(o.t.Context(), model.GetName(), model, metav1.ApplyOptions{FieldManager: "owner", Force: true}); err != nil {
		o.t.Fatalf("an owner cannot apply %s: %v", model.GetName(), err)
	}
}

// mayNoMore proves that an owner can neither see nor change what a service is made of, the status of their own
// model, or the model of somebody else.
func (o *owner) mayNoMore(ctx context.Context, service, mine, other string) {
	o.t.Helper()
	refused := func(what string, err error) {
		o.t.Helper()
		if !apierrors.IsForbidden(err) {
			o.t.Errorf("an owner who wants to %s is told %v, want forbidden", what, err)
		}
	}
	merge := func(of dynamic.ResourceInterface, name, patch string, sub ...string) error {
		_, err := of.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
		return err
	}
	for _, r := range []struct{ group, version, resource, kind string }{
		{"fusioninfer.io", "v1alpha1", "inferenceservices", "InferenceService"},
		{"fusioninfer.io", "v1alpha1", "modelcaches", "ModelCache"},
		{"batch", "v1", "jobs", "Job"},
		{"", "v1", "secrets", "Secret"},
		{"", "v1", "pods", "Pod"},
		{"", "v1", "configmaps", "ConfigMap"},
		{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"},
		{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"},
		{"llm-d.ai", "v1alpha2", "inferencemodelrewrites", "InferenceModelRewrite"},
		{"llm-d.ai", "v1alpha2", "inferenceobjectives", "InferenceObjective"},
	} {
		of := o.of(r.group, r.version, r.resource)
		_, err := of.List(ctx, metav1.ListOptions{})
		refused("list "+r.resource, err)
		_, err = of.Get(ctx, service, metav1.GetOptions{})
		refused("get "+r.resource, err)
		_, err = of.Create(ctx, object(schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind}, o.namespace, "new"), metav1.CreateOptions{})
		refused("create "+r.resource, err)
		refused("change "+r.resource, merge(of, service, `{"metadata":{"labels":{"a":"b"}}}`))
		refused("delete "+r.resource, of.Delete(ctx, service, metav1.DeleteOptions{}))
	}
	refused("change the model of somebody else", merge(o.models(), other, `{"spec":{"priority":0}}`))
	refused("delete the model of somebody else", o.models().Delete(ctx, other, metav1.DeleteOptions{}))
	refused("change the status of their model", merge(o.models(), mine, `{"status":{"objectiveName":"top"}}`, "status"))
}
