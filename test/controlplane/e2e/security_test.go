package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// An attack is what an app team writes to get more than its own.
type attack struct {
	reason string
	spec   string
	// want is where the refusal says that the problem is, and some of its words.
	want []string
}

// attacks have a spec each that the function has to refuse with its default input.
func attacks() map[string]attack {
	// The braces are those of the template's spec, the container and its metadata.
	worker := func(podSpec, container, metadata string) string {
		return fmt.Sprintf(`{roles: [{name: w, componentType: worker, template: {metadata: {%s}, spec: {%s containers: [{name: vllm, image: vllm-openai, args: [--model=m], %s}]}}}]}`, metadata, podSpec, container)
	}
	router := func(route, more string) string {
		return fmt.Sprintf(`{roles: [{name: r, componentType: router, httproute: {%s}, %s}, {name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm-openai, args: [--model=m]}]}}}]}`, route, more)
	}
	withPlacement := func(placement string) string {
		return strings.TrimSuffix(worker("", "", ""), "}") + ", placement: {" + placement + "}}"
	}
	const own = `gateway: {gatewayClassName: any, listeners: [{name: http, protocol: HTTP, port: 80}]}`
	return map[string]attack{
		"provider-config":   {"The credentials of another cluster.", withPlacement(`clusters: [{name: a, providerConfigRef: {name: edge}}]`), []string{"spec.placement.clusters[0].providerConfigRef", "allowedProviderConfigs"}},
		"remote-namespace":  {"Another tenant's namespace of another cluster.", withPlacement(`clusters: [{name: b, namespace: kube-system, providerConfigRef: {name: edge}}]`), []string{"spec.placement.clusters[0]"}},
		"host-network":      {"The node's network.", worker("hostNetwork: true,", "", ""), []string{"spec.roles[0].template.spec", `violates PodSecurity "baseline:latest"`}},
		"host-path":         {"The node's files.", worker("volumes: [{name: root, hostPath: {path: /}}],", "volumeMounts: [{name: root, mountPath: /host}]", ""), []string{"spec.roles[0].template.spec", "hostPath"}},
		"privileged":        {"The node itself.", worker("", "securityContext: {privileged: true}", ""), []string{"spec.roles[0].template.spec.containers[0]", "privileged"}},
		"capability":        {"The node's kernel.", worker("", "securityContext: {capabilities: {add: [SYS_ADMIN]}}", ""), []string{"spec.roles[0].template.spec.containers[0]", "SYS_ADMIN"}},
		"picker-account":    {"The account of an endpoint picker.", worker("serviceAccountName: good-epp,", "", ""), []string{"spec.roles[0].template.spec.serviceAccountName"}},
		"priority":          {"Priority over the pods of others.", worker("priorityClassName: system-node-critical,", "", ""), []string{"spec.roles[0].template.spec.priorityClassName", "allowedPriorityClassNames"}},
		"gang-priority":     {"Priority over the gangs of others.", strings.TrimSuffix(worker("", "", ""), "}") + ", schedulingStrategy: {gang: {priorityClassName: system-node-critical}}}", []string{"spec.schedulingStrategy.gang.priorityClassName"}},
		"queue":             {"Another team's queue.", strings.TrimSuffix(worker("", "", ""), "}") + ", schedulingStrategy: {queueName: theirs}}", []string{"spec.schedulingStrategy.queueName"}},
		"pod-queue":         {"Another team's queue, by an annotation.", worker("", "", "annotations: {scheduling.volcano.sh/queue-name: theirs}"), []string{"scheduling.volcano.sh/queue-name"}},
		"shared-gateway":    {"A gateway that others have, too.", router(`hostnames: [a.example.com], parentRefs: [{name: main, namespace: gateways}]`, ""), []string{"spec.roles[0].httproute", "parentRefs"}},
		"default-gateways":  {"All default gateways.", router(`useDefaultGateways: All`, ""), []string{"spec.roles[0].httproute", "useDefaultGateways"}},
		"mirror":            {"A copy of each request elsewhere.", router(`rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: sink, port: 80}}}]}]`, own), []string{"spec.roles[0].httproute.rules[0].filters[0]", "RequestMirror"}},
		"external-auth":     {"Each request to somebody who judges it.", router(`rules: [{filters: [{type: ExternalAuth, externalAuth: {protocol: GRPC, backendRef: {name: spy, port: 80}}}]}]`, own), []string{"spec.roles[0].httproute.rules[0].filters[0]", "ExternalAuth"}},
		"extension":         {"A filter of which only the gateway knows what it does.", router(`rules: [{filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Filter, name: a}}]}]`, own), []string{"spec.roles[0].httproute.rules[0].filters[0]", "ExtensionRef"}},
		"steering-header":   {"The header by which the endpoint picker tells the gateway where to go.", router(`rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Gateway-Destination-Endpoint, value: "10.0.0.1:80"}]}}]}]`, own), []string{"spec.roles[0].httproute.rules[0].filters[0].requestHeaderModifier.set[0].name"}},
		"default-scope":     {"The routes of others, at one's own gateway.", router("hostnames: [a.example.com]", `gateway: {gatewayClassName: any, defaultScope: All, listeners: [{name: http, protocol: HTTP, port: 80}]}`), []string{"spec.roles[0].gateway.defaultScope"}},
		"picker-devices":    {"Devices that no ledger counts.", router("hostnames: [a.example.com]", own+`, endpointPicker: {resources: {limits: {nvidia.com/gpu: "8"}}}`), []string{"spec.roles[0].endpointPicker.resources.limits[nvidia.com/gpu]"}},
		"anti-affinity":     {"Nodes without others' pods.", worker("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaceSelector: {}, labelSelector: {}}]}},", "", ""), []string{"podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector"}},
		"kueue-priority":    {"Priority over the workloads of others in Kueue.", worker("", "", "labels: {kueue.x-k8s.io/priority-class: top}"), []string{"kueue.x-k8s.io/priority-class"}},
		"kueue-queue":       {"Entering a queue of Kueue that is not its own.", worker("", "", "labels: {kueue.x-k8s.io/queue-name: other}"), []string{"kueue.x-k8s.io/queue-name"}},
		"long-farewell":     {"Capacity that is reserved for others.", strings.TrimSuffix(worker("terminationGracePeriodSeconds: 315360000,", "", ""), "}") + ", placement: {clusterSelector: {}}}", []string{"spec.roles[0].template.spec.terminationGracePeriodSeconds"}},
		"foreign-backend":   {"A backend in another namespace.", router(`rules: [{backendRefs: [{name: api, namespace: kube-system, port: 443}]}]`, own), []string{"spec.roles[0].httproute.rules[0].backendRefs[0].namespace"}},
		"node-name":         {"A node whose capacity is reserved for others.", strings.TrimSuffix(worker("nodeName: node-0,", "", ""), "}") + ", placement: {clusterSelector: {}}}", []string{"spec.roles[0].template.spec.nodeName"}},
		"claims-of-devices": {"Devices that nobody counts.", strings.TrimSuffix(worker("resourceClaims: [{name: gpu, resourceClaimTemplateName: t}],", "resources: {claims: [{name: gpu}]}", ""), "}") + ", placement: {clusterSelector: {}}}", []string{"spec.roles[0].template.spec.resourceClaims"}},
	}
}

