package servingprofile_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// A generator makes pod templates at random, out of few names, so that two of them have much in common.
type generator struct {
	*rand.Rand
	// nulls tells that fields may be null.
	nulls bool
}

func (g generator) maybe(into map[string]any, name string, v func() any) {
	switch g.IntN(5) {
	case 0, 1, 2:
		into[name] = v()
	case 3:
		if g.nulls {
			into[name] = nil
		}
	}
}

func (g generator) text() any { return []string{"a", "b", "c"}[g.IntN(3)] }

func (g generator) number() any { return int64(g.IntN(3)) }

func (g generator) labels() any {
	m := map[string]any{}
	for _, k := range []string{"k", "l", "m.n/o"} {
		g.maybe(m, k, g.text)
	}
	return m
}

// list makes a list whose elements have different keys.
func (g generator) list(key string, element func(map[string]any)) any {
	all := []any{}
	for _, i := range g.Perm(4)[:g.IntN(4)] {
		var k any = fmt.Sprintf("n%d", i)
		if key == "containerPort" {
			k = int64(i)
		}
		e := map[string]any{key: k}
		element(e)
		all = append(all, e)
	}
	return all
}

func (g generator) container(c map[string]any) {
	g.maybe(c, "image", g.text)
	g.maybe(c, "env", func() any {
		return g.list("name", func(e map[string]any) { g.maybe(e, "value", g.text) })
	})
	g.maybe(c, "volumeMounts", func() any {
		return g.list("mountPath", func(e map[string]any) { e["name"] = g.text(); g.maybe(e, "subPath", g.text) })
	})
	g.maybe(c, "ports", func() any {
		return g.list("containerPort", func(e map[string]any) { g.maybe(e, "name", g.text) })
	})
	g.maybe(c, "resources", func() any {
		r := map[string]any{}
		g.maybe(r, "limits", g.labels)
		g.maybe(r, "claims", func() any { return []any{map[string]any{"name": g.text()}} })
		return r
	})
	g.maybe(c, "readinessProbe", func() any {
		p := map[string]any{}
		g.maybe(p, "periodSeconds", g.number)
		g.maybe(p, "httpGet", func() any {
			h := map[string]any{}
			g.maybe(h, "path", g.text)
			g.maybe(h, "port", g.text)
			return h
		})
		return p
	})
}

func (g generator) template() map[string]any {
	t, meta, spec := map[string]any{}, map[string]any{}, map[string]any{}
	g.maybe(t, "metadata", func() any { return meta })
	g.maybe(meta, "labels", g.labels)
	g.maybe(t, "spec", func() any { return spec })
	for _, list := range []string{"containers", "initContainers"} {
		g.maybe(spec, list, func() any { return g.list("name", g.container) })
	}
	g.maybe(spec, "nodeSelector", g.labels)
	g.maybe(spec, "terminationGracePeriodSeconds", g.number)
	g.maybe(spec, "tolerations", func() any { return []any{map[string]any{"key": g.text()}} })
	g.maybe(spec, "topologySpreadConstraints", func() any {
		return g.list("topologyKey", func(e map[string]any) { g.maybe(e, "maxSkew", g.number) })
	})
	g.maybe(spec, "imagePullSecrets", func() any { return g.list("name", func(map[string]any) {}) })
	g.maybe(spec, "volumes", func() any {
		return g.list("name", func(e map[string]any) {
			d := map[string]any{}
			g.maybe(d, "medium", g.text)
			e["emptyDir"] = d
		})
	})
	return t
}

// TestAsKubernetes compares merged templates with what Kubernetes makes of the same documents. The
// order of lists differs: see TestOrder.
func TestAsKubernetes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	differ := 0
	for i := range 3000 {
		under, over := generator{Rand: random}.template(), generator{Rand: random, nulls: true}.template()
		merged, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(under), runtime.DeepCopyJSON(over), corev1.PodTemplateSpec{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any(merged)
		got := merge(t, under, over)
		if diff := gocmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Fatalf("%d: %s over %s\n-want +got:\n%s", i, text(t, over), text(t, under), diff)
		}
		if !reflect.DeepEqual(sorted(want), sorted(over)) && !reflect.DeepEqual(sorted(want), sorted(under)) {
			differ++
		}
	}
	if differ < 1000 {
		t.Errorf("want at least 1000 templates to be of both, got %d", differ)
	}
}

// merge merges two templates as those of a profile and a service.
func merge(t *testing.T, under, over map[string]any) map[string]any {
	t.Helper()
	p := inputv1alpha1.Profile{Name: "p", Roles: []inputv1alpha1.ProfileRole{{ComponentType: "worker", Template: document(t, text(t, under))}}}
	spec := document(t, `{profileName: p, roles: [{componentType: worker, template: `+text(t, over)+`}]}`)
	got, _, errs := servingprofile.Apply(spec, []inputv1alpha1.Profile{p})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	role := kube.Lookup(got, "roles").GetListValue().GetValues()[0].GetStructValue()
	return kube.AsMap(kube.WithoutNulls(kube.Lookup(role, "template").GetStructValue()))
}

// sorted returns a value with sorted lists, and without nulls.
func sorted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			if e != nil {
				m[k] = sorted(e)
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = sorted(e)
		}
		slices.SortFunc(l, func(a, b any) int { return cmp.Compare(must(a), must(b)) })
		return l
	}
	return v
}

func must(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestOrder shows that the elements of a service keep their order, and so do those that are the
// profile's alone. New ones come last, unless one after them is the profile's, too.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		names := func() (all []string) {
			for _, i := range random.Perm(8)[:random.IntN(8)] {
				all = append(all, fmt.Sprintf("n%d", i))
			}
			return all
		}
		under, over := names(), names()
		env := func(names []string) map[string]any {
			all := []any{}
			for _, n := range names {
				all = append(all, map[string]any{"name": n})
			}
			return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "env": all}}}}
		}
		merged := merge(t, env(under), env(over))
		var got []string
		c := merged["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		for _, e := range c["env"].([]any) {
			got = append(got, e.(map[string]any)["name"].(string))
		}
		theirs := func(n string) bool { return slices.Contains(over, n) }
		mine := slices.DeleteFunc(slices.Clone(got), theirs)
		if diff := gocmp.Diff(strings.Join(slices.DeleteFunc(slices.Clone(under), theirs), " "), strings.Join(mine, " ")); diff != "" {
			t.Fatalf("%v over %v is %v: the profile's own: -want +got:\n%s", over, under, got, diff)
		}
		given := slices.DeleteFunc(slices.Clone(got), func(n string) bool { return !theirs(n) })
		if diff := gocmp.Diff(strings.Join(over, " "), strings.Join(given, " ")); diff != "" {
			t.Fatalf("%v over %v is %v: the service's: -want +got:\n%s", over, under, got, diff)
		}
		if last := len(over) - 1; last >= 0 && !slices.Contains(under, over[last]) && got[len(got)-1] != over[last] {
			t.Fatalf("%v over %v is %v: want %s last", over, under, got, over[last])
		}
	}
}
