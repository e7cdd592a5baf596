package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// fullCluster has every field of a cluster.
const fullCluster = `
metadata: {name: us-east}
spec:
  providerConfigRef: {name: us-east, apiGroup: kubernetes.crossplane.io}
  clusterUID: 0d5b5c33-8ab0-4bd1-8c0a-6a1c6b9b1f3e
  sharing: ByPool
  pools:
  - {name: typed-in, nodeCount: 2, nodeSelector: {a: b}, allocatable: {nvidia.com/gpu: 8, cpu: 500m, memory: 2Ti}, taints: [{key: dedicated, value: team-b, effect: NoSchedule}, {key: example.com/x, effect: NoExecute}]}
  - {name: observed, nodeSelector: {c: d}}
  admission: Ledger
  quotas:
  - {namespaces: [team-a, "research-*"], priority: 10, resources: [{name: nvidia.com/gpu, nominalQuota: 16, borrowingLimit: 8}, {name: cpu, nominalQuota: 100}]}
  - {namespaces: ["*"]}
  stopPolicy: Drain
  stopMessage: the rack is moved
  entrypoint: {gatewayRef: {name: gw, namespace: gateways}, port: 8080}
  allowedNamespaces: {from: Names, names: [team-a, team-b]}
`

// inCluster returns a cluster with the required fields and these fields of the spec.
func inCluster(fields string) string {
	return `{metadata: {name: c}, spec: {providerConfigRef: {name: c}, pools: [{name: p, nodeSelector: {a: b}}], ` + fields + `}}`
}

// inKueue returns a cluster whose admission is Kueue's, with these fields of the spec.
func inKueue(fields string) string {
	return `{metadata: {name: c}, spec: {providerConfigRef: {name: c}, admission: Kueue, ` + fields + `}}`
}

// inPool returns a cluster with one pool of these fields.
func inPool(fields string) string {
	return `{metadata: {name: c}, spec: {providerConfigRef: {name: c}, pools: [{` + fields + `}]}}`
}

// numbered lists so many fields, with the number of each for %d.
func numbered(n int, field string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(field, i)
	}
	return strings.Join(all, ", ")
}

