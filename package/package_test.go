package packages

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	metav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	pkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// organization is what all packages are below.
const organization = "ghcr.io/fusioninfer/"

// TestMetadata checks the metadata that marketplaces show and Crossplane reads.
func TestMetadata(t *testing.T) {
	icon := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(read(t, "icon.svg"))
	function := &metav1.Function{}
	strict(t, read(t, "crossplane.yaml"), function)
	xr, claim := &metav1.Configuration{}, &metav1.Configuration{}
	strict(t, read(t, "xr", "crossplane.yaml"), xr)
	strict(t, read(t, "claim", "crossplane.yaml"), claim)

	if diff := cmp.Diff(xr.Spec, claim.Spec); diff != "" {
		t.Errorf("the Configurations depend on different things: -xr, +claim:\n%s", diff)
	}
	if diff := cmp.Diff(xr.Spec.Crossplane, function.Spec.Crossplane); diff != "" {
		t.Errorf("the packages need different versions of Crossplane: -xr, +function:\n%s", diff)
	}
	for _, annotations := range []map[string]string{function.Annotations, xr.Annotations, claim.Annotations} {
		if annotations["meta.crossplane.io/iconURI"] != icon {
			t.Errorf("%s: the icon is not icon.svg: want %s", annotations["friendly-name.meta.crossplane.io"], icon)
		}
		if annotations["meta.crossplane.io/license"] != "Apache-2.0" {
			t.Errorf("%s: has the license %q", annotations["friendly-name.meta.crossplane.io"], annotations["meta.crossplane.io/license"])
		}
	}
}

