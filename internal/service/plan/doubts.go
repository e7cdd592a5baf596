package plan

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// maxDoubted is the most roles that a warning names.
const maxDoubted = 4

// warnWithoutRouter warns of prefill and decode pods without a router. The Service of a service
// selects workers only.
func (p *Plan) warnWithoutRouter() {
	if p.Router != nil {
		return
	}
	var names []string
	for _, r := range p.Roles {
		if r.Type != v1alpha1.ComponentTypeWorker {
			names = append(names, r.Name)
		}
	}
	if len(names) > 0 {
		p.warn(field.NewPath("spec", "roles"), "no requests reach %s: add a role of componentType router, unless you send requests to the pods yourself", text.Names(names, maxDoubted))
	}
}

// portVariables are variables that Kubernetes gives all pods of the namespace for a Service of that name, with an address. Engines take
// them for a number, and end (get_vllm_port in vllm/envs.py of vLLM, get_open_port in python/sglang/srt/utils of SGLang). SGLang of August
// 2026 warns only (EnvField in python/sglang/srt/environ.py).
var portVariables = map[string]struct {
	name   string
	engine launch.Engine
}{
	"vllm":   {"VLLM_PORT", launch.EngineVLLM},
	"sglang": {"SGLANG_PORT", launch.EngineSGLang},
}

// warnOfName warns of a service whose Service keeps engines from starting.
func (p *Plan) warnOfName() {
	v, known := portVariables[p.Service.Name]
	if !known || p.endpoint() == nil || !slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.takesLinks(v.name) }) {
		return
	}
	p.warn(field.NewPath("metadata", "name"),
		"Kubernetes tells all pods of the namespace of the Service %s by the variable %s, with which %s may not start: use another name, add a router, or set enableServiceLinks: false in the templates",
		p.Service.Name, v.name, v.engine)
}

// takesLinks tells whether pods of a role get a variable of a Service, which one of the user's own replaces.
func (r *Role) takesLinks(name string) bool {
	return slices.ContainsFunc(r.templates(), func(t locatedTemplate) bool {
		return ptr.Deref(t.Spec.EnableServiceLinks, true) && !slices.ContainsFunc(t.engine().Env, func(e corev1.EnvVar) bool { return e.Name == name })
	})
}

// warnOfPorts warns of workers on several ports without a router. Their Service then leaves all requests to the first role.
func (p *Plan) warnOfPorts() {
	if p.Router != nil {
		return
	}
	var first *Role
	for _, r := range p.Roles {
		switch {
		case r.Type != v1alpha1.ComponentTypeWorker:
		case first == nil:
			first = r
		case r.Port != first.Port:
			p.warn(r.Path(),
				"answers on port %d, and role %s on %d, so role %s alone gets requests: have all workers answer on port %d, or make this role a service of its own, unless you send requests to the pods yourself",
				r.Port, first.Name, first.Port, first.Name, first.Port)
		}
	}
}

// warnOfPartition warns of a partition above the index of every unit that there may be.
func (p *Plan) warnOfPartition() {
	groups, units := p.spec.Replicas, int32(0)
	for _, r := range p.Roles {
		switch {
		case groups != nil:
			units = *groups
		case p.InPair(r) && r.scaling == nil:
			units = max(units, p.pairs())
		default:
			units = max(units, r.Most())
		}
	}
	if n := *p.Rollout.Partition; units > 0 && n >= units {
		p.warn(field.NewPath("spec", "rollout", "partition"),
			"keeps all %d units as they are, so that no change reaches any: must be at most %d, or use paused", units, units-1)
	}
}

// warnOfPlacement warns of fields of the placement that its policy does not use, and of what the service cannot have
// with it. A weight of 1 is the default, and says nothing else than none.
func warnOfPlacement(spec *v1alpha1.InferenceServiceSpec, roles []*Role) []Warning {
	placement := spec.Placement
	if placement == nil {
		return nil
	}
	path, all := field.NewPath("spec", "placement"), []Warning(nil)
	unused := func(at *field.Path, message string) { all = append(all, warningAt(at, "%s", message)) }
	if placement.Policy == v1alpha1.PlacementReplicate {
		const stays = "has no effect with policy Replicate, with which nothing moves: leave it out, or set policy to Failover or Spread"
		if placement.FailoverAfterSeconds != nil {
			unused(path.Child("failoverAfterSeconds"), stays)
		}
		if placement.StartTimeoutSeconds != nil {
			unused(path.Child("startTimeoutSeconds"), stays)
		}
	}
	all = append(all, warnOfStartTimeout(path, placement, roles)...)
	if placement.Policy == v1alpha1.PlacementSpread {
		if spec.Replicas == nil && hasPrefillOrDecode(spec) && several(placement) {
			unused(path.Child("policy"), "splits nothing: a service with prefill or decode and without spec.replicas is one group, which runs in one cluster. "+
				"Use Failover, or create the service anew with spec.replicas, which cannot be added later")
		}
		return all
	}
	for i := range placement.Clusters {
		if w := placement.Clusters[i].Weight; w != nil && *w != 1 {
			unused(path.Child("clusters").Index(i).Child("weight"), fmt.Sprintf("has no effect with policy %s: leave it out, or set policy to Spread", placement.Policy))
		}
	}
	return all
}