// TestTenant is a tenant that may write InferenceServices in its own namespace and nothing
// else. Whatever it tries is refused before anything is made of it, and what it runs stays as
// it is.
func TestTenant(t *testing.T) {
	t.Parallel()
	c := shared(t)
	n := settle(t, c, "tenant")
	services := n.tenantOnly()

	n.as("app-team") // It has a token.
	good := `{roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm-openai, args: [--model=m]}]}}}]}`
	n.write(services, "good", good)
	n.ready("good")
	before := n.state()

	n.hiddenCluster()
	all := attacks()
	// In one order, because the API server compares an edit with what is there.
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		n.write(services, name, all[name].spec)
	}
	for _, name := range names {
		n.refused(name, all[name].want...)
	}
	// As an edit of what runs, each is refused as well, and nothing restarts.
	for _, name := range names {
		a := all[name]
		n.write(services, "good", a.spec)
		n.refused("good", a.want...)
		if diff := cmp.Diff(before, n.state()); diff != "" {
			t.Errorf("%s: %s The edit changes what runs: -before, +after:\n%s", name, a.reason, diff)
		}
	}
	n.write(services, "good", good)
	n.ready("good")
	if diff := cmp.Diff(before, n.state()); diff != "" {
		t.Errorf("after all these edits something has restarted: -before, +after:\n%s", diff)
	}
	n.notDescribed(services)
	n.noRevision(services)
}