// TestReferences checks that the files refer to each other by the right names.
func TestReferences(t *testing.T) {
	xr, claim := &xpv2.CompositeResourceDefinition{}, &xpv1.CompositeResourceDefinition{}
	strict(t, read(t, "xr", "definition.yaml"), xr)
	strict(t, read(t, "claim", "definition.yaml"), claim)
	cluster := &xpv2.CompositeResourceDefinition{}
	strict(t, read(t, "xr", "cluster-definition.yaml"), cluster)
	for _, f := range []string{"cluster-definition.yaml", "cluster-composition.yaml"} {
		if diff := cmp.Diff(string(read(t, "xr", f)), string(read(t, "claim", f))); diff != "" {
			t.Errorf("%s differs: -xr, +claim:\n%s", f, diff)
		}
	}
	model, claimedModel := &xpv2.CompositeResourceDefinition{}, &xpv1.CompositeResourceDefinition{}
	strict(t, read(t, "xr", "model-definition.yaml"), model)
	strict(t, read(t, "claim", "model-definition.yaml"), claimedModel)
	cache, claimedCache := &xpv2.CompositeResourceDefinition{}, &xpv1.CompositeResourceDefinition{}
	strict(t, read(t, "xr", "cache-definition.yaml"), cache)
	strict(t, read(t, "claim", "cache-definition.yaml"), claimedCache)
	role := &xpv2.CompositeResourceDefinition{}
	strict(t, read(t, "xr", "role-definition.yaml"), role)
	for _, f := range []string{"role-definition.yaml", "role-composition.yaml"} {
		if diff := cmp.Diff(string(read(t, "xr", f)), string(read(t, "claim", f))); diff != "" {
			t.Errorf("%s differs: -xr, +claim:\n%s", f, diff)
		}
	}
	function, config := &pkgv1.Function{}, &pkgv1beta1.DeploymentRuntimeConfig{}
	install := documents(t, "install", "function.yaml")
	strict(t, []byte(install[0]), function)
	strict(t, []byte(install[1]), config)

	cases := map[string]struct {
		reason string
		dir    string
		// composition is the file with the Composition.
		composition string
		kind        string
		name        string
		file        string
	}{
		"XR": {
			reason:      "The namespaced XRD enforces the Composition of its package.",
			dir:         "xr",
			composition: "composition.yaml",
			kind:        xr.Spec.Names.Kind,
			name:        xr.Spec.EnforcedCompositionRef.Name,
			file:        "configuration.yaml",
		},
		"Claim": {
			reason:      "The XRD of claims enforces the Composition of its package.",
			dir:         "claim",
			composition: "composition.yaml",
			kind:        claim.Spec.Names.Kind,
			name:        claim.Spec.EnforcedCompositionRef.Name,
			file:        "configuration-claims.yaml",
		},
		"ClusterBesideXR": {
			reason:      "The XRD of clusters enforces the Composition of its package.",
			dir:         "xr",
			composition: "cluster-composition.yaml",
			kind:        cluster.Spec.Names.Kind,
			name:        cluster.Spec.EnforcedCompositionRef.Name,
			file:        "configuration.yaml",
		},
		"ClusterBesideClaim": {
			reason:      "The Configuration of claims has the same XRD of clusters.",
			dir:         "claim",
			composition: "cluster-composition.yaml",
			kind:        cluster.Spec.Names.Kind,
			name:        cluster.Spec.EnforcedCompositionRef.Name,
			file:        "configuration-claims.yaml",
		},
		"Model": {
			reason:      "The XRD of models enforces the Composition of its package.",
			dir:         "xr",
			composition: "model-composition.yaml",
			kind:        model.Spec.Names.Kind,
			name:        model.Spec.EnforcedCompositionRef.Name,
			file:        "configuration.yaml",
		},
		"ClaimedModel": {
			reason:      "The XRD of claims of models enforces the Composition of its package.",
			dir:         "claim",
			composition: "model-composition.yaml",
			kind:        claimedModel.Spec.Names.Kind,
			name:        claimedModel.Spec.EnforcedCompositionRef.Name,
			file:        "configuration-claims.yaml",
		},
		"Role": {
			reason:      "The XRD of InferenceRoles enforces the Composition of its package.",
			dir:         "xr",
			composition: "role-composition.yaml",
			kind:        role.Spec.Names.Kind,
			name:        role.Spec.EnforcedCompositionRef.Name,
			file:        "configuration.yaml",
		},
		"RoleBesideClaim": {
			reason:      "The Configuration of claims has the same XRD of InferenceRoles.",
			dir:         "claim",
			composition: "role-composition.yaml",
			kind:        role.Spec.Names.Kind,
			name:        role.Spec.EnforcedCompositionRef.Name,
			file:        "configuration-claims.yaml",
		},
		"Cache": {
			reason:      "The XRD of ModelCaches enforces the Composition of its package.",
			dir:         "xr",
			composition: "cache-composition.yaml",
			kind:        cache.Spec.Names.Kind,
			name:        cache.Spec.EnforcedCompositionRef.Name,
			file:        "configuration.yaml",
		},
		"ClaimedCache": {
			reason:      "The XRD of claims of ModelCaches enforces the Composition of its package.",
			dir:         "claim",
			composition: "cache-composition.yaml",
			kind:        claimedCache.Spec.Names.Kind,
			name:        claimedCache.Spec.EnforcedCompositionRef.Name,
			file:        "configuration-claims.yaml",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, meta, installed := &xpv1.Composition{}, &metav1.Configuration{}, &pkgv1.Configuration{}
			strict(t, read(t, tc.dir, tc.composition), c)
			strict(t, read(t, tc.dir, "crossplane.yaml"), meta)
			strict(t, read(t, "install", tc.file), installed)

			if c.Name != tc.name || c.Spec.CompositeTypeRef.Kind != tc.kind {
				t.Errorf("\n%s\nwant Composition %q for %s, got %q for %s", tc.reason, tc.name, tc.kind, c.Name, c.Spec.CompositeTypeRef.Kind)
			}
			dependency := meta.Spec.DependsOn[0]
			want := strings.ReplaceAll(strings.TrimPrefix(*dependency.Package, "ghcr.io/"), "/", "-")
			step := c.Spec.Pipeline[0]
			if len(c.Spec.Pipeline) != 1 || step.FunctionRef.Name != want || function.Name != want {
				t.Errorf("Crossplane calls the dependency %q, the Composition %q, and install/function.yaml %q", want, step.FunctionRef.Name, function.Name)
			}
			if repository(installed.Spec.Package) != organization+meta.Name || repository(function.Spec.Package) != *dependency.Package {
				t.Errorf("packages are installed as %s and %s, and are %s and %s",
					installed.Spec.Package, function.Spec.Package, organization+meta.Name, *dependency.Package)
			}
			if tag(installed.Spec.Package) != tag(function.Spec.Package) {
				t.Errorf("%s has another version than function.yaml: %s, %s", tc.file, tag(installed.Spec.Package), tag(function.Spec.Package))
			}
		})
	}
	if ref := function.Spec.RuntimeConfigReference; ref == nil || ref.Name != config.Name {
		t.Errorf("the function runs with %v, and the DeploymentRuntimeConfig is %q", ref, config.Name)
	}
	matched := config.Spec.DeploymentTemplate.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	if got := matched.LabelSelector.MatchLabels[pkgv1.LabelFunction]; got != function.Name {
		t.Errorf("the pods keep away from those of %q, and are those of %q", got, function.Name)
	}
	released := regexp.MustCompile(`(?m)^## (v\S+)`).FindStringSubmatch(string(read(t, "..", "CHANGELOG.md")))
	if len(released) > 0 && released[1] != tag(function.Spec.Package) {
		t.Errorf("install/ has version %s, and CHANGELOG.md's last is %s", tag(function.Spec.Package), released[1])
	}
}

