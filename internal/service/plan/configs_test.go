package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

func TestCheckConfigs(t *testing.T) {
	const (
		notAllowed = "must be listed in allowedProviderConfigs of the Composition's input for namespace team-a; or name a cluster of the fleet with inferenceClusterRef"
		ofFleet    = "must not be the configuration of a cluster of the fleet, whose capacity is reserved: name the cluster with inferenceClusterRef instead"
		elsewhere  = "must be the service's own namespace team-a, or match namespaces of this entry of allowedProviderConfigs in the Composition's input"
	)
	at := field.NewPath("spec", "placement", "clusters").Index(0)
	config := func(kind, name, namespace string) v1alpha1.PlacementCluster {
		return v1alpha1.PlacementCluster{Name: "c", Namespace: namespace, ProviderConfigRef: &v1alpha1.ProviderConfigRef{Kind: kind, Name: name}}
	}
	allowed := func(kind, name string, namespaces ...string) inputv1alpha1.AllowedProviderConfig {
		return inputv1alpha1.AllowedProviderConfig{Kind: kind, Name: name, Namespaces: namespaces}
	}
	const cluster, namespaced = v1alpha1.KindClusterProviderConfig, v1alpha1.KindProviderConfig
	cases := map[string]struct {
		reason  string
		claimed bool
		allowed []inputv1alpha1.AllowedProviderConfig
		tenants []inputv1alpha1.Tenant
		entry   v1alpha1.PlacementCluster
		fleet   []*v1alpha1.InferenceCluster
		want    field.ErrorList
	}{
		"NoneByDefault": {
			reason: "A configuration reaches everything that its credentials do.",
			entry:  config(cluster, "gpu", ""),
			want:   field.ErrorList{field.Invalid(at.Child("providerConfigRef"), "gpu", notAllowed)},
		},
		"Allowed":      {reason: "The platform team allows it, and the namespace is the tenant's.", allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}, entry: config(cluster, "gpu", "")},
		"OwnNamespace": {reason: "The tenant's own namespace may be named.", allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}, entry: config(cluster, "gpu", "team-a")},
		"OthersNamespace": {
			reason:  "What runs in the namespace of another is in reach of its Secrets.",
			allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}, entry: config(cluster, "gpu", "team-b"),
			want: field.ErrorList{field.Invalid(at.Child("namespace"), "team-b", elsewhere)},
		},
		"SystemNamespace": {
			reason:  "A namespace of Kubernetes' own is another's as well.",
			allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu", "models-*")}, entry: config(cluster, "gpu", "kube-system"),
			want: field.ErrorList{field.Invalid(at.Child("namespace"), "kube-system", elsewhere)},
		},
		"AllowedNamespace": {reason: "By a pattern.", allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu", "models-*")}, entry: config(cluster, "gpu", "models-1")},
		"TwoEntries":       {reason: "Several entries for one configuration add up.", allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu"), allowed(cluster, "gpu", "models")}, entry: config(cluster, "gpu", "models")},
		"OtherEntry": {
			reason:  "A namespace is allowed with its configuration only.",
			allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu"), allowed(cluster, "other", "models")}, entry: config(cluster, "gpu", "models"),
			want: field.ErrorList{field.Invalid(at.Child("namespace"), "models", elsewhere)},
		},
		"OtherKind": {
			reason:  "A ProviderConfig is another configuration than a ClusterProviderConfig of its name.",
			allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}, entry: config(namespaced, "gpu", ""),
			want: field.ErrorList{field.Invalid(at.Child("providerConfigRef"), "gpu", notAllowed)},
		},
		"Claim":   {reason: "Objects of claims know one kind, which they do not say.", claimed: true, allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}, entry: config(namespaced, "gpu", "")},
		"Tenants": {reason: "A tenant has a list of its own.", tenants: []inputv1alpha1.Tenant{{Namespaces: []string{"team-*"}, Policy: inputv1alpha1.Policy{AllowedProviderConfigs: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}}}}, entry: config(cluster, "gpu", "")},
		"OtherTenants": {
			reason:  "The list of another tenant is not this one's.",
			tenants: []inputv1alpha1.Tenant{{Namespaces: []string{"team-b"}, Policy: inputv1alpha1.Policy{AllowedProviderConfigs: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "gpu")}}}},
			entry:   config(cluster, "gpu", ""),
			want:    field.ErrorList{field.Invalid(at.Child("providerConfigRef"), "gpu", notAllowed)},
		},
		"Fleet": {
			reason:  "Without the ledger, a service could use capacity that is reserved for others.",
			allowed: []inputv1alpha1.AllowedProviderConfig{allowed(cluster, "east-config")}, entry: config(cluster, "east-config", ""),
			fleet: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("west"), schedulingtest.Cluster("east")},
			want:  field.ErrorList{field.Invalid(at.Child("providerConfigRef"), "east-config", ofFleet)},
		},
		"FleetOtherKind": {
			reason:  "A cluster that serves claims too is reached by two configurations of one name.",
			allowed: []inputv1alpha1.AllowedProviderConfig{allowed(namespaced, "east-config")}, entry: config(namespaced, "east-config", ""),
			fleet: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")},
			want:  field.ErrorList{field.Invalid(at.Child("providerConfigRef"), "east-config", ofFleet)},
		},
		"FleetNotAllowed": {
			reason: "Whether the fleet uses a configuration is not told to those who may not use it.",
			entry:  config(cluster, "east-config", "team-b"),
			fleet:  []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")},
			want:   field.ErrorList{field.Invalid(at.Child("providerConfigRef"), "east-config", notAllowed)},
		},
		"InferenceCluster": {reason: "A cluster of the fleet knows its own configuration.", entry: v1alpha1.PlacementCluster{Name: "c", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, fleet: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("east")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := defaultInput()
			in.AllowedProviderConfigs, in.Tenants = tc.allowed, tc.tenants
			w := schedulingtest.Snapshot(tc.fleet...)
			s := naming.Identity{Name: "svc", Namespace: "team-a", Claimed: tc.claimed}
			got := newTenantPolicy(s, in).checkConfigs(s, &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{tc.entry}}, &w)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
