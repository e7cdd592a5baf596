package v1alpha1_test

import "testing"

func TestValidatePlacement(t *testing.T) {
	testValidate(t, map[string]validation{
		"Clusters": {
			reason: "Two entries may be two namespaces of one cluster.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: b, namespace: other, providerConfigRef: {name: c}}`),
		},
		"NoClusters": {
			reason: "A placement needs at least one cluster.",
			doc:    clusters(),
			schema: []string{`spec.placement.clusters`},
			want:   []string{`spec.placement.clusters: Required value: must list at least one cluster, unless clusterSelector is set; without placement, the service runs in the cluster of this object`},
		},
		"DuplicateCluster": {
			reason: "The names of clusters are unique in a placement.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: a, providerConfigRef: {name: d}}`),
			schema: []string{`spec.placement.clusters[1]`},
			want:   []string{`spec.placement.clusters[1].name: Duplicate value: "a": must differ from spec.placement.clusters[0].name, which is the same`},
		},
		"SameNamespace": {
			reason: "Two entries for one namespace of a cluster would write the same objects. Kind and namespace count with their defaults.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: b, namespace: default, providerConfigRef: {kind: ClusterProviderConfig, name: c}}`),
			want:   []string{`spec.placement.clusters[1]: Invalid value: "b": must be another cluster or namespace: spec.placement.clusters[0] has the same providerConfigRef and namespace`},
		},
		"NamespaceInTheFleet": {
			reason: "A tenant cannot choose the namespace in a cluster that tenants share.",
			doc:    clusters(`{name: a, inferenceClusterRef: {name: east}, namespace: kube-system}`),
			schema: []string{`spec.placement.clusters[0].namespace`},
			want:   []string{`spec.placement.clusters[0].namespace: Forbidden: must be left out in a cluster of the fleet, where the service runs in a namespace with its tenant's name`},
		},
		"NoClusterName": {
			reason: "A reference to an InferenceCluster needs a name.",
			doc:    clusters(`{name: a, inferenceClusterRef: {}}`),
			schema: []string{`spec.placement.clusters[0].inferenceClusterRef.name`},
			want:   []string{`spec.placement.clusters[0].inferenceClusterRef.name: Required value: must be the name of an InferenceCluster`},
		},
		"FailoverAfterSeconds": {
			reason: "The time until failover is at most a year.",
			doc:    service(`{roles: [` + worker + `], placement: {failoverAfterSeconds: 31536001, clusterSelector: {}}}`),
			schema: []string{`spec.placement.failoverAfterSeconds`},
			want:   []string{`spec.placement.failoverAfterSeconds: Invalid value: 31536001: must be from 0 to 31536000`},
		},
		"BadCluster": {
			reason: "Every field of a cluster is validated.",
			doc:    clusters(`{name: A, namespace: a.b, providerConfigRef: {kind: Secret, name: C}}`, `{providerConfigRef: {}}`),
			schema: []string{
				`spec.placement.clusters[0].name`,
				`spec.placement.clusters[0].namespace`,
				`spec.placement.clusters[0].providerConfigRef.kind`,
				`spec.placement.clusters[0].providerConfigRef.name`,
				`spec.placement.clusters[1].name`,
				`spec.placement.clusters[1].providerConfigRef.name`,
			},
			want: []string{
				`spec.placement.clusters[0].name: Invalid value: "A": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.placement.clusters[0].providerConfigRef.kind: Unsupported value: "Secret": supported values: "ClusterProviderConfig", "ProviderConfig"`,
				`spec.placement.clusters[0].providerConfigRef.name: Invalid value: "C": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`spec.placement.clusters[0].namespace: Invalid value: "a.b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.placement.clusters[1].name: Required value: must be a name that no other cluster of the placement has`,
				`spec.placement.clusters[1].providerConfigRef.name: Required value: must be the name of a provider-kubernetes configuration`,
			},
		},
	})
}
