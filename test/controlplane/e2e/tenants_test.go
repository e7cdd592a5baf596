package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// A tenant has a namespace, and services in it.
type tenant struct {
	*testing.T

	c         *cluster.Cluster
	namespace string
}

// settle makes a namespace that goes with the test, after the services in it. Nobody
// waits until it is gone: that takes Kubernetes five seconds.
func settle(t *testing.T, c *cluster.Cluster, namespace string) *tenant {
	t.Helper()
	if err := c.Namespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	n := &tenant{T: t, c: c, namespace: namespace}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx := context.WithoutCancel(t.Context())
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("Namespace")
		o.SetName(namespace)
		_, err := c.Kubectl(ctx, "delete", "--namespace="+namespace, "inferenceservices.fusioninfer.io", "--all", "--cascade=foreground")
		if err := errors.Join(err, c.Delete(ctx, o)); err != nil {
			t.Error(err)
		}
	})
	return n
}

// The kinds that the tests look at.
var (
	kindService   = schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "InferenceService"}
	kindWorkload  = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	kindPod       = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	kindNode      = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	kindRole      = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	kindHyperNode = schema.GroupVersionKind{Group: "topology.volcano.sh", Version: "v1alpha1", Kind: "HyperNode"}
)

func (n *tenant) named(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(n.namespace)
	o.SetName(name)
	return o
}

func (n *tenant) get(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	n.Helper()
	o, err := n.c.Get(n.Context(), n.named(kind, name))
	if err != nil {
		n.Fatal(err)
	}
	return o
}

func (n *tenant) list(kind schema.GroupVersionKind) []unstructured.Unstructured {
	n.Helper()
	all, err := n.c.List(n.Context(), kind, n.namespace)
	if err != nil {
		n.Fatal(err)
	}
	return all
}

// serve applies a service with a spec in YAML.
func (n *tenant) serve(name, spec string) {
	n.Helper()
	o := n.named(kindService, name)
	if err := yaml.Unmarshal([]byte(spec), &o.Object); err != nil {
		n.Fatal(err)
	}
	if _, err := n.c.Apply(n.Context(), o, "tenant"); err != nil {
		n.Fatal(err)
	}
}

// remove deletes a service with all that it composed, and waits until it is gone.
func (n *tenant) remove(name string) {
	n.Helper()
	kubectl(n.T, n.c, "delete", "--namespace="+n.namespace, "inferenceservices.fusioninfer.io", name, "--cascade=foreground")
}

func (n *tenant) until(what string, done func(context.Context) error) {
	n.Helper()
	until(n.T, n.c, what, func(ctx context.Context) (bool, error) {
		err := done(ctx)
		return err == nil, err
	})
}

func (n *tenant) ready(name string) {
	n.Helper()
	ready(n.T, n.c, n.named(kindService, name))
}

// refused waits until a service is refused for a reason that has all of some words.
func (n *tenant) refused(name string, words ...string) {
	n.Helper()
	n.until(name+" is refused", func(ctx context.Context) error {
		o, err := n.c.Get(ctx, n.named(kindService, name))
		if err != nil {
			return err
		}
		c := conditionOf(o, "Accepted")
		message, _ := c["message"].(string)
		if c["status"] != "False" || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(message, w) }) {
			return fmt.Errorf("its condition Accepted is %v, want False with %q", c, words)
		}
		return nil
	})
}

// state is all of the LeaderWorkerSets and pods that a restart or a change would
// show in.
func (n *tenant) state() map[string]string {
	n.Helper()
	all := map[string]string{}
	for _, o := range n.list(kindWorkload) {
		owners := []string{}
		for _, r := range o.GetOwnerReferences() {
			owners = append(owners, r.Kind+" "+r.Name)
		}
		all["LeaderWorkerSet "+o.GetName()] = fmt.Sprintf("%s generation %d of %q", o.GetUID(), o.GetGeneration(), owners)
	}
	for _, o := range n.list(kindPod) {
		all["Pod "+o.GetName()] = string(o.GetUID())
	}
	return all
}

func conditionOf(o *unstructured.Unstructured, of string) map[string]any {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range all {
		if m, ok := v.(map[string]any); ok && m["type"] == of {
			return m
		}
	}
	return nil
}

// A rolePart is a part of a service that serves.
type rolePart struct {
	name, kind            string
	replicas, nodes, gpus int
}