// TestRuntime checks the container of the DeploymentRuntimeConfig: its security context and
// its memory limit.
func TestRuntime(t *testing.T) {
	config := &pkgv1beta1.DeploymentRuntimeConfig{}
	strict(t, []byte(documents(t, "install", "function.yaml")[1]), config)
	pod := config.Spec.DeploymentTemplate.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.Containers[0].Name != "package-runtime" {
		t.Fatalf("want the one container that Crossplane fills in, package-runtime, got %v", pod.Containers)
	}
	s := pod.Containers[0].SecurityContext
	if !*s.RunAsNonRoot || *s.RunAsUser == 0 || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container has too many privileges: %v", s)
	}
	if _, limited := pod.Containers[0].Resources.Limits[corev1.ResourceMemory]; !limited {
		t.Error("the container's memory has no limit")
	}
}

// TestCompositions checks the inputs that platform teams copy. They are valid, also with all
// comments removed. Together the fields in them are all fields, and show the defaults.
func TestCompositions(t *testing.T) {
	defaultInput := &inputv1alpha1.Input{}
	inputv1alpha1.Default(defaultInput)
	defaultInput.Policy = defaultInput.PolicyOf("any")
	// The packages set this field, so it does not show its default.
	defaultInput.MissingKinds = inputv1alpha1.MissingKindsSkip
	defaultClusterInput := &inputv1alpha1.ClusterInput{}
	inputv1alpha1.DefaultCluster(defaultClusterInput)
	defaultClusterInput.PodSecurity = defaultClusterInput.PodSecurityOf("any")
	defaultModelInput := &inputv1alpha1.ModelInput{MissingKinds: inputv1alpha1.MissingKindsSkip}
	lowest, highest := defaultModelInput.PrioritiesOf("any")
	defaultModelInput.Priorities = &inputv1alpha1.PriorityRange{Minimum: &lowest, Maximum: &highest}
	cases := map[string]struct {
		file, crd string
		check     func(*testing.T, []byte)
		defaults  any
	}{
		"Services": {file: "composition.yaml", crd: "fn.fusioninfer.io_inputs.yaml", check: checkInput, defaults: defaultInput},
		"Clusters": {file: "cluster-composition.yaml", crd: "fn.fusioninfer.io_clusterinputs.yaml", check: checkClusterInput, defaults: defaultClusterInput},
		"Models":   {file: "model-composition.yaml", crd: "fn.fusioninfer.io_modelinputs.yaml", check: checkModelInput, defaults: defaultModelInput},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &extv1.CustomResourceDefinition{}
			strict(t, read(t, "input", tc.crd), crd)
			schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
			for _, p := range []string{"apiVersion", "kind", "metadata"} {
				delete(schema, p)
			}
			inputs := map[string]string{}
			for _, dir := range []string{"xr", "claim"} {
				composition := read(t, dir, tc.file)
				inputs[dir] = string(input(t, composition))
				tc.check(t, input(t, composition))
				all := input(t, uncomment(composition))
				tc.check(t, all)
				shown := asMap(t, all)
				if diff := cmp.Diff(described(schema, nil), described(schema, shown)); diff != "" {
					t.Errorf("fields: -schema, +shown in %s:\n%s", dir, diff)
				}
				b, err := yaml.Marshal(tc.defaults)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(shown, overlaid(shown, asMap(t, b))); diff != "" {
					t.Errorf("defaults: -shown in %s, +function:\n%s", dir, diff)
				}
			}
			if diff := cmp.Diff(inputs["xr"], inputs["claim"]); diff != "" {
				t.Errorf("the two inputs differ: -xr, +claim:\n%s", diff)
			}
		})
	}
}

