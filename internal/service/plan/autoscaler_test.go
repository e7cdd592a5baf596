package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

const (
	vllmPod   = `{spec: {containers: [{name: vllm, image: vllm/vllm-openai:v0.12.0, args: [--model=m]}]}}`
	sglangPod = `{spec: {containers: [{name: main, image: lmsysorg/sglang:v0.5.18, command: [python3, -m, sglang.launch_server, --model-path=m, --host=0.0.0.0, --enable-metrics]}]}}`
	otherPod  = `{spec: {containers: [{name: engine, image: i, command: [serve]}]}}`

	prometheus = `monitoring: {podMonitors: {}}, scaling: {prometheus: {serverAddress: "http://p:9090"}}`
)

// scaledBy is the spec of a service with a role that scales.
func scaledBy(pod, scaling string) string {
	return `{roles: [{name: w, componentType: worker, scaling: {` + scaling + `}, template: ` + pod + `}]}`
}

// refused tells whether a plan is refused, which it has to be with some text, or not at all without one.
func refused(t *testing.T, reason, want string, err error) bool {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\n-want +got:\n%s", reason, diff)
	}
	return err != nil
}

// fresh is the sum of the gauges of engines that Prometheus has read within three intervals. There is none until it has read some series for two.
func fresh(gauge, within, read string) string {
	two := map[string]string{"[180s]": "120s", "[120s]": "80s"}[within]
	return "sum(" + gauge + " and last_over_time(" + gauge + within + ")) and count(last_over_time(" + read + "[" + two + "] offset " + two + "))"
}

// Gauges of the engines of a role, without those of a priority.
const (
	waitingInEngine = `{__name__=~"vllm:num_requests_waiting|sglang:num_queue_reqs|sglang:num_decode_prealloc_queue_reqs",inferenceservice_namespace="ns",inferenceservice="svc",role="w",priority=""}`
	runningInEngine = `{__name__=~"vllm:num_requests_running|sglang:num_running_reqs",inferenceservice_namespace="ns",inferenceservice="svc",role="w",priority=""}`
)

// Series by which a query tells whether Prometheus has read a role.
const (
	readEngine = `{__name__=~"vllm:num_requests_running|sglang:num_running_reqs",inferenceservice_namespace="ns",inferenceservice="svc",role="w"}`
	readPicker = `up{inferenceservice_namespace="ns",inferenceservice="svc",role="router"}`
)

