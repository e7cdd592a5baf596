// Package prometheus proves with Prometheus's own library what the queries of targets and the alerts of
// package/monitoring say.
package prometheus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

// What selects the series of the role that a test is about.
const selected = `inferenceservice_namespace="team",inferenceservice="chat",role="worker"`

// decode reads a file of package/monitoring.
func decode(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "package", "monitoring", filepath.Base(name)))
	if err == nil {
		err = yaml.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// external returns the query of an external metric. KEDA asks the same: see TestRulesOfAdapter.
func external(t *testing.T, name string) string {
	t.Helper()
	var config struct {
		ExternalRules []struct {
			Name         struct{ As string } `json:"name"`
			MetricsQuery string              `json:"metricsQuery"`
		} `json:"externalRules"`
	}
	decode(t, "prometheus-adapter.yaml", &config)
	for _, r := range config.ExternalRules {
		if r.Name.As == name {
			return strings.ReplaceAll(r.MetricsQuery, "<<.LabelMatchers>>", selected)
		}
	}
	t.Fatalf("there is no external metric %s", name)
	return ""
}

// alert returns the expression of an alert.
func alert(t *testing.T, name string) string {
	t.Helper()
	var config struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	decode(t, "rules.yaml", &config)
	for _, g := range config.Spec.Groups {
		for _, r := range g.Rules {
			if r.Alert == name {
				return r.Expr
			}
		}
	}
	t.Fatalf("there is no alert %s", name)
	return ""
}

// wakes is the query that says whether a role of an example is to run.
func wakes(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "example", "scaling-from-zero", "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(b), "\n---\n") {
		var scaled struct {
			Spec struct {
				Triggers []struct {
					Name     string
					Metadata struct{ Query string }
				}
			}
		}
		if !strings.Contains(doc, "kind: ScaledObject\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(doc), &scaled); err != nil {
			t.Fatal(err)
		}
		for _, trigger := range scaled.Spec.Triggers {
			if trigger.Name == "requests" {
				return trigger.Metadata.Query
			}
		}
	}
	t.Fatal("the example has no trigger for requests")
	return ""
}

// evaluate returns the values of an expression after a time, without their labels. SERIES is what selects a role, and SGLANG
// is what all series of an engine of SGLang have besides.
func evaluate(t *testing.T, series, expr string, after time.Duration) []float64 {
	t.Helper()
	load := strings.NewReplacer("SERIES", selected, "SGLANG", `engine_type="unified",tp_rank="0",pp_rank="0",moe_ep_rank="0"`).Replace(series)
	storage := promqltest.LoadedStorage(t, "load 30s\n"+load)
	engine := promqltest.NewTestEngine(t, false, 0, 1e6)
	q, err := engine.NewInstantQuery(context.Background(), storage, nil, expr, time.Unix(0, 0).Add(after))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	for _, s := range v {
		all = append(all, s.F)
	}
	return all
}

// rounded ignores what calculations with floating points lose.
var rounded = cmpopts.EquateApprox(0, 1e-9)

