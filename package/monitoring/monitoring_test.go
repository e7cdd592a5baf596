// Package monitoring checks the dashboards, alerts and metrics of kube-state-metrics.
package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/serve"
)

// A table has the kinds of metrics by their names: counter, gauge or histogram.
type table map[string]string

// read reads a table that test/tools/metrics has written. It has only metrics of every release in it: a
// dashboard has to work with all of them.
func read(t *testing.T, name string) table {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	releases, all := 0, table{}
	for line := range strings.Lines(string(b)) {
		switch words := strings.Fields(line); {
		case words[0] == "release":
			releases++
		case words[0] != "#" && len(strings.Split(words[2], ",")) == releases:
			all[words[1]] = words[0]
		}
	}
	if len(all) == 0 {
		t.Fatalf("testdata/%s.txt has no metrics of all releases", name)
	}
	return all
}

// described matches how prometheus describes a metric.
var described = regexp.MustCompile(`fqName: "([^"]+)"`)

// own returns the metrics of a collector.
func own(c prometheus.Collector) table {
	descs := make(chan *prometheus.Desc, 64)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	all := table{}
	for d := range descs {
		name := described.FindStringSubmatch(d.String())[1]
		switch {
		case strings.HasSuffix(name, "_total"):
			all[name] = "counter"
		case strings.HasSuffix(name, "_seconds"), strings.HasSuffix(name, "_bytes"):
			all[name] = "histogram"
		default:
			all[name] = "gauge"
		}
	}
	return all
}

// known returns all metrics that dashboards and alerts may use.
func known(t *testing.T) table {
	t.Helper()
	all := table{
		// Prometheus itself makes it for each target, and its client library for each process.
		"up": "gauge", "process_resident_memory_bytes": "gauge",
	}
	tables := []table{read(t, "vllm"), read(t, "sglang"), read(t, "gaie"), read(t, "llmd"), own(serve.NewMetrics()), own(grpcprometheus.NewServerMetrics())}
	for _, of := range append(tables, states(t)) {
		for name, kind := range of {
			if before, twice := all[name]; twice && before != kind {
				t.Errorf("%s is a %s and a %s", name, before, kind)
			}
			all[name] = kind
		}
	}
	return all
}

// What of an expression is no metric.
var (
	textual  = regexp.MustCompile(`"[^"]*"`)
	matchers = regexp.MustCompile(`\{[^}]*\}`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	labelled = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	called   = regexp.MustCompile(`\b[a-z_0-9]+\s*\(`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	number   = regexp.MustCompile(`\b[0-9][0-9.e]*\b`)
)

// metrics returns the names of the series of an expression.
func metrics(expr string) []string {
	for _, m := range []*regexp.Regexp{textual, matchers, ranges, labelled, called, number} {
		expr = m.ReplaceAllString(expr, " ")
	}
	return slices.DeleteFunc(word.FindAllString(expr, -1), func(w string) bool { return slices.Contains([]string{"or", "and", "unless", "bool"}, w) })
}

// check checks the metrics of an expression: each exists, and rates are of counters.
func (all table) check(t *testing.T, where, expr string) {
	t.Helper()
	found := metrics(expr)
	if len(found) == 0 {
		t.Errorf("%s has no metric: %s", where, expr)
	}
	for _, m := range found {
		base := m
		for _, s := range []string{"_bucket", "_sum", "_count"} {
			if b, is := strings.CutSuffix(m, s); is && all[b] == "histogram" {
				base = b
			}
		}
		switch kind := all[base]; {
		case kind == "":
			t.Errorf("%s: no release has %s", where, m)
		case kind == "histogram" && base == m:
			t.Errorf("%s: %s is a histogram, which has _bucket, _sum and _count", where, m)
		case kind == "gauge" && regexp.MustCompile(`(rate|increase)\(`+regexp.QuoteMeta(m)+`\b`).MatchString(expr):
			t.Errorf("%s: %s is a gauge, which has no rate", where, m)
		}
	}
}

func TestMetricsOfExpressions(t *testing.T) {
	const expr = `histogram_quantile(0.95, sum by (le, role) (rate(a:b_bucket{x="y{}",z=~"a|b"}[5m]))) or up{a!=""} == 0 and 3e6 > c_total * on (cluster) group_right () d`
	if got := strings.Join(metrics(expr), " "); got != "a:b_bucket up c_total d" {
		t.Errorf("the metrics are %s", got)
	}
}

// A dashboard is what Grafana reads.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		Type, Title string
		Targets     []struct{ Expr string }
		GridPos     struct{ X, W int }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Definition string
		}
	}
}