// spec is that of a service, in YAML: a router, unless it is empty, and roles. What
// else the spec has is in more.
func spec(router string, parts []rolePart, more string) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "spec:\n%s  roles:\n", more)
	if router != "" {
		fmt.Fprintf(b, "  - {name: router, componentType: router, strategy: %s, "+
			"gateway: {gatewayClassName: any, listeners: [{name: http, protocol: HTTP, port: 80}]}}\n", router)
	}
	for _, p := range parts {
		args := fmt.Sprintf("--model=Qwen/Qwen3-8B, --tensor-parallel-size=%d", max(p.gpus, 1)*p.nodes)
		if p.nodes > 1 {
			args += fmt.Sprintf(", --nnodes=%d, --node-rank=$(LWS_WORKER_INDEX), --master-addr=$(LWS_LEADER_ADDRESS)", p.nodes)
		}
		if p.kind != "worker" {
			args += `, --kv-transfer-config, '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'`
		}
		fmt.Fprintf(b, `
  - name: %s
    componentType: %s
    replicas: %d
    multinode: {nodeCount: %d, launcher: None}
    template:
      spec:
        containers:
        - name: vllm
          image: vllm/vllm-openai:v0.12.0
          args: [%s]
          ports: [{name: http, containerPort: 8000}]
          resources: {limits: {nvidia.com/gpu: "%d"}}
`, p.name, p.kind, p.replicas, p.nodes, args, p.gpus)
	}
	return b.String()
}

// TestSameNames proves that two tenants can have services of the same name: both get
// ready, and the end of one is not noticed by the other.
func TestSameNames(t *testing.T) {
	t.Parallel()
	c := shared(t)
	red, blue := settle(t, c, "red"), settle(t, c, "blue")
	worker := []rolePart{{name: "worker", kind: "worker", replicas: 2, nodes: 1, gpus: 1}}
	for _, n := range []*tenant{red, blue} {
		n.serve("llm", spec("queue-size", worker, ""))
	}
	red.ready("llm")
	blue.ready("llm")
	empty := settle(t, c, "empty")
	before := blue.state()
	// Two LeaderWorkerSets, their pods, and the endpoint picker's.
	if len(before) != 5 {
		t.Fatalf("blue has %d LeaderWorkerSets and pods, want 5: %v", len(before), before)
	}
	red.remove("llm")
	red.until("nothing is left of red's service", func(ctx context.Context) error {
		left, err := c.Kubectl(ctx, "get", "--namespace=red", "--selector=fusioninfer.io/service", "--output=name", composed)
		if err == nil && left != "" {
			err = fmt.Errorf("there still is:\n%s", left)
		}
		return err
	})
	if got := empty.state(); len(got) != 0 {
		t.Errorf("a namespace without services has %v", got)
	}
	blue.ready("llm")
	if diff := cmp.Diff(before, blue.state()); diff != "" {
		t.Errorf("the end of red's service changes blue's of the same name: -before, +after:\n%s", diff)
	}
}

// TestNameTaken proves that service a-b with role c does not take what service a with
// role b-c has made: both would be a-b-c-0. It is refused, and is served once the
// name is free.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	c := shared(t)
	n := settle(t, c, "taken")
	n.serve("a", spec("", []rolePart{{name: "b-c", kind: "worker", replicas: 1, nodes: 1}}, ""))
	n.ready("a")
	before := n.state()
	n.serve("a-b", spec("", []rolePart{{name: "c", kind: "worker", replicas: 1, nodes: 1}}, ""))
	n.refused("a-b", "a-b-c-0", `"a"`)
	n.ready("a")
	if diff := cmp.Diff(before, n.state()); diff != "" {
		t.Errorf("the refused service changes the other's: -before, +after:\n%s", diff)
	}
	n.remove("a")
	n.ready("a-b")
	o := n.get(kindWorkload, "a-b-c-0")
	if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].Name != "a-b" {
		t.Errorf("LeaderWorkerSet a-b-c-0 belongs to %v, want a-b", owners)
	}
}