func clusterSchema(t *testing.T) *schematest.Schema {
	t.Helper()
	s, err := schematest.New(schematest.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decodeCluster(t *testing.T, doc []byte) (*v1alpha1.InferenceCluster, field.ErrorList) {
	t.Helper()
	obj := map[string]any{}
	if err := yaml.Unmarshal(doc, &obj); err != nil {
		t.Fatal(err)
	}
	x := struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec v1alpha1.InferenceClusterSpec `json:"spec"`
	}{}
	errs := kube.DecodeMap(obj, nil, &x)
	return &v1alpha1.InferenceCluster{ObjectMeta: metav1.ObjectMeta{Name: x.Metadata.Name}, Spec: x.Spec}, errs
}

func clusterProblems(t *testing.T, doc []byte) []string {
	t.Helper()
	c, errs := decodeCluster(t, doc)
	v1alpha1.DefaultCluster(&c.Spec)
	var all []string
	for _, err := range append(errs, v1alpha1.ValidateCluster(c)...) {
		all = append(all, err.Error())
	}
	return all
}

func TestValidateCluster(t *testing.T) {
	const noResource = "must be a resource that nodes have: cpu, memory, ephemeral-storage, pods, hugepages-{size}, or a device with its domain, such as nvidia.com/gpu"
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths of the errors of an API server.
		schema []string
		want   []string
	}{
		"Full":  {reason: "A cluster may have every one of its fields.", doc: fullCluster},
		"Least": {reason: "A provider configuration and a pool are all that a cluster needs.", doc: inCluster(``)},
		"Nothing": {
			reason: "All missing fields are reported at once.",
			doc:    `{metadata: {name: c}, spec: {}}`,
			// An API server evaluates rules only where no required field is missing.
			schema: []string{"spec.providerConfigRef"},
			want: []string{
				`spec.providerConfigRef.name: Required value: must be the name of a provider-kubernetes configuration`,
				`spec.pools: Required value: must have at least one pool of nodes`,
			},
		},
		"NoPools": {
			reason: "The ledger counts the nodes of pools.",
			doc:    `{metadata: {name: c}, spec: {providerConfigRef: {name: c}}}`,
			schema: []string{"spec.pools"},
			want:   []string{`spec.pools: Required value: must have at least one pool of nodes`},
		},
		"Name": {
			reason: "The name becomes the value of a label, so it contains no dot.",
			doc:    `{metadata: {name: us.east}, spec: {providerConfigRef: {name: c}, pools: [{name: p, nodeSelector: {a: b}}]}}`,
			schema: []string{"metadata.name"},
			want:   []string{`metadata.name: Invalid value: "us.east": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"NodesAlone": {
			reason: "A number of nodes needs the resources of each node.",
			doc:    inPool(`name: p, nodeCount: 2`),
			schema: []string{"spec.pools[0]"},
			want:   []string{`spec.pools[0].allocatable: Required value: must list the resources of each node if nodeCount is set; without both fields, the nodes are observed`},
		},
		"AllocatableAlone": {
			reason: "The resources of a node need the number of nodes.",
			doc:    inPool(`name: p, nodeSelector: {a: b}, allocatable: {cpu: 1}`),
			schema: []string{"spec.pools[0]"},
			want:   []string{`spec.pools[0].nodeCount: Required value: must be the number of nodes if allocatable is set; without both fields, the nodes are observed`},
		},
		"NoSelector": {
			reason: "Without a nodeSelector, the nodes of an observed pool are not known.",
			doc:    inPool(`name: p`),
			schema: []string{"spec.pools[0].nodeSelector"},
			want:   []string{`spec.pools[0].nodeSelector: Required value: must have the labels of the nodes to observe, unless nodeCount and allocatable are set`},
		},
		"Pool": {
			reason: "Each value is looked at.",
			doc:    inPool(`name: P, nodeCount: 5001, allocatable: {cpu: -1}, nodeSelector: {a b: c d}}, {name: P, nodeCount: -1, allocatable: {}`),
			schema: []string{"spec.pools[0].name", "spec.pools[0].nodeCount", "spec.pools[1]", "spec.pools[1].name", "spec.pools[1].nodeCount"},
			want: []string{
				`spec.pools[0].name: Invalid value: "P": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.pools[0].nodeCount: Invalid value: 5001: must be from 0 to 5000`,
				`spec.pools[0].allocatable[cpu]: Invalid value: "-1": must not be negative`,
				`spec.pools[0].nodeSelector[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`spec.pools[0].nodeSelector[a b]: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`spec.pools[1].name: Invalid value: "P": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.pools[1].nodeCount: Invalid value: -1: must be from 0 to 5000`,
				`spec.pools[1].name: Duplicate value: "P": must differ from spec.pools[0].name, which is the same`,
			},
		},
		"ResourcesOfNodes": {
			reason: "A node has resources of Kubernetes, and devices with the domain of their vendor.",
			doc:    inPool(`name: p, nodeCount: 2, allocatable: {cpu: 1, memory: 1, ephemeral-storage: 1, pods: 1, hugepages-2Mi: 1, attachable-volumes-aws-ebs: 1, nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 1, kubernetes.io/batch-cpu: 1, gpu/gpu: 1, requestsof.example.com/gpu: 1}`),
		},
		"NoResourcesOfNodes": {
			reason: "No node has a resource of such a name, so no pod would fit.",
			doc:    inPool(`name: p, nodeCount: 2, allocatable: {gpu: 8, Memory: -1, requests.nvidia.com/gpu: 8, limits.nvidia.com/gpu: 8, services: 1}`),
			schema: []string{"spec.pools[0].allocatable"},
			want: []string{
				`spec.pools[0].allocatable[Memory]: Invalid value: "Memory": ` + noResource,
				`spec.pools[0].allocatable[gpu]: Invalid value: "gpu": ` + noResource,
				`spec.pools[0].allocatable[limits.nvidia.com/gpu]: Invalid value: "limits.nvidia.com/gpu": ` + noResource,
				`spec.pools[0].allocatable[requests.nvidia.com/gpu]: Invalid value: "requests.nvidia.com/gpu": ` + noResource,
				`spec.pools[0].allocatable[services]: Invalid value: "services": ` + noResource,
				`spec.pools[0].allocatable[Memory]: Invalid value: "-1": must not be negative`,
			},
		},
		"ManyResources": {
			reason: "No node has so many resources. What else is wrong with the pool is told as well.",
			doc:    inPool(`name: p, nodeCount: 2, taints: [{key: a, effect: Never}], allocatable: {` + numbered(65, "example.com/r%d: 1") + `}`),
			schema: []string{"spec.pools[0].allocatable", "spec.pools[0].taints[0].effect"},
			want: []string{
				`spec.pools[0].allocatable: Too many: 65: must have at most 64 items`,
				`spec.pools[0].taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "NoExecute"`,
			},
		},
		"TaintsOfObserved": {
			reason: "Nodes that are observed have their own taints.",
			doc:    inPool(`name: p, nodeSelector: {a: b}, taints: [{key: dedicated, effect: NoSchedule}]`),
			schema: []string{"spec.pools[0].taints"},
			want:   []string{`spec.pools[0].taints: Forbidden: must be left out without nodeCount: those of observed nodes are read`},
		},
		"Taints": {
			reason: "Each taint is one that a node may have, and that keeps pods away.",
			doc:    inPool(`name: p, nodeCount: 2, allocatable: {cpu: 1}, taints: [{key: a b, value: c d, effect: NoSchedul}, {key: k, effect: PreferNoSchedule}, {key: "", effect: ""}]`),
			schema: []string{"spec.pools[0].taints[0].effect", "spec.pools[0].taints[1].effect", "spec.pools[0].taints[2].effect", "spec.pools[0].taints[2].key"},
			want: []string{
				`spec.pools[0].taints[0].key: Invalid value: "a b": must be the key of a taint, such as example.com/dedicated`,
				`spec.pools[0].taints[0].value: Invalid value: "c d": must be the value of a taint: at most 63 letters, digits, '-', '_' and '.'`,
				`spec.pools[0].taints[0].effect: Unsupported value: "NoSchedul": supported values: "NoSchedule", "NoExecute" (did you mean "NoSchedule"?)`,
				`spec.pools[0].taints[1].effect: Unsupported value: "PreferNoSchedule": supported values: "NoSchedule", "NoExecute"`,
				`spec.pools[0].taints[2].key: Required value: must be the key of a taint`,
				`spec.pools[0].taints[2].effect: Required value: must be NoSchedule or NoExecute`,
			},
		},
		"Stop": {
			reason: "The stop policy has four values, and its message has a limit.",
			doc:    inCluster(`clusterUID: ` + strings.Repeat("u", 64) + `, stopPolicy: Dead, stopMessage: ` + strings.Repeat("x", 254)),
			schema: []string{"spec.clusterUID", "spec.stopMessage", "spec.stopPolicy"},
			want: []string{
				`spec.clusterUID: Too long: may not be more than 63 characters`,
				`spec.stopPolicy: Unsupported value: "Dead": supported values: "None", "Hold", "Drain", "Abandon"`,
				`spec.stopMessage: Too long: may not be more than 253 characters`,
			},
		},
		"Admission": {
			reason: "The admission has two values.",
			doc:    inCluster(`admission: Volcano`),
			schema: []string{"spec.admission"},
			want:   []string{`spec.admission: Unsupported value: "Volcano": supported values: "Ledger", "Kueue"`},
		},
		"KueueInLedger": {
			reason: "The ledger has no queue of Kueue.",
			doc:    inCluster(`kueue: {}`),
			schema: []string{"spec.kueue"},
			want:   []string{`spec.kueue: Forbidden: must be left out unless admission is Kueue`},
		},
		"Kueue": {
			reason: "Where Kueue admits, no pool is needed.",
			doc:    inKueue(``),
		},
		"KueueQueue": {
			reason: "The name of the LocalQueue becomes the value of a label.",
			doc:    inKueue(`kueue: {localQueueName: Team.A}`),
			schema: []string{"spec.kueue.localQueueName"},
			want:   []string{`spec.kueue.localQueueName: Invalid value: "Team.A": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"VolcanoQueue": {
			reason: "A queue is an object of the cluster.",
			doc:    inCluster(`volcano: {queueName: Team A}`),
			schema: []string{"spec.volcano.queueName"},
			want:   []string{`spec.volcano.queueName: Invalid value: "Team A": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`},
		},
		"VolcanoInKueue": {
			reason: "Where Kueue admits, there are no gangs.",
			doc:    inKueue(`volcano: {queueName: team-a}`),
			schema: []string{"spec.volcano"},
			want:   []string{`spec.volcano: Forbidden: must be left out if admission is Kueue, because gangs are refused then`},
		},
		"KueuePools": {
			reason: "Where Kueue admits, no pool is counted, so none is taken.",
			doc:    inCluster(`admission: Kueue`),
			schema: []string{"spec.pools"},
			want:   []string{`spec.pools: Forbidden: must be left out if admission is Kueue: the quotas of the cluster's ClusterQueues count instead`},
		},
		"KueueQuotas": {
			reason: "Where Kueue admits, its quotas count.",
			doc:    inKueue(`quotas: [{namespaces: [a]}]`),
			schema: []string{"spec.quotas"},
			want:   []string{`spec.quotas: Forbidden: must be left out if admission is Kueue: the quotas of the cluster's ClusterQueues count instead`},
		},
		"QuotaNamespaces": {
			reason: "A quota is for namespaces, by names or patterns.",
			doc:    inCluster(`quotas: [{namespaces: []}, {namespaces: ["Team-*", "a.b", "[a]", "team-*"]}]`),
			schema: []string{"spec.quotas[0].namespaces", "spec.quotas[1].namespaces[0]", "spec.quotas[1].namespaces[1]", "spec.quotas[1].namespaces[2]"},
			want: []string{
				`spec.quotas[0].namespaces: Required value: must list namespaces, or patterns such as research-*`,
				`spec.quotas[1].namespaces[0]: Invalid value: "Team-*": must be a name of lower case letters, digits and '-', in which '*' stands for any text`,
				`spec.quotas[1].namespaces[1]: Invalid value: "a.b": must be a name of lower case letters, digits and '-', in which '*' stands for any text`,
				`spec.quotas[1].namespaces[2]: Invalid value: "[a]": must be a name of lower case letters, digits and '-', in which '*' stands for any text`,
			},
		},
		"QuotaOfRequests": {
			reason: "No pod requests a resource of such a name, so a quota named as in a ResourceQuota, or without a domain, would limit nothing.",
			doc:    inCluster(`quotas: [{namespaces: [a], resources: [{name: requests.nvidia.com/gpu, nominalQuota: 1}, {name: limits.cpu, nominalQuota: 1}, {name: requestsof.example.com/gpu, nominalQuota: 1}, {name: gpu, nominalQuota: 1}]}]`),
			schema: []string{"spec.quotas[0].resources[0].name", "spec.quotas[0].resources[1].name", "spec.quotas[0].resources[3].name"},
			want: []string{
				`spec.quotas[0].resources[0].name: Invalid value: "requests.nvidia.com/gpu": ` + noResource,
				`spec.quotas[0].resources[1].name: Invalid value: "limits.cpu": ` + noResource,
				`spec.quotas[0].resources[3].name: Invalid value: "gpu": ` + noResource,
			},
		},
		"QuotaResources": {
			reason: "Each resource has one quota. The schema does not check the sign of quantities.",
			doc:    inCluster(`quotas: [{namespaces: [a], resources: [{name: cpu, nominalQuota: -1, borrowingLimit: "-1"}, {name: cpu, nominalQuota: 1}, {name: "", nominalQuota: 1}, {name: pods}, {name: a/b/c, nominalQuota: 1}]}]`),
			schema: []string{"spec.quotas[0].resources[1]", "spec.quotas[0].resources[2].name", "spec.quotas[0].resources[3].nominalQuota"},
			want: []string{
				`spec.quotas[0].resources[0].nominalQuota: Invalid value: "-1": must not be negative`,
				`spec.quotas[0].resources[0].borrowingLimit: Invalid value: "-1": must not be negative`,
				`spec.quotas[0].resources[1].name: Duplicate value: "cpu": must differ from spec.quotas[0].resources[0].name, which is the same`,
				`spec.quotas[0].resources[2].name: Required value: must be the name of a resource, such as nvidia.com/gpu`,
				`spec.quotas[0].resources[3].nominalQuota: Required value: must be an amount, which may be 0`,
				`spec.quotas[0].resources[4].name: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
			},
		},
		"Sharing": {
			reason: "A cluster is shared by its pools, or not at all.",
			doc:    inCluster(`sharing: Shared`),
			schema: []string{"spec.sharing"},
			want:   []string{`spec.sharing: Unsupported value: "Shared": supported values: "Exclusive", "ByPool"`},
		},
		"EntrypointAddress": {
			reason: "An address has the type IPAddress and port 80 by default.",
			doc:    inCluster(`entrypoint: {address: {value: 192.0.2.1}}`),
		},
		"EntrypointTwice": {
			reason: "An entrypoint has either an address or a Gateway.",
			doc:    inCluster(`entrypoint: {address: {value: 192.0.2.1}, gatewayRef: {name: gw, namespace: gateways}}`),
			schema: []string{"spec.entrypoint"},
			want:   []string{`spec.entrypoint.address: Forbidden: must be left out if gatewayRef is set: the address of that Gateway is observed`},
		},
		"EntrypointNone": {
			reason: "An entrypoint needs an address or a Gateway.",
			doc:    inCluster(`entrypoint: {}`),
			schema: []string{"spec.entrypoint"},
			want:   []string{`spec.entrypoint.address: Required value: must be set, unless gatewayRef names a Gateway whose address is observed`},
		},
		"EntrypointHalf": {
			reason: "The reference to a Gateway needs a namespace.",
			doc:    inCluster(`entrypoint: {gatewayRef: {name: gw}, port: 65536}`),
			schema: []string{"spec.entrypoint.gatewayRef.namespace", "spec.entrypoint.port"},
			want: []string{
				`spec.entrypoint.port: Invalid value: 65536: must be from 1 to 65535`,
				`spec.entrypoint.gatewayRef.namespace: Required value: must be the namespace of the Gateway`,
			},
		},
		"EntrypointPort": {
			reason: "Port 0 is refused, and not taken for an absent port.",
			doc:    inCluster(`entrypoint: {address: {value: 192.0.2.1}, port: 0}`),
			schema: []string{"spec.entrypoint.port"},
			want:   []string{`spec.entrypoint.port: Invalid value: 0: must be from 1 to 65535`},
		},
		"EntrypointByName": {
			reason: "The address may be a DNS name.",
			doc:    inCluster(`entrypoint: {address: {type: Hostname, value: a1b2-3.elb.us-east-1.amazonaws.com}}`),
		},
		"EntrypointType": {
			reason: "Other types of addresses are not known.",
			doc:    inCluster(`entrypoint: {address: {type: NamedAddress, value: 192.0.2.1}}`),
			schema: []string{"spec.entrypoint.address.type"},
			want:   []string{`spec.entrypoint.address.type: Unsupported value: "NamedAddress": supported values: "Hostname", "IPAddress"`},
		},
		"EntrypointNameIsAddress": {
			reason: "An IP address is no DNS name.",
			doc:    inCluster(`entrypoint: {address: {type: Hostname, value: 192.0.2.1}}`),
			want:   []string{`spec.entrypoint.address.value: Invalid value: "192.0.2.1": must be a DNS name in lower case, such as gw.example.com`},
		},
		"EntrypointHostname": {
			reason: "An EndpointSlice has IP addresses and no host names. The schema cannot tell them apart.",
			doc:    inCluster(`entrypoint: {address: {value: gw.example.com}}`),
			want:   []string{`spec.entrypoint.address.value: Invalid value: "gw.example.com": must be an IP address, or set type to Hostname`},
		},
		"EntrypointLocalName": {
			reason: "With the type Hostname it would be refused too.",
			doc:    inCluster(`entrypoint: {address: {value: gateway.default.svc}}`),
			want:   []string{`spec.entrypoint.address.value: Invalid value: "gateway.default.svc": must be an IP address`},
		},
		"EntrypointEmpty": {
			reason: "An empty address is refused.",
			doc:    inCluster(`entrypoint: {address: {value: ""}}`),
			schema: []string{"spec.entrypoint.address.value"},
			want:   []string{`spec.entrypoint.address.value: Required value: must be an IP address, or a DNS name with the type Hostname`},
		},
		"EntrypointLoopback": {
			reason: "An EndpointSlice cannot have a loopback address.",
			doc:    inCluster(`entrypoint: {address: {value: 127.0.0.1}}`),
			want:   []string{`spec.entrypoint.address.value: Invalid value: "127.0.0.1": must be an IP address that other machines can reach: not unspecified, loopback or link-local`},
		},
		"EntrypointZone": {
			reason: "A zone has a meaning on one machine only.",
			doc:    inCluster(`entrypoint: {address: {value: "2001:db8::1%eth0"}}`),
			want:   []string{`spec.entrypoint.address.value: Invalid value: "2001:db8::1%eth0": must be an IP address`},
		},
		"AllowedAll": {
			reason: "from may be left out: it defaults to All.",
			doc:    inCluster(`allowedNamespaces: {}`),
		},
		"AllowedSelector": {
			reason: "A selector has labels and expressions.",
			doc:    inCluster(`allowedNamespaces: {from: Selector, selector: {matchLabels: {tier: gold}, matchExpressions: [{key: a, operator: Exists}]}}`),
		},
		"AllowedNothing": {
			reason: "from: Names needs names.",
			doc:    inCluster(`allowedNamespaces: {from: Names}`),
			schema: []string{"spec.allowedNamespaces.names"},
			want:   []string{`spec.allowedNamespaces.names: Required value: must list the namespaces whose services may use the cluster`},
		},
		"AllowedNoSelector": {
			reason: "from: Selector needs a selector.",
			doc:    inCluster(`allowedNamespaces: {from: Selector}`),
			schema: []string{"spec.allowedNamespaces.selector"},
			want:   []string{`spec.allowedNamespaces.selector: Required value: must select the namespaces whose services may use the cluster`},
		},
		"AllowedWithoutFrom": {
			reason: "Without from, names and a selector would have no effect, and every namespace would be allowed.",
			doc:    inCluster(`allowedNamespaces: {names: [team-a], selector: {}}`),
			schema: []string{"spec.allowedNamespaces.names", "spec.allowedNamespaces.selector"},
			want: []string{
				`spec.allowedNamespaces.names: Forbidden: must be left out unless from is Names`,
				`spec.allowedNamespaces.selector: Forbidden: must be left out unless from is Selector`,
			},
		},
		"AllowedWrong": {
			reason: "Each value is looked at.",
			doc:    inCluster(`allowedNamespaces: {from: Names, names: [Team, a, a]}`),
			schema: []string{"spec.allowedNamespaces.names[0]", "spec.allowedNamespaces.names[2]"},
			want: []string{
				`spec.allowedNamespaces.names[0]: Invalid value: "Team": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.allowedNamespaces.names[2]: Duplicate value: "a": must differ from spec.allowedNamespaces.names[1], which is the same`,
			},
		},
		"AllowedFrom": {
			reason: "The Gateway API also has the value Same. It has no meaning for a cluster, which is in no namespace.",
			doc:    inCluster(`allowedNamespaces: {from: Same}`),
			schema: []string{"spec.allowedNamespaces.from"},
			want:   []string{`spec.allowedNamespaces.from: Unsupported value: "Same": supported values: "All", "Names", "Selector"`},
		},
		"AllowedOperator": {
			reason: "A selector with an unknown operator would allow no namespace. The schema does not check operators.",
			doc:    inCluster(`allowedNamespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: Is}]}}`),
			want:   []string{`spec.allowedNamespaces.selector.matchExpressions[0].operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist" (did you mean "In"?)`},
		},
	}
	s := clusterSchema(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clusterProblems(t, []byte(tc.doc))); diff != "" {
				t.Errorf("%s\nfunction: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.schema, paths(s.Validate([]byte(tc.doc)))); diff != "" {
				t.Errorf("%s\nschema: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOneTextForResources shows that the schema and the function say the same of a resource that no node has.
func TestOneTextForResources(t *testing.T) {
	s := clusterSchema(t)
	for name, doc := range map[string]string{
		"Pool":  inPool(`name: p, nodeCount: 2, allocatable: {gpu: 8}`),
		"Quota": inCluster(`quotas: [{namespaces: [a], resources: [{name: gpu, nominalQuota: 1}]}]`),
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := decodeCluster(t, []byte(doc))
			var want, got []string
			for _, err := range v1alpha1.ValidateCluster(c) {
				if err.Type == field.ErrorTypeInvalid {
					want = append(want, err.Detail)
				}
			}
			for _, err := range s.Validate([]byte(doc)) {
				got = append(got, err.Detail)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-function +schema:\n%s", diff)
			}
		})
	}
}

// TestClusterUpdate shows which fields of an existing cluster cannot change. Only the
// schema has rules for that: the function does not know the old spec.
func TestClusterUpdate(t *testing.T) {
	with := func(config string) string {
		return `{metadata: {name: c}, spec: {providerConfigRef: {` + config + `}, pools: [{name: p, nodeSelector: {a: b}}]}}`
	}
	named := func(resource, fields string) string {
		return `{metadata: {name: c}, spec: {providerConfigRef: {name: c}, pools: [{name: p, nodeCount: 1, allocatable: {` + resource + `: 1}}], quotas: [{namespaces: [a], resources: [{name: ` + resource + `, nominalQuota: 1}]}], ` + fields + `}}`
	}
	cases := map[string]struct {
		reason   string
		old, new string
		want     []string
	}{
		"Same":         {reason: "Other fields can change.", old: with("name: c"), new: inCluster("stopPolicy: Hold")},
		"GroupWritten": {reason: "Writing out the default is no change.", old: with("name: c"), new: with("name: c, apiGroup: kubernetes.m.crossplane.io")},
		"Name":         {reason: "Reservations in one cluster would count in another.", old: with("name: c"), new: with("name: d"), want: []string{"spec.providerConfigRef"}},
		"Group":        {reason: "A configuration of the other API is a different configuration.", old: with("name: c"), new: with("name: c, apiGroup: kubernetes.crossplane.io"), want: []string{"spec.providerConfigRef"}},
		"Ledger":       {reason: "Writing out the default is no change.", old: with("name: c"), new: inCluster("admission: Ledger")},
		"Kueue":        {reason: "What runs in the cluster is not counted, and Kueue does not take it over.", old: with("name: c"), new: inKueue(""), want: []string{"spec.admission"}},
		"NoKueue":      {reason: "Kueue does not give up what it admitted.", old: inKueue(""), new: with("name: c"), want: []string{"spec.admission"}},
		"SameQueue":    {reason: "Writing out the default is no change.", old: inKueue(""), new: inKueue("kueue: {localQueueName: default}")},
		"StoredNames":  {reason: "What was stored before the rule stays as it is.", old: named("gpu", ""), new: named("gpu", "stopPolicy: Hold")},
		"Names":        {reason: "What changes has to keep the rule.", old: named("gpu", ""), new: named("cards", ""), want: []string{"spec.pools[0].allocatable", "spec.quotas[0].resources[0].name"}},
		"Queue":        {reason: "Kueue does not let running replicas change their queue.", old: inKueue("kueue: {}"), new: inKueue("kueue: {localQueueName: q}"), want: []string{"spec.kueue"}},
	}
	s := clusterSchema(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, paths(s.ValidateUpdate([]byte(tc.new), []byte(tc.old)))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDefaultCluster shows that the function sets the documented defaults, and that the
// schema sets none: a stored default looks like a user's choice.
func TestDefaultCluster(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		want   string
	}{
		"Least": {
			reason: "Objects that are absent stay absent.",
			doc:    inCluster(``),
			want:   inCluster(`sharing: Exclusive, stopPolicy: None, admission: Ledger`),
		},
		"Full": {
			reason: "Fields that are set keep their values.",
			doc:    fullCluster,
			want:   fullCluster,
		},
		"Queue": {
			reason: "A tenant's LocalQueue has a name by default.",
			doc:    inKueue(`kueue: {}`),
			want:   inKueue(`sharing: Exclusive, stopPolicy: None, kueue: {localQueueName: default}`),
		},
		"Nested": {
			reason: "Fields of objects that are present get their defaults.",
			doc:    inCluster(`entrypoint: {address: {value: "2001:db8::1"}}, allowedNamespaces: {}`),
			want:   inCluster(`sharing: Exclusive, stopPolicy: None, admission: Ledger, entrypoint: {address: {type: IPAddress, value: "2001:db8::1"}, port: 80}, allowedNamespaces: {from: All}`),
		},
	}
	s := clusterSchema(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, _ := decodeCluster(t, []byte(tc.want))
			if want.Spec.ProviderConfigRef.APIGroup == "" {
				want.Spec.ProviderConfigRef.APIGroup = v1alpha1.GroupNamespacedObjects
			}
			got, _ := decodeCluster(t, []byte(tc.doc))
			v1alpha1.DefaultCluster(&got.Spec)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("%s\nfunction: -want +got:\n%s", tc.reason, diff)
			}
			stored, err := s.Default([]byte(tc.doc))
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			given, _ := decodeCluster(t, []byte(tc.doc))
			kept, _ := decodeCluster(t, b)
			if diff := cmp.Diff(given.Spec, kept.Spec); diff != "" {
				t.Errorf("%s\nschema: -given +stored:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClusterLimitsAgree shows that the schema has the limits of the function.
func TestClusterLimitsAgree(t *testing.T) {
	spec := clusterSchema(t).CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	pool, quota := items(spec.Properties["pools"]), items(spec.Properties["quotas"])
	want := []int{v1alpha1.MaxPools, v1alpha1.MaxPoolNodes, v1alpha1.MaxSelectorLabels, v1alpha1.MaxStopMessage, v1alpha1.MaxClusterUID, v1alpha1.MaxClusterName, v1alpha1.MaxAllowedNamespaces,
		v1alpha1.MaxQuotas, v1alpha1.MaxQuotaNamespaces, v1alpha1.MaxQuotaResources, v1alpha1.MaxResourceName, v1alpha1.MaxTaints, v1alpha1.MaxAllocatable}
	got := []int{
		int(ptr.Deref(spec.Properties["pools"].MaxItems, 0)), int(ptr.Deref(pool.Properties["nodeCount"].Maximum, 0)), int(ptr.Deref(pool.Properties["nodeSelector"].MaxProperties, 0)),
		int(ptr.Deref(spec.Properties["stopMessage"].MaxLength, 0)), int(ptr.Deref(spec.Properties["clusterUID"].MaxLength, 0)), int(ptr.Deref(pool.Properties["name"].MaxLength, 0)),
		int(ptr.Deref(spec.Properties["allowedNamespaces"].Properties["names"].MaxItems, 0)),
		int(ptr.Deref(spec.Properties["quotas"].MaxItems, 0)), int(ptr.Deref(quota.Properties["namespaces"].MaxItems, 0)), int(ptr.Deref(quota.Properties["resources"].MaxItems, 0)),
		int(ptr.Deref(items(quota.Properties["resources"]).Properties["name"].MaxLength, 0)), int(ptr.Deref(pool.Properties["taints"].MaxItems, 0)),
		int(ptr.Deref(pool.Properties["allocatable"].MaxProperties, 0)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-function +schema:\n%s", diff)
	}
}

// TestValidateClusterAgrees damages clusters at random, and shows that the function refuses
// what an API server refuses. Quantities are left out: Kubernetes accepts fractions without
// quotes, and the schema does not.
func TestValidateClusterAgrees(t *testing.T) {
	s := clusterSchema(t)
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 1500 {
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte(fullCluster), &obj); err != nil {
			t.Fatal(err)
		}
		damage(random, obj["spec"].(map[string]any), damages())
		doc, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		errs := slices.DeleteFunc(s.Validate(doc), func(err *field.Error) bool {
			return leftToOthers(err) || strings.Contains(err.Error(), ".allocatable.")
		})
		if len(errs) == 0 {
			continue
		}
		refused++
		// An API server removes nulls before it validates.
		stored, err := s.Default(doc)
		if err != nil {
			t.Fatal(err)
		}
		if doc, err = json.Marshal(stored); err != nil {
			t.Fatal(err)
		}
		if clusterProblems(t, doc) == nil {
			t.Fatalf("only the schema refuses %s:\n%v", doc, errs.ToAggregate())
		}
	}
	if refused < 500 {
		t.Errorf("want at least 500 damaged clusters to be refused, got %d", refused)
	}
}

// TestClusterColumns shows the columns of kubectl get, and that the kind is cluster-scoped.
func TestClusterColumns(t *testing.T) {
	crd := clusterSchema(t).CRD
	if crd.Spec.Scope != "Cluster" {
		t.Errorf("want an InferenceCluster to be cluster-scoped, got %s", crd.Spec.Scope)
	}
	var got []string
	for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		got = append(got, c.Name)
	}
	want := []string{"REACHABLE", "SCHEDULABLE", "NODES", "DEVICES", "FREE", "SERVICES", "PENDING", "SUMMARY", "EXCLUSIVE", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAllows(t *testing.T) {
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	expression := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"free"}}}}
	byName := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-a"}}
	type want struct{ Allows, Reads bool }
	cases := map[string]struct {
		reason  string
		allowed *v1alpha1.AllowedNamespaces
		labels  map[string]string
		want    want
	}{
		"Unset":          {reason: "Without allowedNamespaces all namespaces are allowed.", want: want{Allows: true}},
		"Empty":          {reason: "Without from all namespaces are allowed.", allowed: &v1alpha1.AllowedNamespaces{}, want: want{Allows: true}},
		"Named":          {reason: "A listed name is allowed.", allowed: &v1alpha1.AllowedNamespaces{From: "Names", Names: []string{"team-b", "team-a"}}, want: want{Allows: true}},
		"NotNamed":       {reason: "A name that is not listed is not allowed.", allowed: &v1alpha1.AllowedNamespaces{From: "Names", Names: []string{"team-b"}}},
		"Selected":       {reason: "A namespace with the selected labels is allowed.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: gold}, labels: map[string]string{"tier": "gold"}, want: want{true, true}},
		"NotSelected":    {reason: "A namespace with other labels is not allowed.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: gold}, labels: map[string]string{"tier": "free"}, want: want{Reads: true}},
		"Expression":     {reason: "Expressions are evaluated like labels.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: expression}, want: want{true, true}},
		"SelectedByName": {reason: "The label with the name is known without reading the namespace.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: byName}, want: want{Allows: true}},
		"OtherName": {
			reason:  "The name counts, whatever the label with the name says.",
			allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-b"}}},
			labels:  map[string]string{"kubernetes.io/metadata.name": "team-b"},
		},
		"Everything":   {reason: "An empty selector matches every namespace, as in Kubernetes.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: &metav1.LabelSelector{}}, want: want{Allows: true}},
		"NoSelector":   {reason: "from: Selector without a selector allows no namespace.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector"}},
		"UnknownFrom":  {reason: "A value of a later version of the API allows no namespace.", allowed: &v1alpha1.AllowedNamespaces{From: "Same"}},
		"WrongOperand": {reason: "A selector with an unknown operator allows no namespace.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}, want: want{Reads: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{tc.allowed.Allows("team-a", tc.labels), tc.allowed.ReadsLabels()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnusableHostname proves that no entrypoint leads back into the control plane by its name.
func TestUnusableHostname(t *testing.T) {
	const syntax = "must be a DNS name in lower case, such as gw.example.com"
	const reach = "must be a DNS name that leads to the same address everywhere: no single label, and no name below localhost, local or svc"
	cases := map[string]string{
		"gw.example.com": "",
		"k8s-gw-0123456789.elb.us-east-1.amazonaws.com": "",
		"gw.svc.example.com":                            "",
		"gw.ec2.internal":                               "",
		"":                                              syntax,
		"GW.example.com":                                syntax,
		"gw.example.com.":                               syntax,
		"*.example.com":                                 syntax,
		"gw_1.example.com":                              syntax,
		"gw.example.com:80":                             syntax,
		"http://gw.example.com":                         syntax,
		"169.254.169.254":                               syntax,
		"127.1":                                         syntax,
		"0x7f.0x1":                                      syntax,
		"1.2.3.09":                                      syntax,
		"::1":                                           syntax,
		strings.Repeat("a.", 126) + "com":               syntax,
		"localhost":                                     reach,
		"gw.localhost":                                  reach,
		"kubernetes":                                    reach,
		"kubernetes.default.svc":                        reach,
		"kubernetes.default.svc.cluster.local":          reach,
		"kubernetes.default.svc.cluster.example":        reach,
		"printer.local":                                 reach,
	}
	for name, want := range cases {
		if diff := cmp.Diff(want, v1alpha1.UnusableHostname(name)); diff != "" {
			t.Errorf("%q: -want, +got:\n%s", name, diff)
		}
	}
}
