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

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

// organization is what all packages are below.
const organization = "ghcr.io/fusioninfer/"

// TestMetadata looks at what marketplaces show and Crossplane reads.
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

// TestReferences follows every name from one file to the next.
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
			reason:      "Clusters are the same where services are claims.",
			dir:         "claim",
			composition: "cluster-composition.yaml",
			kind:        cluster.Spec.Names.Kind,
			name:        cluster.Spec.EnforcedCompositionRef.Name,
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

// TestRuntime starts no pod, but the container that it describes has to be the
// function's.
func TestRuntime(t *testing.T) {
	config := &pkgv1beta1.DeploymentRuntimeConfig{}
	strict(t, []byte(documents(t, "install", "function.yaml")[1]), config)
	pod := config.Spec.DeploymentTemplate.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.Containers[0].Name != "package-runtime" {
		t.Fatalf("want the one container that Crossplane fills in, package-runtime, got %v", pod.Containers)
	}
	s := pod.Containers[0].SecurityContext
	if !*s.RunAsNonRoot || *s.RunAsUser == 0 || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container may do too much: %v", s)
	}
	if _, limited := pod.Containers[0].Resources.Limits[corev1.ResourceMemory]; !limited {
		t.Error("the container's memory has no limit")
	}
}

// TestCompositions makes sure that what platform teams copy is true: the input is
// valid as it is and with everything in it that is commented out, which covers all
// fields and shows the defaults.
func TestCompositions(t *testing.T) {
	crd := &extv1.CustomResourceDefinition{}
	strict(t, read(t, "input", "inferenceservice.fn.crossplane.io_inputs.yaml"), crd)
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties

	inputs := map[string][]byte{}
	for _, dir := range []string{"xr", "claim"} {
		t.Run(dir, func(t *testing.T) {
			composition := read(t, dir, "composition.yaml")
			packaged := input(t, composition)
			inputs[dir] = packaged
			check(t, packaged)
			all := input(t, uncomment(composition))
			check(t, all)

			shown := map[string]any{}
			if err := yaml.Unmarshal(all, &shown); err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{"apiVersion", "kind", "metadata"} {
				delete(shown, p)
				delete(schema, p)
			}
			// The packages turn this one on.
			delete(shown, "requireKinds")
			delete(schema, "requireKinds")
			if diff := cmp.Diff(described(schema, nil), described(schema, shown)); diff != "" {
				t.Errorf("fields and defaults: -schema, +shown:\n%s", diff)
			}
		})
	}
	// Most of an input is of no meaning for clusters.
	cluster := read(t, "xr", "cluster-composition.yaml")
	check(t, input(t, cluster))
	check(t, input(t, uncomment(cluster)))
	if diff := cmp.Diff(string(inputs["xr"]), string(inputs["claim"])); diff != "" {
		t.Errorf("the two inputs differ: -xr, +claim:\n%s", diff)
	}
}

// described lists the fields of a schema with their defaults, or, where values are
// given, the fields that these have with the values where there is a default.
func described(schema map[string]extv1.JSONSchemaProps, values map[string]any) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		s := schema[name]
		v, given := values[name]
		if values != nil && !given {
			continue
		}
		own, _ := v.(map[string]any)
		switch {
		case len(s.Properties) > 0 && name != "resources":
			for _, d := range described(s.Properties, own) {
				all = append(all, name+"."+d)
			}
		case s.Default != nil && values == nil:
			all = append(all, name+": "+strings.Trim(string(s.Default.Raw), `"`))
		case s.Default != nil:
			b, _ := yaml.Marshal(v)
			all = append(all, name+": "+strings.TrimSpace(string(b)))
		default:
			all = append(all, name)
		}
	}
	return all
}

var commented = regexp.MustCompile(`(?m)^( *)#((?:  +)?\S)`)

// uncomment brings back what is commented out: a '#' right before it or before its
// indentation. Prose has one space after the '#'; so has what is commented out at
// all, which stays a comment.
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

func check(t *testing.T, b []byte) {
	t.Helper()
	in := &v1beta1.Input{}
	strict(t, b, in)
	if in.Kind != v1beta1.Kind || in.APIVersion != v1beta1.Group+"/"+v1beta1.Version {
		t.Errorf("the input is a %s of %s", in.Kind, in.APIVersion)
	}
	v1beta1.Default(in)
	if errs := v1beta1.Validate(in, field.NewPath("input")); len(errs) > 0 {
		t.Errorf("the input is refused: %v", errs.ToAggregate())
	}
}

// A need is what Crossplane has to be able to do.
type need struct{ verb, group, resource string }

// verbs that Crossplane uses on what it composes.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// plurals of the kinds that are composed. A kind that is new has to be added here,
// and to the ClusterRole where it is not Crossplane's already.
var plurals = map[string]string{
	"EndpointSlice":         "endpointslices",
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
}

// core is what Crossplane's own ClusterRole allows (Crossplane v2.4, its Helm
// chart), as far as it matters here.
var core = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch", "delete"}},
	{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "services"}, Verbs: []string{"*"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs},
	{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"configmaps", "leases"}, Verbs: verbs},
	{APIGroups: []string{protection}, Resources: []string{"*"}, Verbs: []string{"*"}},
}

// protection is the group of Crossplane's own kinds that are composed. They are beside
// Crossplane only.
const protection = "protection.crossplane.io"

// TestRBAC takes from the rendered examples what Crossplane has to be allowed, and
// wants that and no more.
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
	// The function asks for the pods of a service, and for namespaces by whose labels a
	// cluster goes.
	for _, v := range []string{"get", "list", "watch"} {
		needed[need{v, "", "pods"}] = true
		needed[need{v, "", "namespaces"}] = true
	}

	// An endpoint picker with replicas has one, and no example has such.
	for _, v := range verbs {
		needed[need{v, "policy", "poddisruptionbudgets"}] = true
	}

	// In another cluster provider-kubernetes has what Crossplane has here, and what
	// InferenceClusters observe. Namespaces are made there, and never deleted.
	remote := &rbacv1.ClusterRole{}
	clusters := map[need]bool{}
	for _, v := range []string{"get", "list", "watch", "patch"} {
		clusters[need{v, "", "nodes"}] = true
		clusters[need{v, "", "namespaces"}] = true
	}
	for _, v := range []string{"create", "update"} {
		clusters[need{v, "", "namespaces"}] = true
	}
	strict(t, []byte(documents(t, "install", "rbac-remote.yaml")[1]), remote)

	var missing, lacking, unused []need
	for n := range needed {
		if !allows(granted, n) && !allows(core, n) {
			missing = append(missing, n)
		}
		if n.group != protection && !allows(granted, n) && !allows(remote.Rules, n) {
			lacking = append(lacking, n)
		}
	}
	for n := range clusters {
		if !allows(remote.Rules, n) {
			lacking = append(lacking, n)
		}
	}
	for _, r := range append(granted, remote.Rules...) {
		for _, n := range needs(r) {
			if !needed[n] && !clusters[n] {
				unused = append(unused, n)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("Crossplane needs and may not: %v", missing)
	}
	if len(lacking) > 0 {
		t.Errorf("provider-kubernetes needs and may not: %v", lacking)
	}
	if len(unused) > 0 {
		t.Errorf("Crossplane may and does not need: %v", unused)
	}
}

// rendered is what the examples need.
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

// documents of a file, without the comments in front of the first.
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

// strict decodes and knows every field.
func strict(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(b, into); err != nil {
		t.Fatalf("cannot decode a %T: %v", into, err)
	}
}
