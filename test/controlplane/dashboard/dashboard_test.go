package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/png"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asked are the queries that a Prometheus got.
type asked []string

// prometheus answers each query with one series. One that contains none gets no series, and one that contains "nan" no value.
func prometheus(t *testing.T, queries *asked, none string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		query := r.Form.Get("query")
		*queries = append(*queries, query)
		labels := map[string]string{"role": "decode", "cluster": "east", "type": "Ready", "kind": "InferenceService"}
		data := map[string]any{"resultType": "vector", "result": []any{map[string]any{"metric": labels, "value": []any{1000, "3"}}}}
		if strings.HasSuffix(r.URL.Path, "query_range") {
			start, _ := strconv.ParseFloat(r.Form.Get("start"), 64)
			end, _ := strconv.ParseFloat(r.Form.Get("end"), 64)
			step, _ := strconv.ParseFloat(r.Form.Get("step"), 64)
			var values []any
			for at := start; at <= end; at += step {
				v := "NaN" // As a rate has it before there are requests.
				if at > start+60 && !strings.Contains(query, "nan") {
					v = fmt.Sprint((at - start) / 60)
				}
				values = append(values, []any{at, v})
			}
			data = map[string]any{"resultType": "matrix", "result": []any{map[string]any{"metric": labels, "values": values}}}
		}
		if none != "" && strings.Contains(query, none) {
			data["result"] = []any{}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestDashboards proves that each dashboard of package/monitoring can be drawn, and that no variable is left in its queries.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("../../../package/monitoring/dashboards/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d dashboards, want three at least: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			d, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			var queries asked
			during := Period{Start: time.Unix(960, 0), End: time.Unix(1560, 0), Scrape: 2 * time.Second}
			variables := map[string]string{"namespace": "team-a", "inferenceservice": "chat"}
			if err := d.Ask(t.Context(), prometheus(t, &queries, "sglang:"), variables, during); err != nil {
				t.Fatal(err)
			}
			for _, q := range queries {
				if strings.Contains(q, "$") {
					t.Errorf("a variable is left in %s", q)
				}
			}
			if empty := d.Empty(); empty != nil {
				t.Errorf("panels without values: %v", empty)
			}
			picture := &bytes.Buffer{}
			if err := d.Draw(picture, during); err != nil {
				t.Fatal(err)
			}
			config, format, err := image.DecodeConfig(bytes.NewReader(picture.Bytes()))
			if err != nil || format != "png" || config.Width != 1200 || config.Height < 600 {
				t.Errorf("the picture is %q of %d x %d: %v", format, config.Width, config.Height, err)
			}
		})
	}
}

// TestAsk proves what is asked, how a line is named, and which panels have no values.
func TestAsk(t *testing.T) {
	d := &Dashboard{Panels: []Panel{
		{Type: typeRow, Title: "A row"},
		{Type: typeTimeSeries, Title: "Lines", Targets: []Target{{Expr: `rate(x{service="$service"}[$__rate_interval])`, LegendFormat: "{{role}} of {{cluster}}"}}},
		{Type: typeStat, Title: "None", Targets: []Target{{Expr: "none"}}},
		{Type: typeTimeSeries, Title: "No value", Targets: []Target{{Expr: "nan"}}},
	}}
	var queries asked
	during := Period{Start: time.Unix(960, 0), End: time.Unix(1560, 0), Scrape: 2 * time.Second}
	if err := d.Ask(t.Context(), prometheus(t, &queries, "none"), map[string]string{"service": "chat"}, during); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked{`rate(x{service="chat"}[8s])`, "none", "nan"}, queries); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := d.Panels[1].Series[0].Name; got != "decode of east" {
		t.Errorf("the line is %q", got)
	}
	if diff := cmp.Diff([]string{"None", "No value"}, d.Empty()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	d.Panels[1].Targets[0].Expr = "x{service='$other'}"
	if err := d.Ask(t.Context(), prometheus(t, &queries, ""), nil, during); err == nil || !strings.Contains(err.Error(), "$other") {
		t.Errorf("an unknown variable: %v", err)
	}
}

// TestConnected proves that a line is not drawn where it has no values.
func TestConnected(t *testing.T) {
	var queries asked
	d := &Dashboard{Panels: []Panel{{Type: typeTimeSeries, Targets: []Target{{Expr: "x"}}}}}
	during := Period{Start: time.Unix(960, 0), End: time.Unix(1560, 0), Scrape: 2 * time.Second}
	if err := d.Ask(t.Context(), prometheus(t, &queries, ""), nil, during); err != nil {
		t.Fatal(err)
	}
	all := d.Panels[0].Series[0].Points
	parts := connected(append(all[:40:40], all[60:]...), during)
	if len(parts) != 2 || parts[0][0].X <= 1020 {
		t.Errorf("%d parts, want two, the first of which begins after the values that are NaN", len(parts))
	}
}
