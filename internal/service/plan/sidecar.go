package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// SidecarContainer is the name of the routing sidecar's container. A number follows it if the template has one of that name.
const SidecarContainer = "routing-sidecar"

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

// sidecar returns the routing sidecar of the role's leaders.
func (p *rolePlanner) sidecar(spec *corev1.PodSpec) *Sidecar {
	in := &p.input.Sidecar
	s := &Sidecar{
		Image:          in.Image,
		Connector:      cmp.Or(in.KVConnector, connectorFor(p.engineOf(&p.role.Leader))),
		Resources:      in.Resources,
		PoolOnly:       in.SSRFProtection != inputv1alpha1.Disabled,
		Tracing:        sidecarTracing(in.Image, p.input.Monitoring.Tracing, p.role.Name),
		ServiceAccount: cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, defaultAccount),
	}
	if c := spec.SecurityContext; c != nil && c.RunAsUser != nil {
		s.AsRoot = *c.RunAsUser == 0
	}
	return s
}

// connectorSGLang is the routing sidecar's protocol for SGLang, and for nothing else. connectorMooncake is that of vLLM's
// MooncakeConnector.
const (
	connectorSGLang   = "sglang"
	connectorMooncake = "mooncake"
)

// connectorFor is the routing sidecar's protocol for an engine, if nobody names one.
func connectorFor(e launch.Engine) string {
	if e == launch.EngineSGLang {
		return connectorSGLang
	}
	return inputv1alpha1.DefaultKVConnector
}

// SidecarAccounts returns the service accounts of pods in a cluster whose sidecar reads the pool, each once.
func (p *Plan) SidecarAccounts(c *ClusterPlan) []string {
	all := slices.Clone(c.FormerAccounts)
	for _, r := range p.Roles {
		if s := r.Sidecar; s != nil && s.PoolOnly && !slices.Contains(all, s.ServiceAccount) {
			all = append(all, s.ServiceAccount)
		}
	}
	return all
}

// maxFormerAccounts limits the service accounts that only pods of former templates may have. A tenant may
// edit a template again and again while all pods are held.
const maxFormerAccounts = 16

// keepAccounts lets sidecars of pods with a former template read the pool until the pods of the newest one
// serve. Without that right they serve nothing after a restart. Beyond the limit, the oldest accounts stay:
// replicas held longest have the oldest template.
func (p *Plan) keepAccounts(running *RunningView) {
	newest := p.SidecarAccounts(&ClusterPlan{})
	for i := range p.Clusters {
		c, former := &p.Clusters[i], 0
		if !c.mayRunFormer(running) {
			continue
		}
		for _, a := range running.SidecarAccounts(c.SidecarKey(key.RoleBinding)) {
			if !slices.Contains(newest, a) {
				former++
			}
			if former <= maxFormerAccounts || slices.Contains(newest, a) {
				c.FormerAccounts = append(c.FormerAccounts, a)
			}
		}
	}
}

// mayRunFormer tells whether pods here may be made from a former template.
func (c *ClusterPlan) mayRunFormer(running *RunningView) bool {
	return c.anyExisting(running, mayRunFormer)
}

// mayRunFormer tells whether pods of a replica that exists may be made from a former template.
func mayRunFormer(r *Replica, s rollout.State) bool { return !r.Updated || !s.Serving }

// planConnector sets the connector of the service's sidecars, if the service names one. It
// overrides the platform team's.
func planConnector(path *field.Path, connector string, serving []*Role) []Warning {
	if connector == "" {
		return nil
	}
	used := false
	for _, r := range serving {
		if r.Sidecar != nil {
			r.Sidecar.Connector, used = connector, true
		}
	}
	if used {
		return nil
	}
	return []Warning{warningAt(path.Child("endpointPicker", "kvConnector"), "has no effect: no pod of the service has a routing sidecar added")}
}

// ssrfProtection is the flag that makes llm-d's routing sidecar send prefill requests only to pods
// of the pool, whatever a client's header names (pkg/sidecar/proxy/options.go of llm-d-router
// v0.10.0).
const ssrfProtection = "enable-ssrf-protection"