// TestExternalMetrics proves what targets measure.
func TestExternalMetrics(t *testing.T) {
	const (
		waiting, running, percent = "fusioninfer_waiting_requests", "fusioninfer_running_requests", "fusioninfer_kv_cache_utilization_percent"
		tokens, firstToken        = "fusioninfer_tokens_per_second", "fusioninfer_time_to_first_token_milliseconds"

		// left is an engine that Prometheus no longer looks for after ten minutes. No staleness marker ends its series.
		left = ` 4x20 _x40`
		// gone is one that Prometheus has seen go.
		gone = ` 4x20 stale`
		// gap is an engine while Prometheus does not run for seven minutes after ten.
		gap = `vllm:generation_tokens_total{SERIES,pod="a"} 0+30x20 _x13 1020+30x26` + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x20 _x13 1x26`
		// back are two engines of which Prometheus reads one half a minute later than the other, after it has not run for seven minutes after ten.
		back = `vllm:num_requests_running{SERIES,pod="a"} 4x20 _x14 4x26` + "\n" + `vllm:num_requests_running{SERIES,pod="b"} 4x20 _x15 4x25`
		// ends is when both are gone.
		ends = 10 * time.Minute
	)
	// requests are an engine's histogram of requests, each of which got its first token in half a second.
	requests := func(labels string) string {
		of := "{SERIES," + labels
		return "vllm:time_to_first_token_seconds_bucket" + of + `,le="0.5"} 0+1x60` +
			"\nvllm:time_to_first_token_seconds_bucket" + of + `,le="+Inf"} 0+1x60` +
			"\nvllm:time_to_first_token_seconds_count" + of + `} 0+1x60`
	}
	cases := map[string]struct {
		reason, metric, series string
		after                  time.Duration
		want                   []float64
	}{
		"Sum":        {reason: "Each engine counts.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"} 1x60` + "\n" + `vllm:num_requests_running{SERIES,pod="b"} 2x60`, after: ends, want: []float64{3}},
		"Rollout":    {reason: "It replaces vLLM by SGLang, and both count.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"} 1x60` + "\n" + `sglang:num_running_reqs{SERIES,SGLANG,pod="b"} 2x60`, after: ends, want: []float64{3}},
		"OtherRole":  {reason: "Each role has its own.", metric: running, series: `vllm:num_requests_running{inferenceservice_namespace="team",inferenceservice="chat",role="other"} 1x60`, after: ends},
		"Missing":    {reason: "Nothing moves.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"}` + left, after: ends + 4*time.Minute},
		"Late":       {reason: "Prometheus has missed two scrapes of the usual minute.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"}` + left, after: ends + 2*time.Minute + 50*time.Second, want: []float64{4}},
		"Left":       {reason: "The PodMonitor went with the pods.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a",cluster="east"}` + left + "\n" + `vllm:num_requests_running{SERIES,pod="a",cluster="west"} 2x60`, after: ends + 4*time.Minute, want: []float64{2}},
		"Gone":       {reason: "It does not count until its series is too old.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"}` + gone + "\n" + `vllm:num_requests_running{SERIES,pod="b"} 2x60`, after: ends + time.Minute, want: []float64{2}},
		"LeftQueue":  {reason: "Nothing waits there any more.", metric: waiting, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a"}` + left + "\n" + `sglang:num_queue_reqs{SERIES,SGLANG,pod="b"} 2x60`, after: ends + 4*time.Minute, want: []float64{2}},
		"LeftCache":  {reason: "It has no cache any more.", metric: percent, series: `vllm:kv_cache_usage_perc{SERIES,pod="a"}` + left + "\n" + `vllm:kv_cache_usage_perc{SERIES,pod="b"} 0.5x60`, after: ends + 4*time.Minute, want: []float64{50}},
		"DataRanks":  {reason: "Both are of one engine.", metric: percent, series: `vllm:kv_cache_usage_perc{SERIES,pod="a",engine="0"} 0.25x60` + "\n" + `vllm:kv_cache_usage_perc{SERIES,pod="a",engine="1"} 0.75x60`, after: ends, want: []float64{50}},
		"AllRanks":   {reason: "So they are in SGLang.", metric: percent, series: `sglang:token_usage{SERIES,pod="a",dp_rank="0",tp_rank="0",moe_ep_rank="0"} 0.25x60` + "\n" + `sglang:token_usage{SERIES,pod="a",dp_rank="1",tp_rank="2",moe_ep_rank="2"} 0.75x60`, after: ends, want: []float64{50}},
		"TwoPods":    {reason: "The HorizontalPodAutoscaler divides the sum.", metric: percent, series: `vllm:kv_cache_usage_perc{SERIES,pod="a",engine="0"} 0.25x60` + "\n" + `vllm:kv_cache_usage_perc{SERIES,pod="b",engine="0"} 0.75x60`, after: ends, want: []float64{100}},
		"TwoCopies":  {reason: "Only an external label tells the copies of a replica apart.", metric: percent, series: `vllm:kv_cache_usage_perc{SERIES,namespace="n",pod="a",engine="0",cluster="east"} 0.25x60` + "\n" + `vllm:kv_cache_usage_perc{SERIES,namespace="n",pod="a",engine="0",cluster="west"} 0.75x60`, after: ends, want: []float64{100}},
		"Decode":     {reason: "A request waits for memory before it is in the queue of the scheduler.", metric: waiting, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a"} 1x60` + "\n" + `sglang:num_decode_prealloc_queue_reqs{SERIES,SGLANG,pod="a"} 5x60`, after: ends, want: []float64{6}},
		"Transfer":   {reason: "It waits for prefill.", metric: waiting, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a"} 1x60` + "\n" + `sglang:num_decode_transfer_queue_reqs{SERIES,SGLANG,pod="a"} 5x60`, after: ends, want: []float64{1}},
		"Bootstrap":  {reason: "It waits for decode.", metric: waiting, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a"} 1x60` + "\n" + `sglang:num_prefill_bootstrap_queue_reqs{SERIES,SGLANG,pod="a"} 5x60`, after: ends, want: []float64{1}},
		"Priorities": {reason: "SGLang has the total, and the parts of it by priority.", metric: waiting, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a",priority=""} 9x60` + "\n" + `sglang:num_queue_reqs{SERIES,SGLANG,pod="a",priority="1"} 4x60` + "\n" + `sglang:num_queue_reqs{SERIES,SGLANG,pod="a",priority="2"} 5x60`, after: ends, want: []float64{9}},
		"NoPrealloc": {reason: "What an engine lacks does not matter.", metric: waiting, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a"} 1x60`, after: ends, want: []float64{1}},
		"Tokens":     {reason: "What was generated counts for as long as it is in the window.", metric: tokens, series: `vllm:generation_tokens_total{SERIES,pod="a"} 0+30x60` + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x60`, after: ends, want: []float64{1}},
		"TokensBoth": {
			reason: "The pod had vLLM before it had SGLang. Each rate goes half an interval beyond its samples.", metric: tokens, after: ends, want: []float64{1.05},
			series: `vllm:generation_tokens_total{SERIES,pod="a"} 0+30x15 stale` + "\n" + `sglang:generation_tokens_total{SERIES,SGLANG,pod="a"} _x15 0+30x40` + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x15 stale`,
		},
		"TokensGap":  {reason: "Prometheus has been back for a minute and a half only.", metric: tokens, series: gap, after: ends + 8*time.Minute + 30*time.Second},
		"TokensBack": {reason: "It has read for the whole time again.", metric: tokens, series: gap, after: ends + 12*time.Minute + 30*time.Second, want: []float64{1}},
		"Back":       {reason: "Prometheus has read only one of two engines again.", metric: running, series: back, after: ends + 7*time.Minute + 35*time.Second},
		"BackBoth":   {reason: "It has read both for two intervals.", metric: running, series: back, after: ends + 10*time.Minute, want: []float64{8}},
		"BackCache":  {reason: "So it is for each gauge.", metric: percent, series: strings.ReplaceAll(back, "vllm:num_requests_running", "vllm:kv_cache_usage_perc") + "\n" + back, after: ends + 7*time.Minute + 35*time.Second},
		"BackToken":  {reason: "And for the time to the first token, which counts engines.", metric: firstToken, series: requests(`pod="a"`) + "\n" + back, after: ends + 7*time.Minute + 35*time.Second},
		"New":        {reason: "More engines of a role that has just started may come.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"} _x17 4x40`, after: ends},
		"Started":    {reason: "It was read for two intervals.", metric: running, series: `vllm:num_requests_running{SERIES,pod="a"} _x15 4x40`, after: ends, want: []float64{4}},
		"TokensLeft": {reason: "What it generated counts.", metric: tokens, series: `vllm:generation_tokens_total{SERIES,pod="a"} 0+30x60` + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x16 stale`, after: ends, want: []float64{1}},
		"TokensMore": {reason: "One that has just started does not hide the others.", metric: tokens, series: `vllm:generation_tokens_total{SERIES,pod="a"} 0+30x60` + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x60` + "\n" + `vllm:num_requests_running{SERIES,pod="b"} _x18 1x42`, after: ends, want: []float64{1}},
		"FirstToken": {reason: "The number of engines makes it a sum.", metric: firstToken, series: requests(`pod="a",engine="0"`) + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0"} 0x60` + "\n" + `vllm:num_requests_running{SERIES,pod="b",engine="0"} 0x60`, after: ends, want: []float64{950}},
		"FirstTokenBoth": {
			reason: "The engines have other buckets. All requests took 1.2 seconds, of which each engine knows only that they took no more than its next bucket.", metric: firstToken, after: ends, want: []float64{2 * 2425},
			series: `vllm:time_to_first_token_seconds_bucket{SERIES,pod="a",le="1.0"} 0x60` + "\n" + `vllm:time_to_first_token_seconds_bucket{SERIES,pod="a",le="2.5"} 0+1x60` + "\n" + `vllm:time_to_first_token_seconds_bucket{SERIES,pod="a",le="+Inf"} 0+1x60` + "\n" +
				`sglang:time_to_first_token_seconds_bucket{SERIES,SGLANG,pod="b",le="1"} 0x60` + "\n" + `sglang:time_to_first_token_seconds_bucket{SERIES,SGLANG,pod="b",le="2"} 0+1x60` + "\n" + `sglang:time_to_first_token_seconds_bucket{SERIES,SGLANG,pod="b",le="+Inf"} 0+1x60` + "\n" +
				`vllm:num_requests_running{SERIES,pod="a"} 0x60` + "\n" + `sglang:num_running_reqs{SERIES,SGLANG,pod="b"} 0x60`,
		},
		"FirstTokenCopies": {
			reason: "Both copies of a replica are engines. One that has left is none.", metric: firstToken,
			series: requests(`pod="a",engine="0",cluster="east"`) + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0",cluster="east"} 0x60` + "\n" +
				`vllm:num_requests_running{SERIES,pod="a",engine="0",cluster="west"} 0x60` + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0",cluster="north"}` + left,
			after: ends + 4*time.Minute, want: []float64{950},
		},
		"FirstTokenMore": {
			reason: "The time is that of the one engine which was there all along. The others would count for requests that they never had.", metric: firstToken,
			series: requests(`pod="a",engine="0"`) + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0"} 0x60` + "\n" +
				`vllm:num_requests_running{SERIES,pod="b",engine="0"} _x16 0x44` + "\n" + `vllm:num_requests_running{SERIES,pod="c",engine="0"} _x16 0x44`,
			after: ends, want: []float64{475},
		},
		"FirstTokenAll": {
			reason: "All three have been there since then.", metric: firstToken,
			series: requests(`pod="a",engine="0"`) + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0"} 0x60` + "\n" +
				`vllm:num_requests_running{SERIES,pod="b",engine="0"} _x16 0x44` + "\n" + `vllm:num_requests_running{SERIES,pod="c",engine="0"} _x16 0x44`,
			after: ends + 4*time.Minute, want: []float64{1425},
		},
		"FirstTokenFewer": {
			reason: "One that has gone is none.", metric: firstToken,
			series: requests(`pod="a",engine="0"`) + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0"} 0x60` + "\n" + `vllm:num_requests_running{SERIES,pod="b",engine="0"} 0x18 stale`,
			after:  ends, want: []float64{475},
		},
		"FirstTokenStart": {
			reason: "None was there before.", metric: firstToken,
			series: requests(`pod="a",engine="0"`) + "\n" + `vllm:num_requests_running{SERIES,pod="a",engine="0"} _x12 0x48` + "\n" + `vllm:num_requests_running{SERIES,pod="b",engine="0"} _x12 0x48`,
			after:  ends, want: []float64{950},
		},
		"FirstTokenStuck": {
			reason: "Requests wait and none gets a first token, so its time is not known.", metric: firstToken, after: ends, want: nil,
			series: `vllm:time_to_first_token_seconds_bucket{SERIES,pod="a",le="+Inf"} 7x60` + "\n" + `vllm:time_to_first_token_seconds_count{SERIES,pod="a"} 7x60` + "\n" +
				`vllm:num_requests_running{SERIES,pod="a"} 4x60` + "\n" + `vllm:num_requests_waiting{SERIES,pod="a"} 9x60`,
		},
		"FirstTokenIdle": {
			reason: "Without requests it is 0.", metric: firstToken, after: ends, want: []float64{0},
			series: `vllm:time_to_first_token_seconds_bucket{SERIES,pod="a",le="+Inf"} 7x60` + "\n" + `vllm:time_to_first_token_seconds_count{SERIES,pod="a"} 7x60` + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 0x60`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			series := tc.series
			if !strings.Contains(series, "num_requests_running") && !strings.Contains(series, "num_running_reqs") {
				series += "\n" + `vllm:num_requests_running{SERIES,pod="read"} 0x60` // Each engine has this gauge.
			}
			if diff := cmp.Diff(tc.want, evaluate(t, series, external(t, tc.metric), tc.after), rounded); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWakes proves when a role that may stop is to run.
func TestWakes(t *testing.T) {
	const (
		router = `inferenceservice_namespace="team",inferenceservice="chat",role="router"`
		up     = `up{` + router + `,pod="r"} 1x60`
		// asleep are the series of an engine that Prometheus has seen go.
		asleep = up + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x20 stale` + "\n" + `vllm:num_requests_waiting{SERIES,pod="a"} 0x20 stale`
		ends   = 20 * time.Minute
	)
	idle := up + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 0x60` + "\n" + `vllm:num_requests_waiting{SERIES,pod="a"} 0x60`
	cases := map[string]struct {
		reason, series string
		after          time.Duration
		want           []float64
	}{
		"Asleep":   {reason: "Nobody uses it.", series: asleep, after: ends, want: []float64{0}},
		"Idle":     {reason: "Nobody uses it, either.", series: idle, after: ends, want: []float64{0}},
		"Waits":    {reason: "A request waits in the endpoint picker.", series: asleep + "\n" + `inference_extension_flow_control_queue_size{` + router + `,pod="r"} 1x60`, after: ends, want: []float64{1}},
		"Runs":     {reason: "A request is being answered.", series: up + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x60`, after: ends, want: []float64{1}},
		"Started":  {reason: "It has been there for a minute.", series: up + "\n" + `vllm:num_requests_running{SERIES,pod="a"} _x18 0x60`, after: 10 * time.Minute, want: []float64{1}},
		"Lost":     {reason: "What Prometheus has read last keeps the role awake for longer than its target has a result.", series: up + "\n" + `vllm:num_requests_running{SERIES,pod="a"} 1x20 _x40`, after: 14 * time.Minute, want: []float64{1}},
		"NoRouter": {reason: "A request may wait unseen.", series: `vllm:num_requests_running{SERIES,pod="a"} 0x60`, after: ends},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, evaluate(t, tc.series, wakes(t), tc.after), rounded); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAlerts proves when alerts fire whose expressions are not plain. What is left of the expression says so.
func TestAlerts(t *testing.T) {
	const (
		queues, large = "InferenceServiceQueues", "InferenceFunctionResponsesLarge"
		away, apply   = "InferenceClusterUnreachable", "InferenceServiceNotSynced"
		down          = "InferenceFunctionDown"
		rollout       = "InferenceServiceRolloutStopped"
		short, closed = "InferenceClusterInconsistent", "InferenceClusterNotSchedulable"
		ends          = 30 * time.Minute
	)
	// responses are the buckets at 2 MiB, 3 MiB and 4 MiB, as increases in 30 seconds.
	responses := func(two, three, four string) string {
		of := `fusioninfer_function_response_size_bytes_bucket{kind="InferenceService",pod="f",le=`
		return of + `"2.097152e+06"} 0+` + two + "x60\n" + of + `"3.145728e+06"} 0+` + three + "x60\n" + of + `"4.194304e+06"} 0+` + four + "x60\n" +
			of + `"+Inf"} 0+` + four + "x60\n" + `fusioninfer_function_response_size_bytes_count{kind="InferenceService",pod="f"} 0+` + four + "x60"
	}
	// condition are the series of a condition of a resource.
	condition := func(of, condition, status string) string {
		all := strings.Builder{}
		for _, s := range []string{"True", "False", "Unknown"} {
			value := 0
			if s == status {
				value = 1
			}
			fmt.Fprintf(&all, "%s,type=%q,status=%q} %dx60\n", of, condition, s, value)
		}
		return all.String()
	}
	const (
		service = `fusioninfer_inferenceservice_condition{inferenceservice_namespace="team",inferenceservice="chat"`
		east    = `fusioninfer_inferencecluster_condition{cluster="east"`
	)
	// held is the number of replicas that a rollout has not come to.
	held := func(n int) string {
		return fmt.Sprintf(`fusioninfer_inferenceservice_rollout_replicas_held{inferenceservice_namespace="team",inferenceservice="chat"} %dx60`, n)
	}
	// because is the series of a condition of a cluster with its reason.
	because := func(condition, status, reason string) string {
		return fmt.Sprintf("fusioninfer_inferencecluster_condition_reason{cluster=%q,type=%q,status=%q,reason=%q} 1x60", "east", condition, status, reason)
	}
	cases := map[string]struct {
		reason, alert, series string
		want                  []float64
	}{
		"Queue":       {reason: "It is above ten.", alert: queues, series: `vllm:num_requests_waiting{SERIES,pod="a",engine="0"} 11x60`, want: []float64{11}},
		"ShortQueue":  {reason: "It is the mean of the engines.", alert: queues, series: `vllm:num_requests_waiting{SERIES,pod="a",engine="0"} 11x60` + "\n" + `vllm:num_requests_waiting{SERIES,pod="b",engine="0"} 1x60`},
		"RankQueues":  {reason: "The ranks of an engine share its requests.", alert: queues, series: `vllm:num_requests_waiting{SERIES,pod="a",engine="0"} 6x60` + "\n" + `vllm:num_requests_waiting{SERIES,pod="a",engine="1"} 6x60`, want: []float64{12}},
		"RanksSGLang": {reason: "So they do in SGLang.", alert: queues, series: `sglang:num_queue_reqs{SERIES,pod="a",dp_rank="0",tp_rank="0"} 6x60` + "\n" + `sglang:num_queue_reqs{SERIES,pod="a",dp_rank="1",tp_rank="1"} 6x60`, want: []float64{12}},
		"Priorities":  {reason: "SGLang has the total, and the parts of it by priority.", alert: queues, series: `sglang:num_queue_reqs{SERIES,pod="a",priority=""} 18x60` + "\n" + `sglang:num_queue_reqs{SERIES,pod="a",priority="1"} 9x60` + "\n" + `sglang:num_queue_reqs{SERIES,pod="a",priority="2"} 9x60`, want: []float64{18}},
		"Others":      {reason: "These engines are of no InferenceService.", alert: queues, series: `vllm:num_requests_waiting{pod="a",engine="0"} 11x60` + "\n" + `sglang:num_queue_reqs{pod="b"} 11x60`},
		"OthersFull":  {reason: "Nor is this one.", alert: "InferenceServiceCacheFull", series: `vllm:kv_cache_usage_perc{pod="a",engine="0"} 1x60` + "\n" + `sglang:token_usage{pod="b"} 1x60`},
		"Decode":      {reason: "Most requests wait for memory.", alert: queues, series: `sglang:num_queue_reqs{SERIES,SGLANG,pod="a"} 1x60` + "\n" + `sglang:num_decode_prealloc_queue_reqs{SERIES,SGLANG,pod="a"} 11x60`, want: []float64{12}},

		"Away":       {reason: "provider-kubernetes does not reach it.", alert: away, series: condition(east, "Reachable", "False") + condition(east, "Synced", "True"), want: []float64{0}},
		"NotYet":     {reason: "provider-kubernetes has not reported it.", alert: away, series: condition(east, "Reachable", "Unknown") + condition(east, "Synced", "True"), want: []float64{0}},
		"Unknown":    {reason: "Crossplane sets it while the function cannot answer.", alert: away, series: condition(east, "Reachable", "Unknown") + condition(east, "Synced", "False")},
		"NotApplied": {reason: "An object cannot be applied.", alert: apply, series: condition(service, "Synced", "False") + condition(service, "Accepted", "Unknown"), want: []float64{1}},
		"Refused":    {reason: "Another alert says so.", alert: apply, series: condition(service, "Synced", "False") + condition(service, "Accepted", "False")},
		"Up":         {reason: "It is there.", alert: down, series: `fusioninfer_function_calls_total{kind="other",result="error",pod="f"} 0x60`},
		"Down":       {reason: "Prometheus no longer reads a pod of it.", alert: down, series: `fusioninfer_function_calls_total{kind="other",result="error",pod="f"} 0x20 stale`, want: []float64{1}},
		"Elsewhere":  {reason: "This Prometheus reads engines in another cluster.", alert: down, series: `up{pod="other"} 1x60`},

		"Stopped":    {reason: "Some replicas keep their former pods.", alert: rollout, series: condition(service, "RolledOut", "False") + held(2), want: []float64{1}},
		"NoRollout":  {reason: "All have the newest pods, and some are not ready: another alert says so.", alert: rollout, series: condition(service, "RolledOut", "False") + held(0)},
		"Partition":  {reason: "Those below the partition are to keep theirs.", alert: rollout, series: condition(service, "RolledOut", "True") + held(2)},
		"Short":      {reason: "More is reserved than there is.", alert: short, series: because("CapacityConsistent", "False", "Overcommitted"), want: []float64{1}},
		"Unreserved": {reason: "Something runs without a reservation.", alert: short, series: because("CapacityConsistent", "False", "RunsWithoutReservation"), want: []float64{1}},
		"Grows":      {reason: "A service waits, which another alert says.", alert: short, series: because("CapacityConsistent", "False", "GrowthPending")},
		"Consistent": {reason: "All is well.", alert: short, series: because("CapacityConsistent", "True", "Consistent")},
		"NoLedger":   {reason: "Nobody wanted that.", alert: closed, series: because("Schedulable", "False", "LedgerMissing"), want: []float64{1}},
		"OnHold":     {reason: "Somebody wants that.", alert: closed, series: because("Schedulable", "False", "OnHold")},
		"ShortToo":   {reason: "Another alert says so.", alert: closed, series: because("Schedulable", "False", "Overcommitted")},
		"Shared":     {reason: "Another alert says so, too.", alert: closed, series: because("Schedulable", "False", "UnexpectedCluster")},
		"NotUs":      {reason: "Another cluster answers.", alert: "InferenceClusterNotExclusive", series: condition(east, "Exclusive", "False"), want: []float64{1}},
		"Ours":       {reason: "Nobody else uses it.", alert: "InferenceClusterNotExclusive", series: condition(east, "Exclusive", "True")},

		"Half":  {reason: "All responses are a little above 2 MiB.", alert: large, series: responses("0", "10", "10")},
		"Small": {reason: "All responses are small.", alert: large, series: responses("10", "10", "10")},
		"One":   {reason: "One response of a thousand is near the limit: that of one service.", alert: large, series: responses("1000", "1000", "1001"), want: []float64{60}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, evaluate(t, tc.series, alert(t, tc.alert), ends), rounded); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