// TestDashboards proves that each metric of a dashboard exists in every release that the tables name, in the
// function itself, or in what kube-state-metrics is told to make.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("the dashboards are %v (%v)", files, err)
	}
	all, uids := known(t), map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{}
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || d.Title == "" || uids[d.UID] {
			t.Errorf("%s has the UID %q, which is empty or that of another one", file, d.UID)
		}
		uids[d.UID] = true
		titles := map[string]bool{}
		for _, p := range d.Panels {
			if titles[p.Title] || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %q is there twice, or too wide", file, p.Title)
			}
			titles[p.Title] = true
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %q shows nothing", file, p.Title)
			}
			for _, q := range p.Targets {
				all.check(t, file+": "+p.Title, q.Expr)
			}
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				of, is := strings.CutPrefix(v.Definition, "label_values(")
				if of, _, _ = strings.Cut(of, ", "); !is {
					t.Errorf("%s: variable %s has the query %s", file, v.Name, v.Definition)
				}
				all.check(t, file+": "+v.Name, of)
			}
		}
	}
}

// TestRules proves the same of alerts. Each says what is wrong, and has a section in docs/monitoring.md.
func TestRules(t *testing.T) {
	b, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := struct {
		Kind string
		Spec struct {
			Groups []struct {
				Name  string
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}{}
	if err := yaml.Unmarshal(b, &rules); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	all, n := known(t), 0
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			n++
			all.check(t, r.Alert, r.Expr)
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s has no summary or no description", r.Alert)
			}
			const at = "https://github.com/fusioninfer/function-inferenceservice/blob/main/docs/monitoring.md#"
			if r.Annotations["runbook_url"] != at+strings.ToLower(r.Alert) {
				t.Errorf("%s has the runbook %q, want %s", r.Alert, r.Annotations["runbook_url"], at+strings.ToLower(r.Alert))
			}
			if !strings.Contains(string(doc), "\n### "+r.Alert+"\n") {
				t.Errorf("docs/monitoring.md has no section %s", r.Alert)
			}
		}
	}
	if rules.Kind != "PrometheusRule" || n < 10 {
		t.Errorf("%s with %d alerts", rules.Kind, n)
	}
}

// A stateConfig is the configuration of kube-state-metrics for custom resources (v2.15.0,
// pkg/customresourcestate/config.go).
type stateConfig struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []stateResource `json:"resources"`
	} `json:"spec"`
}

type stateResource struct {
	GroupVersionKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"groupVersionKind"`
	MetricNamePrefix string              `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string `json:"labelsFromPath"`
	Metrics          []struct {
		Name string `json:"name"`
		Help string `json:"help"`
		Each struct {
			Type     string      `json:"type"`
			Gauge    *stateValue `json:"gauge"`
			Info     *stateValue `json:"info"`
			StateSet *stateValue `json:"stateSet"`
		} `json:"each"`
	} `json:"metrics"`
}