// warnOfStartTimeout warns of a start time-out that is over before an engine may have loaded its model. The defaults of
// both times are the same, so to write one of them down says nothing.
func warnOfStartTimeout(path *field.Path, placement *v1alpha1.Placement, roles []*Role) []Warning {
	if placement.Policy == v1alpha1.PlacementReplicate || !several(placement) {
		return nil
	}
	name, longest := "", time.Duration(0)
	for _, r := range roles {
		if r.Leader.Readiness == nil {
			continue
		}
		if d := time.Duration(r.Leader.Readiness.StartupSeconds) * time.Second; d > longest {
			name, longest = r.Name, d
		}
	}
	timeout, byDefault := placement.StartTimeout(), (&v1alpha1.Placement{}).StartTimeout()
	if timeout == 0 || timeout > longest || timeout == byDefault && longest == byDefault {
		return nil
	}
	return []Warning{warningAt(path.Child("startTimeoutSeconds"),
		"is over after %[1]d seconds, and an engine of role %[2]s may load for %[3]d (lifecycle.startupSeconds): "+
			"if another cluster has room, the service is started there, and an engine that still loads is stopped. "+
			"Set more than %[3]d, because waiting for nodes and images counts too, or 0 to wait however long",
		int64(timeout.Seconds()), name, int64(longest.Seconds()))}
}

// several tells whether a placement may be about more than one cluster.
func several(to *v1alpha1.Placement) bool { return to.ClusterSelector != nil || len(to.Clusters) > 1 }

// warnOfStrategy warns of a strategy beside a configuration of the user's own. With prefill and decode
// the strategy still decides which endpoint picker runs, and which pods it picks from.
func warnOfStrategy(path *field.Path, role *v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec) []Warning {
	if role.Strategy == "" || hasPairs(spec) {
		return nil
	}
	return []Warning{warningAt(path.Child("strategy"), "has no effect beside endpointPickerConfig, which replaces what a strategy makes: leave one of them out")}
}

const twoVersions = "during a rollout a request may get prefill and decode pods of two versions, which may refuse each other: "

// warnOfVersions warns of an endpoint picker that does not keep a request to one version.
func (r *Router) warnOfVersions(path *field.Path, in *inputv1alpha1.Input) []Warning {
	if !r.Disaggregated || r.ScreensRevisions {
		return nil
	}
	why := "endpointPicker.revisionScreening is Disabled in the Composition's input. Set it to Enabled once the image has the plugin disaggregatedset-rollout-screener"
	if in.EndpointPicker.RevisionScreening != inputv1alpha1.RevisionScreeningDisabled {
		why = fmt.Sprintf("the tag of the image %q does not say that it has the plugin disaggregatedset-rollout-screener. "+
			"Use a tag from v0.10.0 on, or set endpointPicker.revisionScreening to Enabled in the Composition's input if the image has it", text.Value(r.Image))
	}
	return []Warning{warningAt(path.Child("strategy"), "%s%s", twoVersions, why)}
}

// warnOfNoDrain warns of a grace period that leaves no time to drain. Gateways and endpoint pickers send requests to a pod for some
// moments after it is deleted.
func (p *rolePlanner) warnOfNoDrain() {
	t := &p.role.Leader
	own, times := t.Spec.TerminationGracePeriodSeconds, p.spec.LifecycleOf()
	if own == nil || times.DrainSeconds == 0 || t.DrainSeconds > 0 || ownPreStop(t.engine()) {
		return
	}
	p.warn(p.leaderPath().Child("spec", "terminationGracePeriodSeconds"),
		"leaves no time to drain, so requests fail whenever a pod ends: must be more than the %d seconds of lifecycle.shutdownSeconds, such as %d, or leave it out",
		times.ShutdownSeconds, times.DrainSeconds+times.ShutdownSeconds)
}