func TestAutoscaler(t *testing.T) {
	waiting := fresh(waitingInEngine, "[180s]", readEngine)
	const replicated = "must be left out where spec.placement runs all replicas in each of several clusters, because metrics do not tell these apart: use the policy Spread or Failover, or metrics or triggers"
	trigger := func(query, threshold string) []v1alpha1.ScalingTrigger {
		return []v1alpha1.ScalingTrigger{{Type: "prometheus", Name: "target", MetricType: "AverageValue", Metadata: map[string]string{
			"serverAddress": "http://p:9090", "query": query, "threshold": threshold, "ignoreNullValues": "false", "activationThreshold": "1000000000",
		}}}
	}
	cases := map[string]struct {
		reason, spec, input string
		want                *Autoscaler
		warned              string
		refused             string
	}{
		"None":   {reason: "Without any of them there is only the scale target.", spec: scaledBy(vllmPod, `maxReplicas: 4`)},
		"Target": {reason: "KEDA divides the sum by the threshold.", spec: scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`), input: `{` + prometheus + `}`, want: &Autoscaler{Kind: key.ScaledObject, Min: 1, Max: 4, Triggers: trigger(waiting, "3")}},
		"SGLang": {reason: "The query is the same for each engine: a rollout may replace one by the other.", spec: scaledBy(sglangPod, `minReplicas: 2, maxReplicas: 4, target: {runningRequests: 30}`), input: `{` + prometheus + `}`, want: &Autoscaler{Kind: key.ScaledObject, Min: 2, Max: 4, Triggers: trigger(fresh(runningInEngine, "[180s]", readEngine), "30")}},
		"Interval": {
			reason: "Engines count for three intervals.", spec: scaledBy(vllmPod, `maxReplicas: 4, target: {runningRequests: 3}`), input: `{` + strings.Replace(prometheus, "podMonitors: {}", "podMonitors: {interval: 40s}", 1) + `}`,
			want: &Autoscaler{Kind: key.ScaledObject, Min: 1, Max: 4, Triggers: trigger(fresh(runningInEngine, "[120s]", readEngine), "3")},
		},
		"Queues": {
			reason: "Requests wait in several queues of SGLang.", spec: scaledBy(sglangPod, `maxReplicas: 4, target: {waitingRequests: 3}`), input: `{` + prometheus + `}`,
			want: &Autoscaler{Kind: key.ScaledObject, Min: 1, Max: 4, Triggers: trigger(fresh(waitingInEngine, "[180s]", readEngine), "3")},
		},
		"HPA": {
			reason: "An adapter serves the metric. Prometheus is its matter.", spec: scaledBy(vllmPod, `maxReplicas: 4, target: {kvCacheUtilizationPercent: 80}`),
			input: `{monitoring: {podMonitors: {}}, scaling: {provider: HPA}}`,
			want:  &Autoscaler{Kind: key.HorizontalPodAutoscaler, Min: 1, Max: 4, External: &ExternalMetric{Name: "fusioninfer_kv_cache_utilization_percent", PerReplica: 80, Labels: map[string]string{"inferenceservice_namespace": "ns", "inferenceservice": "svc", "role": "w"}}},
		},
		"Trigger": {
			reason: "A tenant may be allowed a type of trigger.", spec: scaledBy(otherPod, `minReplicas: 0, maxReplicas: 4, triggers: [{type: cron, metadata: {start: x}}]`),
			input: `{allowedTriggers: [kafka], tenants: [{namespaces: [ns], allowedTriggers: ["cr*"]}]}`,
			want:  &Autoscaler{Kind: key.ScaledObject, Max: 4, Triggers: []v1alpha1.ScalingTrigger{{Type: "cron", Metadata: map[string]string{"start": "x"}}}},
		},
		"NotMonitored": {
			reason: "The platform team may scrape engines by means of its own.", spec: scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`), input: `{scaling: {prometheus: {serverAddress: "http://p:9090"}}}`,
			want:   &Autoscaler{Kind: key.ScaledObject, Min: 1, Max: 4, Triggers: trigger(waiting, "3")},
			warned: "spec.roles[0].scaling.target: nothing scales the role unless Prometheus has the metrics of its engines with the labels of PodMonitors, which the platform team has not turned on (monitoring.podMonitors in the Composition's input)",
		},
		"NoPrometheus": {
			reason: "KEDA has nothing to query.", spec: scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`),
			refused: `spec.roles[0].scaling.target: Forbidden: must be left out until the platform team says where Prometheus is (scaling.prometheus.serverAddress in the Composition's input)`,
		},
		"UnknownEngine": {
			reason: "Nobody knows its metrics.", spec: scaledBy(otherPod, `maxReplicas: 4, target: {waitingRequests: 3}`), input: `{` + prometheus + `}`,
			refused: `spec.roles[0].scaling.target: Forbidden: must be left out, because the engine is neither vLLM nor SGLang: use metrics or triggers, which name the metric`,
		},
		"SeveralClusters": {
			reason: "The series of both clusters would add up.", spec: strings.TrimSuffix(scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`), "}") + `, placement: {clusters: [{name: a, providerConfigRef: {name: a}}, {name: b, providerConfigRef: {name: b}}]}}`,
			input:   `{` + prometheus + `, allowedProviderConfigs: [{name: a}, {name: b}]}`,
			refused: `spec.roles[0].scaling.target: Forbidden: ` + replicated,
		},
		"SelectedClusters": {
			reason: "There may be several, with all replicas in each.", spec: strings.TrimSuffix(scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`), "}") + `, placement: {clusterSelector: {}}}`,
			input:   `{` + prometheus + `}`,
			refused: `spec.roles[0].scaling.target: Forbidden: ` + replicated,
		},
		"OneCluster": {
			reason: "There is nothing to tell apart.", spec: strings.TrimSuffix(scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`), "}") + `, placement: {clusters: [{name: a, providerConfigRef: {name: a}}]}}`,
			input: `{` + prometheus + `, allowedProviderConfigs: [{name: a}]}`,
			want:  &Autoscaler{Kind: key.ScaledObject, Min: 1, Max: 4, Triggers: trigger(waiting, "3")},
		},
		"Spread": {
			reason: "Each replica runs once, in one of the clusters.", spec: strings.TrimSuffix(scaledBy(vllmPod, `maxReplicas: 4, target: {waitingRequests: 3}`), "}") + `, placement: {policy: Spread, clusterSelector: {}}}`,
			input: `{` + prometheus + `}`,
			want:  &Autoscaler{Kind: key.ScaledObject, Min: 1, Max: 4, Triggers: trigger(waiting, "3")},
		},
		"TriggerNotAllowed": {
			reason: "KEDA's operator would read any address.", spec: scaledBy(vllmPod, `maxReplicas: 4, triggers: [{type: cron, metadata: {}}, {type: metrics-api, metadata: {url: "http://169.254.169.254"}}]`), input: `{allowedTriggers: [cron]}`,
			refused: `spec.roles[0].scaling.triggers[1].type: Invalid value: "metrics-api": must be left out or match one of ["cron"] in namespace ns (allowedTriggers in the Composition's input)`,
		},
		"NoTriggerAllowed": {
			reason: "By default none is.", spec: scaledBy(vllmPod, `maxReplicas: 4, triggers: [{type: cron, metadata: {}}]`),
			refused: `spec.roles[0].scaling.triggers[0].type: Invalid value: "cron": must be left out: none is allowed in namespace ns (allowedTriggers in the Composition's input)`,
		},
		"UnknownMetricField": {
			reason: "An API server refuses to apply such a field.", spec: scaledBy(vllmPod, `maxReplicas: 4, metrics: [{type: External, external: {metric: {nam: q, name: q}, target: {type: AverageValue, averageValue: 1}}}]`),
			refused: `spec.roles[0].scaling.metrics[0].external.metric.nam: Forbidden: unknown field (did you mean "name"?): Kubernetes 1.36 has none of that name`,
		},
		"Metrics": {
			reason: "An API server would refuse them, and Crossplane would stop half way.", spec: scaledBy(vllmPod, `maxReplicas: 4, metrics: [{type: External, external: {metric: {name: ""}, target: {type: AverageValue, averageValue: 1}}}, {type: Pods}, {type: Resource, resource: {name: 7}}, null], behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}`),
			refused: `[spec.roles[0].scaling.metrics[2].resource.name: Invalid value: 7: must be a string, ` +
				`spec.roles[0].scaling.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600, ` +
				`spec.roles[0].scaling.metrics[0].external.metric.name: Required value: must specify a metric name, ` +
				`spec.roles[0].scaling.metrics[1].pods: Required value: must populate information for the given metric source, ` +
				`spec.roles[0].scaling.metrics[3].type: Required value: must specify a metric source type, ` +
				`spec.roles[0].scaling.metrics[3].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.input == "" {
				tc.input = `{}`
			}
			p, err := build(t, tc.spec, tc.input)
			if refused(t, tc.reason, tc.refused, err) {
				return
			}
			if diff := cmp.Diff(tc.want, p.Roles[0].Autoscaler); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			var warned []string
			for _, w := range p.Warnings {
				if strings.Contains(w.Path, "scaling") {
					warned = append(warned, w.Path+": "+w.Message)
				}
			}
			if diff := cmp.Diff(tc.warned, strings.Join(warned, "; ")); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfPodMetrics shows which metrics find no pods where spec.placement runs these. The HorizontalPodAutoscaler counts
// pods beside it.
func TestWarnOfPodMetrics(t *testing.T) {
	const (
		metrics = `metrics: [
            {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}},
            {type: ContainerResource, containerResource: {name: cpu, container: vllm, target: {type: AverageValue, averageValue: 1}}},
            {type: Pods, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: 1}}},
            {type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: 1}}},
            {type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}},
            {type: Object, object: {metric: {name: q}, describedObject: {kind: Service, name: s}, target: {type: Value, value: 1}}},
            {type: Object, object: {metric: {name: q}, describedObject: {kind: Service, name: s}, target: {type: AverageValue, averageValue: 1}}}]`
		triggers  = `triggers: [{type: cron, metadata: {}}, {type: cron, metadata: {}, metricType: AverageValue}, {type: cron, metadata: {}, metricType: Value}]`
		elsewhere = "counts pods of this namespace in the control plane's cluster, and none of those that spec.placement runs in other clusters: use "
	)
	warning := func(path, use string) Warning { return Warning{"spec.roles[0].scaling." + path, elsewhere + use} }
	cases := map[string]struct {
		reason, scaling, placement string
		want                       []Warning
	}{
		"Beside": {"The pods are beside the HorizontalPodAutoscaler.", metrics, "", nil},
		"Metrics": {"Only a mean of External or Object needs no pods.", metrics, "placement: {policy: Failover, clusterSelector: {}}, ", []Warning{
			warning("metrics[0].type", "External or Object, with an averageValue"),
			warning("metrics[1].type", "External or Object, with an averageValue"),
			warning("metrics[2].type", "External or Object, with an averageValue"),
			warning("metrics[4].external.target.type", "AverageValue"),
			warning("metrics[5].object.target.type", "AverageValue"),
		}},
		"TriggersBeside": {"The pods are beside the ScaledObject.", triggers, "", nil},
		"Triggers":       {"KEDA makes a HorizontalPodAutoscaler of them.", triggers, "placement: {clusters: [{name: a, providerConfigRef: {name: a}}]}, ", []Warning{warning("triggers[2].metricType", "AverageValue")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, "{"+tc.placement+strings.TrimPrefix(scaledBy(vllmPod, "maxReplicas: 4, "+tc.scaling), "{"), "{allowedTriggers: [cron], allowedProviderConfigs: [{name: a}]}")
			if err != nil {
				t.Fatal(err)
			}
			var got []Warning
			for _, w := range p.Warnings {
				if strings.Contains(w.Path, "scaling") {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// released are the metrics that every release in a table has, with their kinds. test/tools/metrics makes the
// tables of the sources of the engines.
func released(t *testing.T, engine string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "package", "monitoring", "testdata", filepath.Base(engine)+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	releases, all := 0, map[string]string{}
	for line := range strings.Lines(string(b)) {
		switch words := strings.Fields(line); {
		case words[0] == "release":
			releases++
		case words[0] != "#" && len(strings.Split(words[2], ",")) == releases:
			all[words[1]] = words[0]
		}
	}
	return all
}

// named has the names of metrics, with the function of a range that they are in.
var named = regexp.MustCompile(`(?:([a-z_]+)\()?\{__name__=~"([^"]+)"`)