// tenantOnly is a client of an account that has rights on InferenceServices of its own
// namespace, and no others.
func (n *tenant) tenantOnly() dynamic.ResourceInterface {
	n.Helper()
	for _, o := range []string{
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: app-team}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: app-team}, rules: [{apiGroups: [fusioninfer.io], resources: [inferenceservices], verbs: [create, get, list, watch, update, patch, delete]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: app-team}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app-team}, subjects: [{kind: ServiceAccount, name: app-team, namespace: tenant}]}`,
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(o), &u.Object); err != nil {
			n.Fatal(err)
		}
		u.SetNamespace(n.namespace)
		if _, err := n.c.Apply(n.Context(), u, "platform"); err != nil {
			n.Fatal(err)
		}
	}
	role := rbacv1.PolicyRule{Verbs: []string{"create", "get", "list", "watch", "update", "patch", "delete"}, APIGroups: []string{"fusioninfer.io"}, Resources: []string{"inferenceservices"}}
	n.getsOnly("app-team", sets.New(permitted(role.Verbs, role.APIGroups, role.Resources, nil)...))
	file, err := n.c.As(n.Context(), n.namespace, "app-team")
	if err != nil {
		n.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		n.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		n.Fatal(err)
	}
	return client.Resource(kindService.GroupVersion().WithResource("inferenceservices")).Namespace(n.namespace)
}

// write applies a service as the tenant, from the spec in YAML.
func (n *tenant) write(services dynamic.ResourceInterface, name, spec string) {
	n.Helper()
	if err := n.tryToWrite(services, name, spec); err != nil {
		n.Fatalf("cannot write %s: %v", name, err)
	}
}

func (n *tenant) tryToWrite(services dynamic.ResourceInterface, name, spec string) error {
	n.Helper()
	o := n.named(kindService, name)
	of := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &of); err != nil {
		n.Fatalf("%s: %v", name, err)
	}
	o.Object["spec"] = of
	_, err := services.Apply(n.Context(), name, o, metav1.ApplyOptions{FieldManager: "app-team", Force: true})
	return err
}

// hiddenCluster makes a cluster of the fleet that is for others. Nothing runs there.
func (n *tenant) hiddenCluster() {
	n.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata: {name: for-others}
spec:
  providerConfigRef: {name: fleet}
  allowedNamespaces: {from: Names, names: [others]}
  pools: [{name: gpus, nodeCount: 1, allocatable: {nvidia.com/gpu: "8"}}]
`), &o.Object); err != nil {
		n.Fatal(err)
	}
	if _, err := n.c.Apply(n.Context(), o, "platform"); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		if err := n.c.Delete(context.WithoutCancel(n.Context()), o); err != nil {
			n.Error(err)
		}
	})
}

// notDescribed makes sure that a tenant learns nothing of a cluster that is not for it:
// neither by a selector, nor by its name, of which it hears the same as of one that does not
// exist.
func (n *tenant) notDescribed(services dynamic.ResourceInterface) {
	n.Helper()
	const role = `roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm-openai, args: [--model=m]}]}}}]`
	n.write(services, "all-clusters", `{`+role+`, placement: {clusterSelector: {}}}`)
	n.write(services, "by-name", `{`+role+`, placement: {policy: Failover, clusters: [{name: a, inferenceClusterRef: {name: for-others}}, {name: b, inferenceClusterRef: {name: no-such}}]}}`)
	for _, name := range []string{"all-clusters", "by-name"} {
		n.until(name+" runs in no cluster", func(ctx context.Context) error {
			o, err := n.c.Get(ctx, n.named(kindService, name))
			if err != nil {
				return err
			}
			if c := conditionOf(o, "Placed"); c["status"] != "False" {
				return fmt.Errorf("its condition Placed is %v, want False", c)
			}
			return nil
		})
	}
	o := n.get(kindService, "all-clusters")
	status, err := yaml.Marshal(o.Object["status"])
	if err != nil {
		n.Fatal(err)
	}
	if strings.Contains(string(status), "for-others") {
		n.Errorf("the status tells of a cluster that is for others:\n%s", status)
	}
	o = n.get(kindService, "by-name")
	said := map[string]string{}
	unnamed := strings.NewReplacer("for-others", "NAME", "no-such", "NAME") // The tenant has written the names.
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "clusters")
	for _, p := range all {
		m := p.(map[string]any)
		said[fmt.Sprint(m["name"])] = unnamed.Replace(fmt.Sprint(m["state"], " ", m["reason"], " ", m["message"]))
	}
	if len(said) != 2 || said["a"] != said["b"] {
		n.Errorf("a cluster that is for others must look like one that does not exist: %v", said)
	}
}

// noRevision makes sure that a tenant cannot go back to what an older Composition allowed.
func (n *tenant) noRevision(services dynamic.ResourceInterface) {
	n.Helper()
	const role = `roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm-openai, args: [--model=m]}]}}}]`
	for what, crossplane := range map[string]string{
		"compositionUpdatePolicy":     `{compositionUpdatePolicy: Manual, compositionRevisionRef: {name: inferenceservices.fusioninfer.io-1234567}}`,
		"resourceRefs":                `{resourceRefs: [{apiVersion: v1, kind: LimitRange, name: any}]}`,
		"compositionRevisionSelector": `{compositionRevisionSelector: {matchLabels: {old: "true"}}}`,
	} {
		for _, name := range []string{"good", "new-" + strings.ToLower(what)} {
			err := n.tryToWrite(services, name, `{crossplane: `+crossplane+`, `+role+`}`)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) {
				n.Errorf("writing %s into %s says %v, want it to be forbidden", what, name, err)
			}
		}
	}
	// The platform team may.
	o := n.get(kindService, "good")
	if err := unstructured.SetNestedField(o.Object, "Manual", "spec", "crossplane", "compositionUpdatePolicy"); err != nil {
		n.Fatal(err)
	}
	o.SetManagedFields(nil)
	o.SetResourceVersion("") // Crossplane may write it at the same time.
	if _, err := n.c.Apply(n.Context(), o, "platform"); err != nil {
		n.Errorf("the platform team cannot choose a revision: %v", err)
	}
	// And the tenant goes on writing the rest.
	if err := n.tryToWrite(services, "good", `{`+role+`}`); err != nil {
		n.Errorf("the tenant cannot write what it may: %v", err)
	}
}
