package workload

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

const (
	// sidecarUser is the user that the sidecar's image sets.
	sidecarUser = 65532
	// tokenPath is where clients look for the credentials of their pod. Kubernetes mounts its
	// own token there in containers that mount nothing at this path.
	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // A path, and no credentials.
	tokenFile = "token"
	// rootCA is a ConfigMap with the certificate of the API server. Kubernetes keeps one in
	// each namespace.
	rootCA     = "kube-root-ca.crt"
	rootCAFile = "ca.crt"

	envNamespace = "POD_NAMESPACE"
	envService   = "INFERENCE_SERVICE"
	// envBootstrapPort follows the connector in a variable of llm-d's routing sidecar: SGLANG_BOOTSTRAP_PORT and MOONCAKE_BOOTSTRAP_PORT.
	envBootstrapPort = "_BOOTSTRAP_PORT"
)

// addSidecar adds the routing sidecar of decode pods. It is a restartable init container, so it
// starts before the engine and stops after it.
func addSidecar(s *plan.Sidecar, r *plan.Role, spec *structpb.Struct) error {
	c := apply.Container().
		WithName(kube.FreeName(plan.SidecarContainer, slices.Concat(kube.Elements(spec, "containers"), kube.Elements(spec, "initContainers")))).
		WithImage(s.Image).
		WithArgs(
			"--port="+strconv.Itoa(int(r.Port)),
			"--model-server-port="+strconv.Itoa(int(r.EnginePort)),
			"--kv-connector="+s.Connector,
			"--secure-proxy=false",
		).
		WithPorts(apply.ContainerPort().WithContainerPort(r.Port)).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithSecurityContext(sidecarSecurity(s))
	if s.BootstrapPort > 0 {
		c.WithEnv(apply.EnvVar().WithName(strings.ToUpper(s.Connector) + envBootstrapPort).WithValue(strconv.Itoa(int(s.BootstrapPort))))
	}
	if s.Tracing != nil {
		c.WithArgs("--tracing=true")
		for _, e := range s.Tracing {
			c.WithEnv(apply.EnvVar().WithName(e.Name).WithValue(e.Value))
		}
	}
	if res := s.Resources; res != nil {
		all := apply.ResourceRequirements()
		if len(res.Limits) > 0 {
			all.WithLimits(res.Limits)
		}
		if len(res.Requests) > 0 {
			all.WithRequests(res.Requests)
		}
		c.WithResources(all)
	}
	if s.PoolOnly {
		name := kube.FreeName(plan.SidecarContainer+"-token", kube.Elements(spec, "volumes"))
		if err := kube.Append(spec, "volumes", token(name)); err != nil {
			return err
		}
		protect(c, name)
	}
	return kube.Append(spec, "initContainers", c)
}

// sidecarSecurity is what the Pod Security Standard restricted requires. The image sets a user
// that is not root, which the pod's own security context may override.
func sidecarSecurity(s *plan.Sidecar) *apply.SecurityContextApplyConfiguration {
	c := apply.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(apply.Capabilities().WithDrop("ALL")).
		WithRunAsNonRoot(true).
		WithSeccompProfile(apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if s.AsRoot {
		c.WithRunAsUser(sidecarUser)
	}
	return c
}

// protect makes the sidecar refuse prefill requests to anything but pods of the pool. The
// sidecar watches the pool, and serves nothing before it has read it. The pool's name is made
// of the pod's own namespace and label, because a template is the same in all clusters.
func protect(c *apply.ContainerApplyConfiguration, volume string) {
	d := plan.ClusterPlan{Base: "$(" + envService + ")"}
	c.WithArgs("--enable-ssrf-protection", "--inference-pool=$("+envNamespace+")/"+d.PoolName()).
		WithEnv(
			fromField(envNamespace, "metadata.namespace"),
			fromField(envService, "metadata.labels['"+naming.LabelService+"']"),
		).
		WithVolumeMounts(apply.VolumeMount().WithName(volume).WithMountPath(tokenPath).WithReadOnly(true))
}

func fromField(name, path string) *apply.EnvVarApplyConfiguration {
	return apply.EnvVar().WithName(name).WithValueFrom(apply.EnvVarSource().WithFieldRef(apply.ObjectFieldSelector().WithFieldPath(path)))
}

// token has the credentials of the pod's service account, for the sidecar alone. The user still
// decides whether the other containers get them.
func token(name string) *apply.VolumeApplyConfiguration {
	return apply.Volume().WithName(name).WithProjected(apply.ProjectedVolumeSource().WithSources(
		apply.VolumeProjection().WithServiceAccountToken(apply.ServiceAccountTokenProjection().WithPath(tokenFile)),
		apply.VolumeProjection().WithConfigMap(apply.ConfigMapProjection().WithName(rootCA).
			WithItems(apply.KeyToPath().WithKey(rootCAFile).WithPath(rootCAFile))),
	))
}
