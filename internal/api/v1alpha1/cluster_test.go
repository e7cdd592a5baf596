package v1alpha1_test

import (
	"encoding/json"
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
  providerConfigRef: {name: us-east, kind: ProviderConfig}
  pools:
  - {name: typed-in, nodes: 2, nodeSelector: {a: b}, allocatable: {nvidia.com/gpu: 8, cpu: 500m, memory: 2Ti}}
  - {name: observed, nodeSelector: {c: d}}
  taints: [{effect: Drain, reason: moved}, {effect: Dead}]
  gateway: {name: gw, namespace: gateways, port: 8080}
  allowedNamespaces: {from: Names, names: [team-a, team-b]}
`

// inCluster puts fields into the spec of a cluster that is right without them.
func inCluster(fields string) string {
	return `{metadata: {name: c}, spec: {providerConfigRef: {name: c}, pools: [{name: p, nodeSelector: {a: b}}], ` + fields + `}}`
}

func inPool(fields string) string {
	return `{metadata: {name: c}, spec: {providerConfigRef: {name: c}, pools: [{` + fields + `}]}}`
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
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that an API server complains about.
		schema []string
		want   []string
	}{
		"Full":  {reason: "Everything can be set.", doc: fullCluster},
		"Least": {reason: "A configuration and a pool.", doc: inCluster(``)},
		"Nothing": {
			reason: "All that is missing is said at once.",
			doc:    `{metadata: {name: c}, spec: {}}`,
			schema: []string{"spec.pools", "spec.providerConfigRef"},
			want: []string{
				`spec.providerConfigRef.name: Required value: must be the name of a provider-kubernetes configuration`,
				`spec.pools: Required value: a cluster has at least one pool of nodes`,
			},
		},
		"Name": {
			reason: "The name becomes a label.",
			doc:    `{metadata: {name: us.east}, spec: {providerConfigRef: {name: c}, pools: [{name: p, nodeSelector: {a: b}}]}}`,
			schema: []string{"metadata.name"},
			want:   []string{`metadata.name: Invalid value: "us.east": must be lower case letters, digits and '-', with a letter or digit first and last`},
		},
		"NodesAlone": {
			reason: "Nodes without resources have no room.",
			doc:    inPool(`name: p, nodes: 2`),
			schema: []string{"spec.pools[0]"},
			want:   []string{`spec.pools[0].allocatable: Required value: say what each of the nodes has; without nodes and allocatable they are observed`},
		},
		"AllocatableAlone": {
			reason: "Resources of no nodes.",
			doc:    inPool(`name: p, nodeSelector: {a: b}, allocatable: {cpu: 1}`),
			schema: []string{"spec.pools[0]"},
			want:   []string{`spec.pools[0].nodes: Required value: say how many nodes have this; without nodes and allocatable they are observed`},
		},
		"NoSelector": {
			reason: "All nodes of a cluster are no pool.",
			doc:    inPool(`name: p`),
			schema: []string{"spec.pools[0].nodeSelector"},
			want:   []string{`spec.pools[0].nodeSelector: Required value: an observed pool needs the labels of its nodes; else give nodes and allocatable`},
		},
		"Pool": {
			reason: "Each value is looked at.",
			doc:    inPool(`name: P, nodes: 5001, allocatable: {cpu: -1}, nodeSelector: {a b: c d}}, {name: P, nodes: -1, allocatable: {}`),
			schema: []string{"spec.pools[0].name", "spec.pools[0].nodes", "spec.pools[1]", "spec.pools[1].name", "spec.pools[1].nodes"},
			want: []string{
				`spec.pools[0].name: Invalid value: "P": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.pools[0].nodes: Invalid value: 5001: must be from 0 to 5000`,
				`spec.pools[0].allocatable[cpu]: Invalid value: "-1": must not be negative`,
				`spec.pools[0].nodeSelector[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`spec.pools[0].nodeSelector[a b]: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`spec.pools[1].name: Invalid value: "P": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.pools[1].nodes: Invalid value: -1: must be from 0 to 5000`,
				`spec.pools[1].name: Duplicate value: "P"`,
			},
		},
		"Taints": {
			reason: "Each effect once, and of two.",
			doc:    inCluster(`taints: [{effect: NoSchedule}, {effect: Drain}, {effect: Drain}]`),
			schema: []string{"spec.taints", "spec.taints[0].effect", "spec.taints[2]"},
			want: []string{
				`spec.taints: Too many: 3: must have at most 2 items`,
				`spec.taints[0].effect: Unsupported value: "NoSchedule": supported values: "Drain", "Dead"`,
			},
		},
		"TaintTwice": {
			reason: "Which reason would count?",
			doc:    inCluster(`taints: [{effect: Drain}, {effect: Drain}]`),
			schema: []string{"spec.taints[1]"},
			want:   []string{`spec.taints[1].effect: Duplicate value: "Drain"`},
		},
		"GatewayTwice": {
			reason: "An address, or a Gateway to read it from.",
			doc:    inCluster(`gateway: {address: 192.0.2.1, name: gw, namespace: gateways}`),
			schema: []string{"spec.gateway"},
			want:   []string{`spec.gateway.address: Forbidden: give either address, or name and namespace of a Gateway whose address is observed`},
		},
		"GatewayNone": {
			reason: "A gateway without either.",
			doc:    inCluster(`gateway: {}`),
			schema: []string{"spec.gateway"},
			want:   []string{`spec.gateway.address: Required value: give an IP address, or name and namespace of a Gateway whose address is observed`},
		},
		"GatewayHalf": {
			reason: "A Gateway is in a namespace.",
			doc:    inCluster(`gateway: {name: gw, port: 65536}`),
			schema: []string{"spec.gateway", "spec.gateway.port"},
			want: []string{
				`spec.gateway.port: Invalid value: 65536: must be from 1 to 65535`,
				`spec.gateway.namespace: Required value: name and namespace of a Gateway come together`,
			},
		},
		"GatewayAddress": {
			reason: "EndpointSlices take addresses, and no names. The schema cannot say so.",
			doc:    inCluster(`gateway: {address: gw.example.com}`),
			want:   []string{`spec.gateway.address: Invalid value: "gw.example.com": must be an IP address`},
		},
		"GatewayLoopback": {
			reason: "No endpoint of a Service may be one of the machine's own.",
			doc:    inCluster(`gateway: {address: 127.0.0.1}`),
			want:   []string{`spec.gateway.address: Invalid value: "127.0.0.1": must be an IP address that other machines reach: none that is unspecified, loopback or link-local`},
		},
		"GatewayZone": {
			reason: "A zone is of one machine.",
			doc:    inCluster(`gateway: {address: "2001:db8::1%eth0"}`),
			want:   []string{`spec.gateway.address: Invalid value: "2001:db8::1%eth0": must be an IP address`},
		},
		"AllowedAll": {
			reason: "All is the default, and can be said.",
			doc:    inCluster(`allowedNamespaces: {}`),
		},
		"AllowedSelector": {
			reason: "Namespaces by their labels.",
			doc:    inCluster(`allowedNamespaces: {from: Selector, selector: {matchLabels: {tier: gold}, matchExpressions: [{key: a, operator: Exists}]}}`),
		},
		"AllowedNothing": {
			reason: "Names and Selector need what they are about.",
			doc:    inCluster(`allowedNamespaces: {from: Names}`),
			schema: []string{"spec.allowedNamespaces.names"},
			want:   []string{`spec.allowedNamespaces.names: Required value: name the namespaces whose services may use the cluster`},
		},
		"AllowedNoSelector": {
			reason: "As above.",
			doc:    inCluster(`allowedNamespaces: {from: Selector}`),
			schema: []string{"spec.allowedNamespaces.selector"},
			want:   []string{`spec.allowedNamespaces.selector: Required value: give the labels of the namespaces whose services may use the cluster`},
		},
		"AllowedWithoutFrom": {
			reason: "Names that were given, and would not be looked at, allow everybody.",
			doc:    inCluster(`allowedNamespaces: {names: [team-a], selector: {}}`),
			schema: []string{"spec.allowedNamespaces.names", "spec.allowedNamespaces.selector"},
			want: []string{
				`spec.allowedNamespaces.names: Forbidden: needs from: Names`,
				`spec.allowedNamespaces.selector: Forbidden: needs from: Selector`,
			},
		},
		"AllowedWrong": {
			reason: "Each value is looked at.",
			doc:    inCluster(`allowedNamespaces: {from: Names, names: [Team, a, a]}`),
			schema: []string{"spec.allowedNamespaces.names[0]", "spec.allowedNamespaces.names[2]"},
			want: []string{
				`spec.allowedNamespaces.names[0]: Invalid value: "Team": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.allowedNamespaces.names[2]: Duplicate value: "a"`,
			},
		},
		"AllowedFrom": {
			reason: "The word of the Gateway API for the own namespace means nothing here. The schema leaves the operator to the function.",
			doc:    inCluster(`allowedNamespaces: {from: Same}`),
			schema: []string{"spec.allowedNamespaces.from"},
			want:   []string{`spec.allowedNamespaces.from: Unsupported value: "Same": supported values: "All", "Names", "Selector"`},
		},
		"AllowedOperator": {
			reason: "A selector that cannot be evaluated would allow nobody.",
			doc:    inCluster(`allowedNamespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: Is}]}}`),
			want:   []string{`spec.allowedNamespaces.selector: Invalid value: "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorR...": "Is" is not a valid label selector operator`},
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

// The function and the API server have the same defaults.
func TestDefaultClusterAgrees(t *testing.T) {
	s := clusterSchema(t)
	for _, doc := range []string{fullCluster, inCluster(`gateway: {address: "2001:db8::1"}, allowedNamespaces: {}`)} {
		defaulted, err := s.Default([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(defaulted)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := decodeCluster(t, b)
		got, _ := decodeCluster(t, []byte(doc))
		v1alpha1.DefaultCluster(&got.Spec)
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
			t.Errorf("-schema +function:\n%s", diff)
		}
	}
}

// The limits of the schema are the function's.
func TestClusterLimitsAgree(t *testing.T) {
	spec := clusterSchema(t).CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	pool := items(spec.Properties["pools"])
	want := []int{v1alpha1.MaxPools, v1alpha1.MaxPoolNodes, v1alpha1.MaxSelectorLabels, v1alpha1.MaxTaints, v1alpha1.MaxName, v1alpha1.MaxClusterName, v1alpha1.MaxAllowedNamespaces}
	got := []int{
		int(ptr.Deref(spec.Properties["pools"].MaxItems, 0)), int(ptr.Deref(pool.Properties["nodes"].Maximum, 0)), int(ptr.Deref(pool.Properties["nodeSelector"].MaxProperties, 0)),
		int(ptr.Deref(spec.Properties["taints"].MaxItems, 0)), int(ptr.Deref(items(spec.Properties["taints"]).Properties["reason"].MaxLength, 0)), int(ptr.Deref(pool.Properties["name"].MaxLength, 0)),
		int(ptr.Deref(spec.Properties["allowedNamespaces"].Properties["names"].MaxItems, 0)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-function +schema:\n%s", diff)
	}
}

// What an API server refuses the function refuses too. Clusters are damaged at random. A
// quantity that is a fraction without quotes Kubernetes itself takes.
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
		// An API server drops nulls before anything else.
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

// What kubectl shows of a cluster, and that it is one of the whole control plane.
func TestClusterColumns(t *testing.T) {
	crd := clusterSchema(t).CRD
	if crd.Spec.Scope != "Cluster" {
		t.Errorf("an InferenceCluster is %s", crd.Spec.Scope)
	}
	var got []string
	for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		got = append(got, c.Name)
	}
	want := []string{"REACHABLE", "OPEN", "NODES", "FREE", "SERVICES", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"}
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
		"Unset":          {reason: "All by default.", want: want{Allows: true}},
		"Empty":          {reason: "All by default.", allowed: &v1alpha1.AllowedNamespaces{}, want: want{Allows: true}},
		"Named":          {reason: "By name.", allowed: &v1alpha1.AllowedNamespaces{From: "Names", Names: []string{"team-b", "team-a"}}, want: want{Allows: true}},
		"NotNamed":       {reason: "By name.", allowed: &v1alpha1.AllowedNamespaces{From: "Names", Names: []string{"team-b"}}},
		"Selected":       {reason: "By labels.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: gold}, labels: map[string]string{"tier": "gold"}, want: want{true, true}},
		"NotSelected":    {reason: "By labels.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: gold}, labels: map[string]string{"tier": "free"}, want: want{Reads: true}},
		"Expression":     {reason: "By labels.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: expression}, want: want{true, true}},
		"SelectedByName": {reason: "The name's label is known without reading the namespace.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: byName}, want: want{Allows: true}},
		"OtherName": {
			reason:  "A label that says otherwise is not believed.",
			allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-b"}}},
			labels:  map[string]string{"kubernetes.io/metadata.name": "team-b"},
		},
		"Everything":   {reason: "An empty selector matches everything, as everywhere.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: &metav1.LabelSelector{}}, want: want{Allows: true}},
		"NoSelector":   {reason: "What is not said allows nobody.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector"}},
		"UnknownFrom":  {reason: "A word of a later version allows nobody.", allowed: &v1alpha1.AllowedNamespaces{From: "Same"}},
		"WrongOperand": {reason: "A selector that cannot be evaluated allows nobody.", allowed: &v1alpha1.AllowedNamespaces{From: "Selector", Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}, want: want{Reads: true}},
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
