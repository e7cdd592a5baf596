package crossplane

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A result is what crossplane resource validate reports about one document.
type result struct {
	APIVersion, Kind, Name, Status string
	Errors                         []struct{ Field, Message string }
}

// validate validates objects with crossplane resource validate, with the schemas of all
// composed kinds, the XRD of a flavour, and that of the scale targets, which services compose.
func validate(t *testing.T, f flavour, all []*object) []result {
	t.Helper()
	dir := t.TempDir()
	stdout, stderr, _ := execute(t, programs.cli, "resource", "validate",
		strings.Join(append(extensions(t), f.definition(), scaleTargets()), ","),
		write(t, filepath.Join(dir, "resources.yaml"), all...),
		// With an empty image, it downloads no schemas of Crossplane's own kinds.
		"--crossplane-image=", "--cache-dir="+filepath.Join(dir, "cache"), "--error-on-missing-schemas", "--output=json")
	got := struct{ Resources []result }{}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("crossplane resource validate: %v\n%s%s", err, stdout, stderr)
	}
	if len(got.Resources) != len(all) {
		t.Fatalf("crossplane resource validate looks at %d documents of %d\n%s", len(got.Resources), len(all), stderr)
	}
	return got.Resources
}

// TestValidate validates what is rendered of every example with its whole XR, the
// claims that users would create, and the objects that are for other clusters.
func TestValidate(t *testing.T) {
	for _, f := range append(slices.Clone(flavours), clusters, models, caches) {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			all, from := compose(t, f)
			for i, v := range validate(t, f, all) {
				if v.Status != "valid" {
					t.Errorf("example/%s: %s %s %s is %s: %v", from[i], v.APIVersion, v.Kind, v.Name, v.Status, v.Errors)
				}
			}
		})
	}
}

// TestValidateRefuses shows that an invalid object of each kind is refused. Otherwise
// TestValidate would prove nothing for that kind.
func TestValidateRefuses(t *testing.T) {
	for _, f := range flavours {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			kinds := map[string]*object{}
			all, _ := compose(t, f)
			for _, o := range all {
				wrong := o.DeepCopy()
				wrong.Object["nonsense"] = true
				kinds[o.GetAPIVersion()+" "+o.GetKind()] = wrong
			}
			all = nil
			for _, k := range slices.Sorted(maps.Keys(kinds)) {
				all = append(all, kinds[k])
			}
			all = append(all, named(t, examples(t), "invalid").as(t, f).xr)
			stranger := &object{}
			stranger.SetAPIVersion("example.com/v1")
			stranger.SetKind("Stranger")
			all = append(all, stranger)
			for i, v := range validate(t, f, all) {
				want := "invalid"
				if all[i] == stranger {
					want = "missingSchema"
				}
				if v.Status != want {
					t.Errorf("%s %s %s is %s, want %s", v.APIVersion, v.Kind, v.Name, v.Status, want)
				}
			}
		})
	}
}

// composed is what comes of the examples in each flavour. It takes a render of each, so they
// are rendered once.
var composed = map[flavour]*composition{namespaced: {}, claimed: {}, clusters: {}, models: {}, caches: {}}

type composition struct {
	once sync.Once
	all  []*object
	from []string
}

// compose returns all documents of all examples that are not refused, and the
// example that each is from.
func compose(t *testing.T, f flavour) (all []*object, from []string) {
	t.Helper()
	c := composed[f]
	c.once.Do(func() { c.all, c.from = composeAll(t, f) })
	if len(c.all) == 0 {
		t.Fatalf("there are no documents of %s", f)
	}
	return c.all, c.from
}

func composeAll(t *testing.T, f flavour) (all []*object, from []string) {
	t.Helper()
	for _, e := range examples(t) {
		if e.rendered == "" || !slices.Contains(e.flavours(), f) {
			continue
		}
		s := e.as(t, f)
		docs := documents(t, []byte(s.files(t).crossplane(t, "--include-full-xr").Documents))
		docs = append(docs, manifests(t, docs)...)
		if f == claimed {
			docs = append(docs, s.claim(t))
		}
		all = append(all, docs...)
		from = append(from, slices.Repeat([]string{e.name}, len(docs))...)
	}
	return all, from
}

// manifests are the objects that are for another cluster.
func manifests(t *testing.T, all []*object) []*object {
	t.Helper()
	var found []*object
	for _, o := range all {
		policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
		if !isObject(o) || slices.Equal(policies, []string{"Observe"}) {
			continue // What is only observed is named, and no more.
		}
		m, ok, err := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
		if !ok || err != nil {
			t.Fatalf("Object %s has no manifest: %v", o.GetName(), err)
		}
		found = append(found, &object{Object: m})
	}
	return found
}
