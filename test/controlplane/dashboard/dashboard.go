// Package dashboard draws pictures of Grafana's dashboards, with what a Prometheus answers. Grafana itself needs a frontend that
// is not built with Go.
package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Types of panels that are known here.
const (
	typeRow        = "row"
	typeTimeSeries = "timeseries"
	typeStat       = "stat"
	typeTable      = "table"
)

// A Dashboard is what a picture shows of Grafana's model of a dashboard.
type Dashboard struct {
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// A Panel has a place on a grid, and queries.
type Panel struct {
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	GridPos     GridPos     `json:"gridPos"`
	FieldConfig FieldConfig `json:"fieldConfig"`
	Targets     []Target    `json:"targets"`
	// Panels are those of a row that is collapsed.
	Panels []json.RawMessage `json:"panels"`

	// Series are the answers, in the order of the targets and of the names.
	Series []Series `json:"-"`
}

// GridPos is a place on a grid of 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// FieldConfig has the unit of a panel's values.
type FieldConfig struct {
	Defaults struct {
		Unit string `json:"unit"`
	} `json:"defaults"`
}

// A Target is a query.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// A Series is a line of a panel. It has one point in a panel that shows no lines.
type Series struct {
	Name   string
	Points []model.SamplePair
}

// hasValue tells whether a series has any value. A rate of nothing is NaN.
func (s Series) hasValue() bool {
	return slices.ContainsFunc(s.Points, func(p model.SamplePair) bool { return isValue(float64(p.Value)) })
}

func isValue(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Read reads a dashboard. A panel of an unknown type is an error, and so is a row that is collapsed.
func Read(file string) (*Dashboard, error) {
	b, err := os.ReadFile(file) //nolint:gosec // The one that was asked for.
	if err != nil {
		return nil, err
	}
	d := &Dashboard{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	for _, p := range d.Panels {
		if !slices.Contains([]string{typeRow, typeTimeSeries, typeStat, typeTable}, p.Type) {
			return nil, fmt.Errorf("%s: panel %q has the type %q, which cannot be drawn", file, p.Title, p.Type)
		}
		if len(p.Panels) > 0 {
			return nil, fmt.Errorf("%s: the row %q is collapsed, which cannot be drawn", file, p.Title)
		}
	}
	return d, nil
}

// A Period is the time that a picture covers.
type Period struct {
	Start, End time.Time
	// Scrape is how often Prometheus reads metrics.
	Scrape time.Duration
}

// points is how many values of a line are asked for.
const points = 120

// Ask asks the Prometheus at a URL for what all panels show. Variables are those of the dashboard.
func (d *Dashboard) Ask(ctx context.Context, url string, variables map[string]string, t Period) error {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", url, err)
	}
	prometheus := v1.NewAPI(client)
	step := max(t.End.Sub(t.Start)/points, t.Scrape)
	// As Grafana sets it.
	values := map[string]string{"__rate_interval": model.Duration(max(step+t.Scrape, 4*t.Scrape)).String()}
	maps.Copy(values, variables)
	for i := range d.Panels {
		p := &d.Panels[i]
		p.Series = nil
		for _, target := range p.Targets {
			query, err := filled(target.Expr, values)
			if err != nil {
				return fmt.Errorf("panel %q: %w", p.Title, err)
			}
			series, err := answer(ctx, prometheus, query, target.LegendFormat, p.Type == typeTimeSeries, v1.Range{Start: t.Start, End: t.End, Step: step})
			if err != nil {
				return fmt.Errorf("panel %q: %w", p.Title, err)
			}
			p.Series = append(p.Series, series...)
		}
	}
	return nil
}

// Empty are the titles of the panels without any value.
func (d *Dashboard) Empty() []string {
	var all []string
	for _, p := range d.Panels {
		if p.Type != typeRow && !slices.ContainsFunc(p.Series, Series.hasValue) {
			all = append(all, p.Title)
		}
	}
	return all
}

// answer is what a query gives: lines over a time, or values at its end.
func answer(ctx context.Context, prometheus v1.API, query, legend string, lines bool, r v1.Range) ([]Series, error) {
	var value model.Value
	var warnings v1.Warnings
	var err error
	if lines {
		value, warnings, err = prometheus.QueryRange(ctx, query, r)
	} else {
		value, warnings, err = prometheus.Query(ctx, query, r.End)
	}
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", query, err)
	}
	if len(warnings) > 0 {
		return nil, fmt.Errorf("query %s: %s", query, strings.Join(warnings, ", "))
	}
	var all []Series
	switch v := value.(type) {
	case model.Matrix:
		for _, s := range v {
			all = append(all, Series{Name: named(legend, s.Metric), Points: s.Values})
		}
	case model.Vector:
		for _, s := range v {
			all = append(all, Series{Name: named(legend, s.Metric), Points: []model.SamplePair{{Timestamp: s.Timestamp, Value: s.Value}}})
		}
	default:
		return nil, fmt.Errorf("query %s: the answer is a %s", query, value.Type())
	}
	slices.SortFunc(all, func(a, b Series) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

var (
	variable = regexp.MustCompile(`\$\{?\w+\}?`)
	label    = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
)

// filled is a query with the values of its variables. An unknown variable is an error.
func filled(expr string, values map[string]string) (string, error) {
	unknown := ""
	query := variable.ReplaceAllStringFunc(expr, func(v string) string {
		value, known := values[strings.Trim(v, "${}")]
		if !known {
			unknown = v
		}
		return value
	})
	if unknown != "" {
		return "", fmt.Errorf("the variable %s is unknown: %s", unknown, expr)
	}
	return query, nil
}

// named is a legend with the labels of a series.
func named(legend string, labels model.Metric) string {
	return label.ReplaceAllStringFunc(legend, func(l string) string {
		return string(labels[model.LabelName(label.FindStringSubmatch(l)[1])])
	})
}