type stateValue struct {
	Path           []string            `json:"path"`
	LabelFromKey   string              `json:"labelFromKey"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	LabelName      string              `json:"labelName"`
	ValueFrom      []string            `json:"valueFrom"`
	List           []string            `json:"list"`
	NilIsZero      bool                `json:"nilIsZero"`
}

func config(t *testing.T) stateConfig {
	t.Helper()
	b, err := os.ReadFile("kube-state-metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := stateConfig{}
	if err := yaml.UnmarshalStrict(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// states returns the metrics that kube-state-metrics makes.
func states(t *testing.T) table {
	t.Helper()
	all := table{}
	for _, r := range config(t).Spec.Resources {
		for _, m := range r.Metrics {
			all[r.MetricNamePrefix+"_"+m.Name] = "gauge"
		}
	}
	return all
}

// A node is a part of the schema of a kind.
type node struct {
	Type                 string           `json:"type"`
	Properties           map[string]*node `json:"properties"`
	Items                *node            `json:"items"`
	AdditionalProperties *node            `json:"additionalProperties"`
}

// at returns the part at a path. An element stands for the list or map that it is in.
func (n *node) at(path []string) *node {
	for _, p := range path {
		if n = n.Properties[p]; n == nil {
			return nil
		}
	}
	return n
}

func (n *node) element() *node {
	switch {
	case n.Items != nil:
		return n.Items
	case n.AdditionalProperties != nil:
		return n.AdditionalProperties
	}
	return n
}

// schemas returns the schemas of both flavours of the API, by their kinds.
func schemas(t *testing.T) map[string][]*node {
	t.Helper()
	all := map[string][]*node{}
	for _, flavour := range []string{"xr", "claim"} {
		for _, file := range []string{"definition.yaml", "cluster-definition.yaml"} {
			b, err := os.ReadFile(filepath.Join("..", flavour, file))
			if err != nil {
				t.Fatal(err)
			}
			xrd := struct {
				Spec struct {
					Names      struct{ Kind string }
					ClaimNames struct{ Kind string }
					Versions   []struct {
						Schema struct {
							OpenAPIV3Schema *node `json:"openAPIV3Schema"`
						}
					}
				}
			}{}
			if err := yaml.Unmarshal(b, &xrd); err != nil {
				t.Fatal(err)
			}
			kind := xrd.Spec.Names.Kind
			if c := xrd.Spec.ClaimNames.Kind; c != "" {
				kind = c
			}
			all[kind] = append(all[kind], xrd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		}
	}
	return all
}

// provided are the fields of a status that Crossplane adds to the schema of a kind.
var provided = &node{Properties: map[string]*node{"conditions": {Type: "array", Items: &node{Type: "object", Properties: map[string]*node{"type": {Type: "string"}, "status": {Type: "string"}}}}}}

// TestStates proves that the paths of kube-state-metrics are those of the status, in both flavours of the API.
func TestStates(t *testing.T) {
	c := config(t)
	if c.Kind != "CustomResourceStateMetrics" || len(c.Spec.Resources) != 2 {
		t.Fatalf("%s with %d kinds", c.Kind, len(c.Spec.Resources))
	}
	all := schemas(t)
	for _, r := range c.Spec.Resources {
		if len(all[r.GroupVersionKind.Kind]) != 2 {
			t.Fatalf("%s has %d schemas, want one in each flavour", r.GroupVersionKind.Kind, len(all[r.GroupVersionKind.Kind]))
		}
		for _, schema := range all[r.GroupVersionKind.Kind] {
			for _, m := range r.Metrics {
				for _, v := range []*stateValue{m.Each.Gauge, m.Each.Info, m.Each.StateSet} {
					if v != nil {
						v.check(t, r.MetricNamePrefix+"_"+m.Name, schema)
					}
				}
			}
		}
	}
}

func (v *stateValue) check(t *testing.T, metric string, schema *node) {
	t.Helper()
	if v.Path[1] == "conditions" {
		schema = &node{Properties: map[string]*node{"status": provided}}
	}
	of := schema.at(v.Path)
	if of == nil {
		t.Errorf("%s: the status has no %v", metric, v.Path)
		return
	}
	if (v.LabelFromKey != "") != (of.AdditionalProperties != nil) {
		t.Errorf("%s: keys of %v become labels exactly where it is a map", metric, v.Path)
	}
	paths := [][]string{v.ValueFrom}
	for _, p := range v.LabelsFromPath {
		paths = append(paths, p)
	}
	for _, p := range paths {
		if of.element().at(p) == nil {
			t.Errorf("%s: %v has no %v", metric, v.Path, p)
		}
	}
	if value := of.element().at(v.ValueFrom); len(v.List) == 0 && len(v.LabelsFromPath) == 0 && value != nil && value.Type != "integer" {
		t.Errorf("%s: %v is no number, but of type %s", metric, v.Path, value.Type)
	}
}

// TestStatesAllowed proves that kube-state-metrics may read what it is told to, and nothing else of the group.
func TestStatesAllowed(t *testing.T) {
	b, err := os.ReadFile("kube-state-metrics-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(b, &role); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range config(t).Spec.Resources {
		want = append(want, strings.ToLower(r.GroupVersionKind.Kind)+"s")
	}
	if rule := role.Rules[0]; !slices.Equal(rule.Resources, want) || !slices.Equal(rule.Verbs, []string{"list", "watch"}) || rule.APIGroups[0] != "fusioninfer.io" {
		t.Errorf("the role has %v, want to list and watch %v", rule, want)
	}
}

// TestDocumented proves that docs/monitoring.md has the function's own metrics, and no other ones of it.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	have := own(serve.NewMetrics())
	for _, m := range regexp.MustCompile("(?m)^\\| `(fusioninfer_function_[a-z_]+)` \\| ([a-z]+) ").FindAllStringSubmatch(string(doc), -1) {
		if have[m[1]] != m[2] {
			t.Errorf("docs/monitoring.md has %s %s, which the function does not have", m[2], m[1])
		}
		delete(have, m[1])
	}
	for name := range have {
		t.Errorf("docs/monitoring.md lacks %s", name)
	}
}
