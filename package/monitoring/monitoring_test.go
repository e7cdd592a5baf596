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

	"github.com/google/go-cmp/cmp"
	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
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

// What of an expression is no metric. A matcher may name several.
var (
	several  = regexp.MustCompile(`\{__name__=~"([^"]*)"[^}]*\}`)
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
	expr = several.ReplaceAllStringFunc(expr, func(s string) string { return strings.ReplaceAll(several.FindStringSubmatch(s)[1], "|", " ") })
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
	const expr = `histogram_quantile(0.95, sum by (le, role) (rate(a:b_bucket{x="y{}",z=~"a|b"}[5m]))) or up{a!=""} == 0 and 3e6 > c_total * on (cluster) group_right () d + sum({__name__=~"a:e|a:f",x="y"})`
	if got := strings.Join(metrics(expr), " "); got != "a:b_bucket up c_total d a:e a:f" {
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

// TestPodMonitor proves that the function's PodMonitor selects its pods and the port of its metrics, as Crossplane v2.4.2 makes
// them (internal/controller/pkg/runtime/runtime.go: MetricsPortName, and podSelectors there).
func TestPodMonitor(t *testing.T) {
	type manifest struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name, Namespace string
		} `json:"metadata"`
		Spec struct {
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []map[string]string
		} `json:"spec"`
	}
	parse := func(path string) manifest {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(b), "\n---\n")
		m := manifest{}
		if err := yaml.Unmarshal([]byte(first), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	function, want := parse("../install/function.yaml"), manifest{Kind: "PodMonitor"}
	want.Metadata.Name, want.Metadata.Namespace = "function-inferenceservice", "crossplane-system"
	want.Spec.Selector.MatchLabels = map[string]string{"pkg.crossplane.io/function": function.Metadata.Name}
	want.Spec.PodMetricsEndpoints = []map[string]string{{"port": "metrics"}}
	if diff := cmp.Diff(want, parse("pod-monitor.yaml")); diff != "" || function.Kind != "Function" {
		t.Errorf("-want, +got:\n%s", diff)
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