// TestCacheCompositions checks the Inputs of ModelCaches, of which only some fields matter: they are valid, show
// the defaults, and are the same in both packages.
func TestCacheCompositions(t *testing.T) {
	defaults := &inputv1alpha1.Input{}
	inputv1alpha1.Default(defaults)
	defaults.Policy = defaults.PolicyOf("any")
	b, err := yaml.Marshal(defaults)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{}
	for _, dir := range []string{"xr", "claim"} {
		composition := read(t, dir, "cache-composition.yaml")
		inputs[dir] = string(input(t, composition))
		all := input(t, uncomment(composition))
		checkInput(t, []byte(inputs[dir]))
		checkInput(t, all)
		shown := asMap(t, all)
		want := asMap(t, b)
		maps.DeleteFunc(want, func(name string, _ any) bool { _, is := shown[name]; return !is })
		if diff := cmp.Diff(shown, overlaid(shown, want)); diff != "" {
			t.Errorf("defaults: -shown in %s, +function:\n%s", dir, diff)
		}
	}
	if diff := cmp.Diff(inputs["xr"], inputs["claim"]); diff != "" {
		t.Errorf("the two inputs differ: -xr, +claim:\n%s", diff)
	}
}

func asMap(t *testing.T, b []byte) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// overlaid returns a copy of a document with the values of another one.
func overlaid(doc, by map[string]any) map[string]any {
	all := maps.Clone(doc)
	if all == nil {
		all = map[string]any{}
	}
	for name, v := range by {
		if inner, ok := v.(map[string]any); ok {
			if len(inner) == 0 {
				continue
			}
			of, _ := all[name].(map[string]any)
			v = overlaid(of, inner)
		}
		all[name] = v
	}
	return all
}

// described returns the fields of a schema. If values are given, it returns those with a value.
func described(schema map[string]extv1.JSONSchemaProps, values map[string]any) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		s := schema[name]
		v, given := values[name]
		if values != nil && !given {
			continue
		}
		own, _ := v.(map[string]any)
		if len(s.Properties) == 0 || name == "resources" {
			all = append(all, name)
			continue
		}
		for _, d := range described(s.Properties, own) {
			all = append(all, name+"."+d)
		}
	}
	return all
}

var commented = regexp.MustCompile(`(?m)^( *)#((?:  +)?\S)`)

// uncomment removes the '#' of fields that are commented out. It is right before the field or
// its indentation. A '#' with one space is prose, and stays.
func uncomment(b []byte) []byte { return commented.ReplaceAll(b, []byte("$1$2")) }

