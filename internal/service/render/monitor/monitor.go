// Package monitor renders the PodMonitors of engines and endpoint pickers.
package monitor

import (
	"slices"
	"strconv"
	"strings"

	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// pickerPort is the name of the endpoint picker's port for metrics. They need no authentication: see the flag
// --metrics-endpoint-auth of its Deployment.
const pickerPort = "metrics"

// What Prometheus takes of one pod. Engines have some hundred series and some 100 KB. The image of an engine is
// the tenant's, and Prometheus is everyone's. It follows no redirects either, which could lead to any address
// that Prometheus reaches.
const (
	sampleLimit   = 50000
	bodySizeLimit = "32MB"
)

// ownMetrics are those of the function and of the status of services and clusters. Alerts go by their names, so an engine must not
// have any.
const ownMetrics = "fusioninfer_.*"

// Render returns the PodMonitors of a service in one cluster: one for the leaders of each role that is monitored
// there, and one for the endpoint picker.
func Render(p *plan.Plan, cluster *plan.ClusterPlan) ([]kube.Object, error) {
	var all []kube.Object
	for _, role := range monitored(p, cluster) {
		o, err := render(p, cluster.MonitorKey(role), cluster.EnginesName(role), cluster, leaders(cluster, role), engines(p, cluster, role)...)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if p.Router == nil {
		return all, nil
	}
	pods := map[string]string{naming.LabelService: cluster.Base, naming.LabelComponentType: string(v1alpha1.ComponentTypeRouter)}
	o, err := render(p, cluster.Key(key.PodMonitor, "epp"), cluster.EPPName(), cluster, pods, endpoint{Port: pickerPort, Relabelings: labels(p, p.Router.Name)})
	return append(all, o), err
}

// monitored are the roles that run in a cluster, and those that an autoscaler has stopped. If these lost their
// PodMonitor with their pods, Prometheus would not note that the pods are gone (scrapePool.stop in scrape.go of
// v3.12.0). It would have their last values for five minutes, and KEDA would start a role again for requests
// that have ended.
func monitored(p *plan.Plan, cluster *plan.ClusterPlan) []*plan.Role {
	var all []*plan.Role
	add := func(r *plan.Role) {
		if r.Metrics != nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for r := range cluster.Replicas() {
		add(r.Role)
	}
	for _, r := range p.Roles {
		if r.Autoscaler != nil && r.Autoscaler.Min == 0 {
			add(r)
		}
	}
	return all
}

// leaders selects the leader of each replica of a role. Workers serve no HTTP.
func leaders(cluster *plan.ClusterPlan, role *plan.Role) map[string]string {
	return map[string]string{naming.LabelService: cluster.Base, naming.LabelRoleName: role.Name, lws.WorkerIndexLabelKey: "0"}
}

// revisionOfPod is the label of Prometheus with the revision of a pod's template. Its names have no other characters than letters, digits
// and underscores (SanitizeLabelName in util/strutil/strconv.go of v3.12.0).
var revisionOfPod = "__meta_kubernetes_pod_label_" + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(naming.LabelSpecHash)

// engines are the endpoints of the engines of a role: that of the newest template, and those of former ones that may run elsewhere.
// Each pod is read as its template says. Read otherwise, it might not answer, or answer twice: a routing sidecar passes requests
// for metrics on to the engine.
func engines(p *plan.Plan, cluster *plan.ClusterPlan, role *plan.Role) []endpoint {
	newest, former := engine(p, role, role.Metrics), cluster.FormerMetrics[role.Name]
	if len(former.Metrics) == 0 {
		return []endpoint{newest}
	}
	of := func(e endpoint, action string) endpoint {
		e.Relabelings = append(e.Relabelings, relabeling{SourceLabels: []string{revisionOfPod}, Regex: former.Newest, Action: action})
		return e
	}
	all := []endpoint{of(newest, "keep")}
	for i := range former.Metrics {
		all = append(all, of(engine(p, role, &former.Metrics[i]), "drop"))
	}
	return all
}

// engine is the endpoint of an engine. A PodMonitor can name only ports that a pod declares, and templates need
// not declare any. So all ports of the engine's container are selected, and the addresses of all of them become
// that of the engine. Prometheus takes targets that are equal for one. The container is named, because decode
// pods have the port of the routing sidecar, too.
func engine(p *plan.Plan, role *plan.Role, of *plan.Metrics) endpoint {
	port := strconv.Itoa(int(of.Port))
	e := endpoint{Relabelings: append([]relabeling{
		{SourceLabels: []string{plan.LabelContainerOfPod}, Regex: of.Container, Action: "keep"},
		{SourceLabels: []string{"__meta_kubernetes_pod_ip"}, Regex: "([^:]+)", TargetLabel: "__address__", Replacement: "$1:" + port},
		{SourceLabels: []string{"__meta_kubernetes_pod_ip"}, Regex: "(.*:.*)", TargetLabel: "__address__", Replacement: "[$1]:" + port},
	}, labels(p, role.Name)...)}
	e.MetricRelabelings = []relabeling{{SourceLabels: []string{"__name__"}, Regex: ownMetrics, Action: "drop"}}
	if of.HTTPS {
		e.Scheme, e.TLSConfig = "https", &tlsConfig{InsecureSkipVerify: true}
	}
	return e
}

func labels(p *plan.Plan, role string) []relabeling {
	return []relabeling{
		{TargetLabel: plan.LabelSeriesNamespace, Replacement: p.Service.Namespace},
		{TargetLabel: plan.LabelSeriesService, Replacement: p.Service.Name},
		{TargetLabel: plan.LabelSeriesRole, Replacement: role},
	}
}

func render(p *plan.Plan, k key.Key, name string, cluster *plan.ClusterPlan, pods map[string]string, endpoints ...endpoint) (kube.Object, error) {
	for i := range endpoints {
		endpoints[i].Interval = p.PodMonitors.Interval
	}
	o, err := kube.Render(k, podMonitor{
		APIVersion: "monitoring.coreos.com/v1",
		Kind:       "PodMonitor",
		Metadata:   kube.Metadata{Name: name, Namespace: cluster.Target.Namespace, Labels: map[string]string{naming.LabelService: cluster.Base}},
		Spec:       spec{Selector: selector{MatchLabels: pods}, PodMetricsEndpoints: endpoints, SampleLimit: sampleLimit, BodySizeLimit: bodySizeLimit},
	})
	o.Resource = composite.Decorate(o.Resource, p.PodMonitors.Labels, nil)
	return o, err
}