// TestQueries proves that every target has a query for every known engine, and an external metric, and that all
// releases of the engine have what it reads.
func TestQueries(t *testing.T) {
	target := v1alpha1.ScalingTarget{WaitingRequests: new(int32), RunningRequests: new(int32), KVCacheUtilizationPercent: new(int32), TokensPerSecond: new(int32), TimeToFirstTokenMilliseconds: new(int32)}
	for _, name := range []string{"vllm", "sglang"} {
		metrics := released(t, name)
		for _, f := range target.Set() {
			if externalMetrics[f.Name] == "" || queries[f.Name] == nil {
				t.Errorf("%s: nothing measures %s", name, f.Name)
				continue
			}
			q := queries[f.Name](`{role="r"}`, 3*time.Minute)
			found := named.FindAllStringSubmatch(q, -1)
			for _, m := range found {
				of := slices.DeleteFunc(strings.Split(m[2], "|"), func(n string) bool { return !strings.HasPrefix(n, name+":") })
				if len(of) == 0 {
					t.Errorf("%s reads nothing of %s: %s", f.Name, name, m[2])
				}
				for _, base := range of {
					want := "gauge"
					switch {
					case strings.HasSuffix(base, "_bucket"), strings.HasSuffix(base, "_count"):
						base, want = strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_count"), "histogram"
					case m[1] == "rate":
						want = "counter"
					}
					if metrics[base] != want {
						t.Errorf("%s: %s is a %s of all releases, want %s: %s", f.Name, base, metrics[base], want, q)
					}
				}
			}
			// Each selector is by role, and so are those of several names.
			if selectors := strings.Count(q, "{"); len(found) == 0 || strings.Count(q, `role="r"}`)+strings.Count(q, `role="r",priority=""}`) != selectors {
				t.Errorf("%s: some series are not selected by role: %s", f.Name, q)
			}
			if strings.Contains(q, "vector(") {
				t.Errorf("%s has a value without series, so a role without metrics would scale: %s", f.Name, q)
			}
		}
	}
}