func input(t *testing.T, composition []byte) []byte {
	t.Helper()
	c := &xpv1.Composition{}
	strict(t, composition, c)
	b, err := yaml.JSONToYAML(c.Spec.Pipeline[0].Input.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkInput(t *testing.T, b []byte) {
	t.Helper()
	in := &inputv1alpha1.Input{}
	strict(t, b, in)
	if in.Kind != inputv1alpha1.KindInput || in.APIVersion != inputv1alpha1.APIVersion {
		t.Errorf("the input is a %s of %s", in.Kind, in.APIVersion)
	}
	inputv1alpha1.Default(in)
	if errs := inputv1alpha1.Validate(in, field.NewPath("input")); len(errs) > 0 {
		t.Errorf("the input is refused: %v", errs.ToAggregate())
	}
}

func checkClusterInput(t *testing.T, b []byte) {
	t.Helper()
	in := &inputv1alpha1.ClusterInput{}
	strict(t, b, in)
	if in.Kind != inputv1alpha1.KindClusterInput || in.APIVersion != inputv1alpha1.APIVersion {
		t.Errorf("the input is a %s of %s", in.Kind, in.APIVersion)
	}
	inputv1alpha1.DefaultCluster(in)
	if errs := inputv1alpha1.ValidateCluster(in, field.NewPath("input")); len(errs) > 0 {
		t.Errorf("the input is refused: %v", errs.ToAggregate())
	}
}

func checkModelInput(t *testing.T, b []byte) {
	t.Helper()
	in := &inputv1alpha1.ModelInput{}
	strict(t, b, in)
	if in.Kind != inputv1alpha1.KindModelInput || in.APIVersion != inputv1alpha1.APIVersion {
		t.Errorf("the input is a %s of %s", in.Kind, in.APIVersion)
	}
	inputv1alpha1.DefaultModel(in)
	if errs := inputv1alpha1.ValidateModel(in, field.NewPath("input")); len(errs) > 0 {
		t.Errorf("the input is refused: %v", errs.ToAggregate())
	}
}

// A need is a permission that Crossplane needs.
type need struct{ verb, group, resource string }

// verbs are those that Crossplane uses on composed resources.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// plurals are those of the composed kinds. Add new kinds here. Add them to the ClusterRole, too,
// unless Crossplane's own role has them.
var plurals = map[string]string{
	"EndpointSlice":         "endpointslices",
	"ServiceEntry":          "serviceentries",
	"Gateway":               "gateways",
	"HTTPRoute":             "httproutes",
	"DestinationRule":       "destinationrules",
	"InferencePool":         "inferencepools",
	"InferenceObjective":    "inferenceobjectives",
	"InferenceModelRewrite": "inferencemodelrewrites",
	"LeaderWorkerSet":       "leaderworkersets",
	"PodGroup":              "podgroups",
	"NetworkPolicy":         "networkpolicies",
	"PodDisruptionBudget":   "poddisruptionbudgets",
	"Role":                  "roles",
	"RoleBinding":           "rolebindings",
	"ConfigMap":             "configmaps",
	"Deployment":            "deployments",
	"Service":               "services",
	"ServiceAccount":        "serviceaccounts",
	"ClusterUsage":          "clusterusages",
	"PersistentVolumeClaim": "persistentvolumeclaims",
	"Job":                   "jobs",
	"PodMonitor":            "podmonitors",
	"InferenceRole":         "inferenceroles",

	"HorizontalPodAutoscaler": "horizontalpodautoscalers",
	"ScaledObject":            "scaledobjects",
}

// core are the permissions of Crossplane's own ClusterRole (Helm chart of v2.4) that matter
// here.
var core = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch", "delete"}},
	{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "services"}, Verbs: []string{"*"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs},
	{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"configmaps", "leases"}, Verbs: verbs},
	{APIGroups: []string{protection}, Resources: []string{"*"}, Verbs: []string{"*"}},
	// The RBAC manager adds the kinds of XRDs (internal/controller/rbac/definition/roles.go).
	{APIGroups: []string{group}, Resources: []string{"inferenceroles"}, Verbs: []string{"*"}},
}

// protection is the group of Crossplane's own kinds that are composed.
const protection = "protection.crossplane.io"

// group is that of the packages' own kinds.
const group = "fusioninfer.io"

// besides are the groups of what exists only where Crossplane runs.
var besides = map[string]bool{protection: true, group: true}

// fleetBackends are where fleet routes lead to. These are beside Crossplane, too.
const fleetBackends = "serviceentries"