// warnOfSidecar warns of a routing sidecar in the user's template without that protection: its
// clients choose where it sends requests.
func (p *rolePlanner) warnOfSidecar(c *corev1.Container) {
	protects := func(s string) bool { return strings.Contains(s, ssrfProtection) }
	if slices.ContainsFunc(c.Command, protects) || slices.ContainsFunc(c.Args, protects) {
		return
	}
	p.warn(p.leaderPath().Child("spec"),
		"container %s sends prefill requests wherever a client's header x-prefiller-host-port says: add --%s and --inference-pool={namespace}/{pool}, and let its service account list and watch the pool and pods",
		text.Cut(c.Name, maxCommand), ssrfProtection)
}

// bootstrapPort is where prefill of SGLang, or of vLLM with MooncakeConnector, offers its KV cache. The routing sidecar tells decode this
// port, unless a variable says another one (pkg/sidecar/proxy/connector_sglang.go and options.go of llm-d-router v0.10.0).
const (
	bootstrapPort         = 8998
	flagBootstrapPort     = "--disaggregation-bootstrap-port"
	mooncakeBootstrapPort = "VLLM_MOONCAKE_BOOTSTRAP_PORT"
)

// bootstrap returns the port at which prefill offers its KV cache to a routing sidecar's protocol, or 0 if it is not known.
func (r *Role) bootstrap(protocol string) int32 {
	if r.Type != v1alpha1.ComponentTypePrefiller || r.line == nil {
		return 0
	}
	text := ""
	switch {
	case protocol == connectorSGLang && r.line.engine == launch.EngineSGLang:
		g, given := r.line.Get(flagBootstrapPort)
		if !given && !r.line.Open {
			return bootstrapPort
		}
		text = g.Value
	case protocol == connectorMooncake && r.line.engine == launch.EngineVLLM:
		e := r.Leader.engine()
		i := slices.IndexFunc(e.Env, func(v corev1.EnvVar) bool { return v.Name == mooncakeBootstrapPort })
		if i < 0 && len(e.EnvFrom) == 0 {
			return bootstrapPort
		}
		if i >= 0 {
			text = e.Env[i].Value
		}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > check.MaxPort {
		return 0
	}
	return int32(n)
}

// bootstrapPath is what sets the port, for a warning.
func (r *Role) bootstrapPath(protocol string) (path *field.Path, name string) {
	if protocol == connectorMooncake {
		return r.Leader.enginePath(r.templates()[len(r.templates())-1].path).Child("env"), mooncakeBootstrapPort
	}
	return r.line.pathOf(flagBootstrapPort), flagBootstrapPort
}

// planBootstrap has the routing sidecars tell decode at which port prefill offers its KV cache. They know
// one port for all prefill pods.
func (p *Plan) planBootstrap() {
	for _, protocol := range []string{connectorSGLang, connectorMooncake} {
		p.planBootstrapOf(protocol)
	}
}

func (p *Plan) planBootstrapOf(protocol string) {
	speaks := func(r *Role) bool { return r.Sidecar != nil && r.Sidecar.Connector == protocol }
	if protocol == connectorMooncake && !slices.ContainsFunc(p.Roles, speaks) {
		return // vLLM with another connector has no such port.
	}
	name, port := "", int32(0)
	for _, r := range p.Roles {
		n := r.bootstrap(protocol)
		switch {
		case n == 0 || n == port:
		case port == 0:
			name, port = r.Name, n
		default:
			at, setting := r.bootstrapPath(protocol)
			p.warn(at,
				"prefill offers its KV cache at port %d here and at port %d in the role %s, and the routing sidecars tell decode one port for both: set the same %s in both",
				n, port, name, setting)
		}
	}
	if port == bootstrapPort {
		return
	}
	for _, r := range p.Roles {
		if speaks(r) {
			r.Sidecar.BootstrapPort = port
		}
	}
}

// A sidecarConnector is a protocol of llm-d's routing sidecar.
type sidecarConnector struct {
	name string
	// since is its first release.
	since imageref.Version
	// engines are the connectors of vLLM which need it, and work with no other one.
	engines []string
}

// sidecarConnectors are all of them (supportedKVConnectors in pkg/sidecar/proxy/options.go of llm-d-router v0.9.0 and
// v0.10.0). The sidecar ends if it gets another one.
var sidecarConnectors = []sidecarConnector{
	{name: inputv1alpha1.DefaultKVConnector},
	{name: "shared-storage", engines: []string{"SharedStorageConnector", "ExampleConnector"}},
	{name: connectorSGLang},
	{name: connectorMooncake, engines: []string{"MooncakeConnector"}},
	{name: "offloading", since: imageref.Version{0, 10, 0}, engines: []string{"OffloadingConnector"}},
}

// sidecarImage is the name of llm-d's image of the routing sidecar.
const sidecarImage = "llm-d-router-disagg-sidecar"

// The protocols of the releases from the first one on, and before the second one, are known.
var (
	firstSidecar = imageref.Version{0, 9, 0}
	afterSidecar = imageref.Version{0, 11, 0}
)

// connectorsOf returns the protocols of a routing sidecar, or nil if they are not known.
func connectorsOf(image string) []string {
	name, tag := imageref.Split(image)
	v, known := imageref.ParseVersion(tag)
	if !known || name != sidecarImage || v.Compare(firstSidecar) < 0 || v.Compare(afterSidecar) >= 0 {
		return nil
	}
	var all []string
	for _, c := range sidecarConnectors {
		if v.Compare(c.since) >= 0 {
			all = append(all, c.name)
		}
	}
	return all
}

// warnOfSidecarConnectors warns of routing sidecars that do not start with their protocol, or do not speak that
// of their engine.
func (p *Plan) warnOfSidecarConnectors() {
	for _, r := range p.Roles {
		if r.Sidecar == nil {
			continue
		}
		if why := r.doubtConnector(); why != "" {
			p.warn(r.path, "the routing sidecar's KV connector is %q, %s", r.Sidecar.Connector, why)
		}
	}
}

// warnOfTLS warns of engines with TLS that are sent plain HTTP. Routing sidecars speak it to engines without the flag --enable-tls
// (pkg/sidecar/proxy/options.go of llm-d-router v0.10.0). Gateways speak it to the pods of an InferencePool.
func (p *Plan) warnOfTLS() {
	warn := func(r *Role, who string) {
		p.warn(r.path, "%s plain HTTP to this engine, which serves TLS, so requests fail: leave --ssl-certfile out", who)
	}
	sidecars := slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.Sidecar != nil })
	for _, r := range p.Roles {
		switch {
		case !r.TLS:
		case r.Sidecar != nil || sidecars && r.Type == v1alpha1.ComponentTypePrefiller:
			warn(r, "the routing sidecars of decode send")
		case p.Router != nil && slices.Contains(p.Router.behindPool(p.Roles), r):
			warn(r, "gateways send")
		}
	}
}

// doubtConnector says what is wrong with the protocol of the role's routing sidecar, and what helps.
func (r *Role) doubtConnector() string {
	const fields = "endpointPicker.kvConnector of the router"
	s := r.Sidecar
	if known := connectorsOf(s.Image); known != nil && !slices.Contains(known, s.Connector) {
		return fmt.Sprintf("which %s does not know, so it ends and decode never serves: set %s to one of %s", text.Value(s.Image), fields, strings.Join(known, ", "))
	}
	if r.line != nil && r.engine == launch.EngineVLLM {
		own, _ := connectorOf(r.line)
		i := slices.IndexFunc(sidecarConnectors, func(c sidecarConnector) bool { return slices.Contains(c.engines, own.Value) })
		if i >= 0 && s.Connector != sidecarConnectors[i].name {
			return fmt.Sprintf("and that of the engine is %s: set %s to %q", own.Value, fields, sidecarConnectors[i].name)
		}
	}
	if r.engine == "" || (s.Connector == connectorSGLang) == (r.engine == launch.EngineSGLang) {
		return ""
	}
	return fmt.Sprintf("which is not for %s: leave %s and sidecar.kvConnector of the Input out, or set %q", r.engine, fields, connectorFor(r.engine))
}