// TestForeignWorkload proves that a LeaderWorkerSet which somebody made by hand is
// neither adopted nor changed.
func TestForeignWorkload(t *testing.T) {
	t.Parallel()
	c := shared(t)
	n := settle(t, c, "foreign")
	all, err := cluster.Documents([]byte(`
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: llm-worker-0
  namespace: foreign
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 1
    workerTemplate:
      spec:
        containers:
        - name: mine
          image: mine
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	n.until("the foreign pod runs", func(context.Context) error {
		if pods := n.list(kindPod); len(pods) != 1 || nodeOf(&pods[0]) == "" {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
	before := n.state()
	n.serve("llm", spec("", []rolePart{{name: "worker", kind: "worker", replicas: 1, nodes: 1}}, ""))
	n.refused("llm", "llm-worker-0")
	if diff := cmp.Diff(before, n.state()); diff != "" {
		t.Errorf("a service of the same name changes what is somebody else's: -before, +after:\n%s", diff)
	}
	if err := c.Delete(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	n.ready("llm")
}

// TestPickerMayNoMore proves that the ServiceAccount of an endpoint picker may do
// what the Role says that was rendered for it, and nothing else: neither in its
// own namespace, nor in another tenant's, nor in the whole cluster.
func TestPickerMayNoMore(t *testing.T) {
	t.Parallel()
	c := shared(t)
	n, other := settle(t, c, "mine"), settle(t, c, "theirs")
	worker := []rolePart{{name: "worker", kind: "worker", replicas: 1, nodes: 1}}
	for _, n := range []*tenant{n, other} {
		n.serve("llm", spec("queue-size", worker, ""))
	}
	n.ready("llm")
	other.ready("llm")

	picker, nobody := n.as("llm-epp"), n.as("default")
	role := &rbacv1.Role{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(n.get(kindRole, "llm-epp").Object, role); err != nil {
		t.Fatal(err)
	}
	want := sets.New[string]()
	for _, r := range role.Rules {
		want.Insert(permitted(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames)...)
	}
	if want.Len() == 0 || want.Has("* */*") {
		t.Fatalf("the rendered Role allows %v", sets.List(want))
	}
	cases := map[string]struct {
		reason    string
		namespace string
		want      sets.Set[string]
	}{
		"Own":   {reason: "All that it may do is in its Role.", namespace: n.namespace, want: want},
		"Other": {reason: "It may do nothing in another tenant's namespace.", namespace: other.namespace, want: sets.New[string]()},
		"Core":  {reason: "It may do nothing where Crossplane is.", namespace: "crossplane-system", want: sets.New[string]()},
	}
	for name, tc := range cases {
		if err := mayOnly(t.Context(), picker, nobody, tc.namespace, tc.want); err != nil {
			t.Errorf("%s: %s %v", name, tc.reason, err)
		}
	}
	// Not only does the API server say so.
	for namespace, may := range map[string]bool{n.namespace: true, other.namespace: false, "": false} {
		_, err := picker.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if may && err != nil || !may && !apierrors.IsForbidden(err) {
			t.Errorf("listing pods of namespace %q says %v, want allowed: %t", namespace, err, may)
		}
	}
	if _, err := picker.CoreV1().Secrets(n.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing its own namespace's secrets says %v, want forbidden", err)
	}
}

// as is a client of a ServiceAccount.
func (n *tenant) as(account string) kubernetes.Interface {
	n.Helper()
	file, err := n.c.As(n.Context(), n.namespace, account)
	if err != nil {
		n.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		n.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		n.Fatal(err)
	}
	return client
}

// getsOnly waits until an account may do what it should in the namespace, and nothing else. The API server hears of a new Role and of
// its RoleBinding a moment after they were written.
func (n *tenant) getsOnly(account string, want sets.Set[string]) {
	n.Helper()
	client, nobody := n.as(account), n.as("default")
	n.until("account "+account+" may do what it should, and nothing else", func(ctx context.Context) error {
		return mayOnly(ctx, client, nobody, n.namespace, want)
	})
}

// mayOnly tells whether a client may do more or less in a namespace than it should, beside what everybody may: ask who they are and
// what they may do.
func mayOnly(ctx context.Context, client, nobody kubernetes.Interface, namespace string, want sets.Set[string]) error {
	its, err := allowed(ctx, client, namespace)
	if err != nil {
		return err
	}
	everybody, err := allowed(ctx, nobody, namespace)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(sets.List(want), sets.List(its.Difference(everybody))); diff != "" {
		return fmt.Errorf("it may do more or less than it should: -want, +got:\n%s", diff)
	}
	return nil
}

// allowed is what a client may do in a namespace.
func allowed(ctx context.Context, client kubernetes.Interface, namespace string) (sets.Set[string], error) {
	r, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authv1.SelfSubjectRulesReview{
		Spec: authv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if r.Status.Incomplete {
		return nil, fmt.Errorf("the API server does not know all rules: %s", r.Status.EvaluationError)
	}
	all := sets.New[string]()
	for _, rule := range r.Status.ResourceRules {
		all.Insert(permitted(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames)...)
	}
	for _, rule := range r.Status.NonResourceRules {
		all.Insert(permitted(rule.Verbs, []string{"-"}, rule.NonResourceURLs, nil)...)
	}
	return all, nil
}

// permitted is each verb on each resource, as "VERB GROUP/RESOURCE NAMES".
func permitted(verbs, groups, resources, names []string) []string {
	var all []string
	for _, v := range verbs {
		for _, g := range groups {
			for _, r := range resources {
				all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", v, g, r, strings.Join(names, ","))))
			}
		}
	}
	return all
}

// nodeOf is the node of a pod.
func nodeOf(pod *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return name
}