// TestRBAC checks that Crossplane has exactly the permissions that it needs to apply the
// rendered examples.
func TestRBAC(t *testing.T) {
	var granted []rbacv1.PolicyRule
	for _, f := range []string{"rbac.yaml", "rbac-istio.yaml"} {
		role := &rbacv1.ClusterRole{}
		strict(t, read(t, "install", f), role)
		if role.Labels["rbac.crossplane.io/aggregate-to-crossplane"] != "true" {
			t.Errorf("%s: Crossplane's RBAC manager does not find it", f)
		}
		granted = append(granted, role.Rules...)
	}
	needed := rendered(t)
	// The function requires the pods of a service, and the namespaces that a cluster selects by
	// labels.
	for _, v := range []string{"get", "list", "watch"} {
		needed[need{v, "", "pods"}] = true
		needed[need{v, "", "namespaces"}] = true
	}

	// An endpoint picker with several replicas has one, but no example has such a picker.
	for _, v := range verbs {
		needed[need{v, "policy", "poddisruptionbudgets"}] = true
	}

	// In another cluster, provider-kubernetes needs what Crossplane needs here, and what
	// InferenceClusters observe. Namespaces are created there and never deleted. Services observe
	// pods that may fail, and Kueue's Workloads.
	clusters := map[need]bool{}
	for _, v := range []string{"get", "list", "watch", "patch"} {
		clusters[need{v, "", "nodes"}] = true
		clusters[need{v, "", "pods"}] = true
		clusters[need{v, "", "namespaces"}] = true
		clusters[need{v, "kueue.x-k8s.io", "workloads"}] = true
	}
	for _, v := range []string{"create", "update"} {
		clusters[need{v, "", "namespaces"}] = true
	}
	remote := bound(t, "rbac.yaml", "rbac-remote.yaml", "rbac-remote-istio.yaml")

	var missing, lacking, unused []need
	for n := range needed {
		if !allows(granted, n) && !allows(core, n) {
			missing = append(missing, n)
		}
		if !besides[n.group] && n.resource != fleetBackends && !allows(remote, n) {
			lacking = append(lacking, n)
		}
	}
	for n := range clusters {
		if !allows(remote, n) {
			lacking = append(lacking, n)
		}
	}
	for _, r := range append(granted, remote...) {
		for _, n := range needs(r) {
			if !needed[n] && !clusters[n] {
				unused = append(unused, n)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("Crossplane lacks permissions: %v", missing)
	}
	if len(lacking) > 0 {
		t.Errorf("provider-kubernetes lacks permissions: %v", lacking)
	}
	if len(unused) > 0 {
		t.Errorf("Crossplane has permissions that it does not need: %v", unused)
	}
}

// TestTenantRole checks that app teams may write what they create and nothing else: no status, no cluster of the fleet, and of
// the roles with scaling only the number of replicas. The kinds are those of both packages.
func TestTenantRole(t *testing.T) {
	created, scaled := map[string][]string{}, map[string][]string{}
	for _, dir := range []string{"xr", "claim"} {
		for _, f := range []string{"definition.yaml", "model-definition.yaml", "cache-definition.yaml", "role-definition.yaml"} {
			xrd := &xpv1.CompositeResourceDefinition{}
			strict(t, read(t, dir, f), xrd)
			plural := xrd.Spec.Names.Plural
			if xrd.Spec.ClaimNames != nil {
				plural = xrd.Spec.ClaimNames.Plural
			}
			if f != "role-definition.yaml" {
				created[dir] = append(created[dir], plural)
			}
			if s := xrd.Spec.Versions[0].Subresources; s != nil && s.Scale != nil {
				scaled[dir] = append(scaled[dir], plural+"/scale")
			}
		}
	}
	if diff := cmp.Diff([]any{created["xr"], scaled["xr"]}, []any{created["claim"], scaled["claim"]}); diff != "" {
		t.Errorf("teams create different kinds: -xr, +claim:\n%s", diff)
	}
	want := map[need]bool{}
	allow := func(resources []string, verbs ...string) {
		for _, r := range resources {
			for _, v := range verbs {
				want[need{v, group, r}] = true
			}
		}
	}
	allow(created["xr"], verbs...)
	allow(scaled["xr"], "get", "update", "patch")
	allow([]string{"inferenceroles"}, "get", "list", "watch")
	for _, r := range []string{"gateways", "httproutes"} {
		for _, v := range []string{"get", "list", "watch"} {
			want[need{v, "gateway.networking.k8s.io", r}] = true
		}
	}
	role := &rbacv1.ClusterRole{}
	strict(t, read(t, "install", "rbac-tenant.yaml"), role)
	got := map[need]bool{}
	for _, r := range role.Rules {
		for _, n := range needs(r) {
			got[n] = true
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(need{})); diff != "" || len(role.Labels) > 0 {
		t.Errorf("the role has the labels %v, by which others might get it, or other permissions: -want, +got:\n%s", role.Labels, diff)
	}
}

// bound returns the rules that the files bind to the account of provider-kubernetes.
func bound(t *testing.T, files ...string) []rbacv1.PolicyRule {
	t.Helper()
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "inferenceservices", Namespace: "kube-system"}}
	roles, names := map[string][]rbacv1.PolicyRule{}, []string{}
	for _, f := range files {
		for _, doc := range documents(t, "install", f) {
			role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
			switch {
			case strings.Contains(doc, "\nkind: ClusterRole\n"):
				strict(t, []byte(doc), role)
				roles[role.Name] = role.Rules
			case strings.Contains(doc, "\nkind: ClusterRoleBinding\n"):
				strict(t, []byte(doc), binding)
				if diff := cmp.Diff(account, binding.Subjects); diff != "" {
					t.Errorf("%s binds %s to another account: -want, +got:\n%s", f, binding.Name, diff)
				}
				names = append(names, binding.RoleRef.Name)
			}
		}
	}
	var all []rbacv1.PolicyRule
	for _, name := range names {
		if roles[name] == nil {
			t.Errorf("a binding refers to the ClusterRole %s, which is in none of %v", name, files)
		}
		all = append(all, roles[name]...)
	}
	return all
}

// rendered returns the permissions that the rendered examples need.
func rendered(t *testing.T) map[need]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "example", "*", "rendered.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no example is rendered (%v)", err)
	}
	all := map[need]bool{}
	for _, f := range files {
		// The first document is the XR.
		for _, doc := range documents(t, f)[1:] {
			o := &rbacv1.Role{}
			if err := yaml.Unmarshal([]byte(doc), o); err != nil {
				t.Fatalf("cannot parse %s: %v", f, err)
			}
			if o.Kind == "Object" || o.Kind == "ObservedObjectCollection" {
				continue // Their provider's.
			}
			group := o.GroupVersionKind().Group
			plural := plurals[o.Kind]
			if plural == "" {
				t.Errorf("%s: a test does not know the plural of %s", f, o.Kind)
			}
			for _, v := range verbs {
				all[need{v, group, plural}] = true
			}
			switch o.Kind {
			case "RoleBinding":
				all[need{"bind", group, "roles"}] = true
			case "Role":
				for _, r := range o.Rules {
					for _, n := range needs(r) {
						all[n] = true
					}
				}
			}
		}
	}
	return all
}

func needs(r rbacv1.PolicyRule) []need {
	var all []need
	for _, g := range r.APIGroups {
		for _, res := range r.Resources {
			for _, v := range r.Verbs {
				all = append(all, need{v, g, res})
			}
		}
	}
	return all
}

func allows(rules []rbacv1.PolicyRule, n need) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, n.group) && (slices.Contains(r.Resources, n.resource) || slices.Contains(r.Resources, "*")) &&
			(slices.Contains(r.Verbs, n.verb) || slices.Contains(r.Verbs, "*"))
	})
}

func repository(ref string) string { return ref[:strings.LastIndex(ref, ":")] }

func tag(ref string) string { return ref[strings.LastIndex(ref, ":")+1:] }

// documents returns the documents of a file, without the comments before the first.
func documents(t *testing.T, path ...string) []string {
	t.Helper()
	var docs []string
	for doc := range strings.SplitSeq("\n"+string(read(t, path...)), "\n---\n") {
		if strings.TrimSpace(doc) != "" {
			docs = append(docs, doc)
		}
	}
	return docs
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// strict decodes a document, and fails for unknown fields.
func strict(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(b, into); err != nil {
		t.Fatalf("cannot decode a %T: %v", into, err)
	}
}