// TestFreshness proves that an engine counts until Prometheus has failed to read it several times.
func TestFreshness(t *testing.T) {
	cases := map[string]struct {
		reason, interval string
		want             time.Duration
	}{
		"Default": {reason: "That of Prometheus is a minute.", want: 180 * time.Second},
		"Often":   {reason: "What is written elsewhere may be late.", interval: "5s", want: time.Minute},
		"Usual":   {reason: "It is three intervals.", interval: "30s", want: 90 * time.Second},
		"Seldom":  {reason: "It is three intervals, too.", interval: "2m", want: 6 * time.Minute},
		"Odd":     {reason: "PromQL has whole seconds here.", interval: "25500ms", want: 76 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{Monitoring: inputv1alpha1.MonitoringSettings{PodMonitors: &inputv1alpha1.PodMonitors{Interval: tc.interval}}}
			if diff := cmp.Diff(tc.want, freshness(in)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// quoted is a string of PromQL.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// TestHostileQueries proves that no name gets out of its string in a query.
func TestHostileQueries(t *testing.T) {
	plain := func(p *Plan, role string) string { return quoted.ReplaceAllString(p.seriesOf(role), `""`) }
	want := plain(&Plan{Service: naming.Identity{Name: "a", Namespace: "b"}}, "c")
	for _, s := range []string{`"} or vector(9) #`, `\`, `\"`, `a\`, "\n", "`", `",role=~".*`, "\x00\xff", `{}`, `'`} {
		for _, p := range []*Plan{{Service: naming.Identity{Name: s, Namespace: "b"}}, {Service: naming.Identity{Name: "a", Namespace: s}}} {
			if got := plain(p, s); got != want {
				t.Errorf("%q: the selector is %s, want %s", s, p.seriesOf(s), want)
			}
		}
	}
}

// TestRulesOfAdapter proves that prometheus-adapter asks what KEDA asks, for each target.
func TestRulesOfAdapter(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "package", "monitoring", "prometheus-adapter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		ExternalRules []struct {
			Name         struct{ As string } `json:"name"`
			MetricsQuery string              `json:"metricsQuery"`
		} `json:"externalRules"`
	}
	if err := yaml.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	got, want, unset := map[string]string{}, map[string]string{}, freshness(&inputv1alpha1.Input{})
	for _, r := range config.ExternalRules {
		got[r.Name.As] = strings.ReplaceAll(r.MetricsQuery, `priority="",<<.LabelMatchers>>`, `<<.LabelMatchers>>,priority=""`)
	}
	for target, name := range externalMetrics {
		const selector = "{<<.LabelMatchers>>}"
		want[name] = queries[target](selector, unset) + readBefore(series(selector, runningMetrics...), unset)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("package/monitoring/prometheus-adapter.yaml: -want +got\n%s", diff)
	}
}
