package plan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

// sidecar is the routing sidecar of the role's leaders.
func (p *rolePlanner) sidecar(spec *corev1.PodSpec) *Sidecar {
	in := &p.input.Sidecar
	s := &Sidecar{
		Image:          in.Image,
		Connector:      in.KVConnector,
		Resources:      in.Resources,
		PoolOnly:       in.SSRFProtection != v1beta1.Disabled,
		ServiceAccount: cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, defaultAccount),
	}
	if c := spec.SecurityContext; c != nil && c.RunAsUser != nil {
		s.AsRoot = *c.RunAsUser == 0
	}
	return s
}

// ssrfProtection is the flag of llm-d's routing sidecar (pkg/sidecar/proxy/options.go of
// llm-d-router v0.10.0) that compares where a client's header leads to with the pods of the
// pool.
const ssrfProtection = "enable-ssrf-protection"

// warnOfSidecar tells of a routing sidecar of the user's own that goes wherever a client
// sends it.
func (p *rolePlanner) warnOfSidecar(c *corev1.Container) {
	protects := func(s string) bool { return strings.Contains(s, ssrfProtection) }
	if slices.ContainsFunc(c.Command, protects) || slices.ContainsFunc(c.Args, protects) {
		return
	}
	p.warnings = append(p.warnings, Warning{
		Path:    p.leaderPath().Child("spec").String(),
		Message: "container " + cutOff(c.Name) + " sends prefill requests wherever a client's header x-prefiller-host-port says: add --" + ssrfProtection + " and --inference-pool={namespace}/{pool}, and let its service account list and watch the pool and pods",
	})
}