// warnOfLifecycle warns of times that a role sets, and that its templates overrule.
func (p *rolePlanner) warnOfLifecycle() {
	p.warnOfNoDrain()
	l := p.spec.Lifecycle
	if l == nil {
		return
	}
	warn := func(name, message string) {
		p.warn(p.path.Child("lifecycle", name), "%s", message)
	}
	if l.StartupSeconds != nil {
		switch e := p.role.Leader.engine(); {
		case e.ReadinessProbe != nil:
			warn("startupSeconds", "has no effect, because the template has a readinessProbe: leave it out, and write a startupProbe")
		case e.StartupProbe != nil:
			warn("startupSeconds", "has no effect, because the template has a startupProbe: leave one of them out")
		case p.role.Leader.Readiness == nil:
			warn("startupSeconds", "has no effect, because the engine is not known: leave it out, and write a readinessProbe and a startupProbe")
		}
	}
	// A hook of the user's own still runs within a grace period of which these are the sum.
	own := func(t *PodTemplate) bool {
		return ownPreStop(t.engine()) && t.Spec.TerminationGracePeriodSeconds != nil
	}
	if !own(&p.role.Leader) || p.role.Nodes > 1 && !own(&p.role.Worker) {
		return
	}
	const overruled = "has no effect, because the template has a preStop hook and terminationGracePeriodSeconds: leave it out"
	if l.DrainSeconds != nil {
		warn("drainSeconds", overruled)
	}
	if l.ShutdownSeconds != nil {
		warn("shutdownSeconds", overruled)
	}
}

// A goneConnector is a KV connector that vLLM does not have any more.
type goneConnector struct {
	// since is the first version of vLLM without it.
	since imageref.Version
	// instead is the connector to use.
	instead string
}

// goneConnectors by their names (vllm/distributed/kv_transfer/kv_connector/factory.py of vLLM).
var goneConnectors = map[string]goneConnector{
	"PyNcclConnector":        {imageref.Version{0, 10, 1}, `NixlConnector with "kv_role":"kv_both"`},
	"LMCacheConnector":       {imageref.Version{0, 10, 1}, "LMCacheConnectorV1"},
	"SharedStorageConnector": {imageref.Version{0, 13, 0}, "ExampleConnector, which is for tests"},
	"P2pNcclConnector":       {imageref.Version{0, 24, 0}, `NixlConnector with "kv_role":"kv_both"`},
}

// nodesFrom is a release of vLLM whose NIXL connector works on several nodes. Before, each rank listened at the
// leader's address, which its own node does not have (vllm-project/vllm#26338).
var nodesFrom = imageref.Version{0, 12, 0}

var connectorName = regexp.MustCompile(`"kv_connector"\s*:\s*"([A-Za-z0-9_]{1,64})"`)

// warnOfConnectors warns of KV connectors that the image does not have. It does so for vLLM's own
// images, whose tag is the version. A module of the user's own may have a connector of any name.
func (p *rolePlanner) warnOfConnectors(t *PodTemplate, path *field.Path) {
	e := t.engine()
	v, known := vllmVersion(e)
	if !known || t.mentions("kv_connector_module_path") {
		return
	}
	warned := map[string]bool{}
	for i, word := range t.words() {
		for _, name := range connectorName.FindAllStringSubmatch(word, maxDoubted) {
			message := p.doubtOfConnector(name[1], v)
			if message == "" || warned[name[1]] {
				continue
			}
			warned[name[1]] = true
			p.warn(t.wordPath(path, i), "%s", message)
		}
	}
}

// doubtOfConnector says why a connector does not work with a version of vLLM, if so.
func (p *rolePlanner) doubtOfConnector(name string, v imageref.Version) string {
	gone, is := goneConnectors[name]
	switch {
	case is && v.Compare(gone.since) >= 0:
		return fmt.Sprintf("vLLM has no %s from v%s on: use %s", name, gone.since, gone.instead)
	case name == "NixlConnector" && p.role.Nodes > 1 && v.Compare(nodesFrom) < 0:
		return fmt.Sprintf("before vLLM v%s, %s does not start on several nodes: use a newer image, or one node", nodesFrom, name)
	}
	return ""
}

// vllmVersion returns the version of the image that vLLM's project releases, by its tag.
func vllmVersion(c *corev1.Container) (imageref.Version, bool) {
	name, tag := imageref.Split(c.Image)
	if name != vllmImage {
		return imageref.Version{}, false
	}
	return imageref.ParseVersion(tag)
}
