package router

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

const (
	configKey    = "config.yaml"
	configDir    = "/config"
	configVolume = "plugins-config-volume"
	// configHash is on the pods: the endpoint picker reads its configuration once,
	// when it starts.
	configHash = "fusioninfer.io/config-hash"
	// nonRoot is the user of both images.
	nonRoot = 65532
	// gracePeriod lets answers that are on their way end before the endpoint picker
	// does. Both projects' charts have it.
	gracePeriod = 130
)

func (r *rendering) configMap() *corev1.ConfigMapApplyConfiguration {
	return corev1.ConfigMap(r.d.EPPConfigName(), r.d.Target.Namespace).
		WithData(map[string]string{configKey: r.r.Config})
}

// deployment runs the endpoint picker. It is recreated and not rolled: one
// leader has all the state, and a new pod gets ready only once the old leader is
// gone.
func (r *rendering) deployment() *applyapps.DeploymentApplyConfiguration {
	labels := maps.Clone(r.p.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	// The pods are the service's too, so that a failing one is found. What selects
	// the pods that serve also asks for a component type, or for a leader.
	maps.Copy(labels, r.ownLabels())
	annotations := maps.Clone(r.p.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[configHash] = plan.Hash(r.r.Config)
	return applyapps.Deployment(r.d.EPPName(), r.d.Target.Namespace).
		WithSpec(applyapps.DeploymentSpec().
			WithReplicas(r.r.Replicas).
			WithStrategy(applyapps.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithSelector(metav1.LabelSelector().WithMatchLabels(r.podLabels())).
			WithTemplate(corev1.PodTemplateSpec().
				WithLabels(labels).
				WithAnnotations(annotations).
				WithSpec(r.podSpec())))
}

func (r *rendering) podSpec() *corev1.PodSpecApplyConfiguration {
	pod := &r.r.Pod
	spec := corev1.PodSpec().
		WithServiceAccountName(r.d.EPPName()).
		WithTerminationGracePeriodSeconds(gracePeriod).
		WithSecurityContext(podSecurity).
		WithContainers(r.container()).
		WithVolumes(corev1.Volume().
			WithName(configVolume).
			WithConfigMap(corev1.ConfigMapVolumeSource().WithName(r.d.EPPConfigName())))
	if len(pod.NodeSelector) > 0 {
		spec.WithNodeSelector(pod.NodeSelector)
	}
	for _, s := range pod.ImagePullSecrets {
		spec.WithImagePullSecrets(corev1.LocalObjectReference().WithName(s.Name))
	}
	for _, t := range pod.Tolerations {
		spec.WithTolerations(toleration(t))
	}
	if r.highlyAvailable() {
		spec.WithTopologySpreadConstraints(corev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(core.LabelHostname).
			WithWhenUnsatisfiable(core.ScheduleAnyway).
			WithLabelSelector(metav1.LabelSelector().WithMatchLabels(r.podLabels())))
	}
	return spec
}

func toleration(t core.Toleration) *corev1.TolerationApplyConfiguration {
	a := corev1.Toleration()
	if t.Key != "" {
		a.WithKey(t.Key)
	}
	if t.Operator != "" {
		a.WithOperator(t.Operator)
	}
	if t.Value != "" {
		a.WithValue(t.Value)
	}
	if t.Effect != "" {
		a.WithEffect(t.Effect)
	}
	if t.TolerationSeconds != nil {
		a.WithTolerationSeconds(*t.TolerationSeconds)
	}
	return a
}

// What all endpoint pickers have in common.
var (
	podSecurity = kube.Constant(corev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(nonRoot).
			WithSeccompProfile(corev1.SeccompProfile().WithType(core.SeccompProfileTypeRuntimeDefault)))
	containerSecurity = kube.Constant(corev1.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithRunAsNonRoot(true).
				WithCapabilities(corev1.Capabilities().WithDrop("ALL")))
	containerPorts = kube.ConstantList(
		*corev1.ContainerPort().WithName("grpc").WithContainerPort(portExtProc).WithProtocol(core.ProtocolTCP),
		*corev1.ContainerPort().WithName("grpc-health").WithContainerPort(portHealth).WithProtocol(core.ProtocolTCP),
		*corev1.ContainerPort().WithName("metrics").WithContainerPort(portMetrics).WithProtocol(core.ProtocolTCP))
	containerEnv = kube.ConstantList(
		*fromField("NAMESPACE", "metadata.namespace"),
		*fromField("POD_NAME", "metadata.name"))
	configMount = kube.ConstantList(
		*corev1.VolumeMount().WithName(configVolume).WithMountPath(configDir).WithReadOnly(true))
)

func (r *rendering) container() *corev1.ContainerApplyConfiguration {
	c := corev1.Container().
		WithName("epp").
		WithImage(r.r.Image).
		WithImagePullPolicy(r.r.Pod.ImagePullPolicy).
		WithArgs(r.args()...).
		WithLivenessProbe(r.probe("liveness").WithInitialDelaySeconds(5).WithPeriodSeconds(10)).
		WithReadinessProbe(r.probe("readiness").WithPeriodSeconds(2)).
		WithResources(resources(r.r.Pod.Resources)).
		WithSecurityContext(containerSecurity)
	c.Ports, c.Env, c.VolumeMounts = containerPorts, containerEnv, configMount
	return c
}

// args are flags that every release from v1.2.1 on has. Traces would go to a
// collector that nobody set up. Metrics are served without authentication: that
// asks for a TokenReview, which only a ClusterRole can allow, and a namespaced XR
// cannot have one.
func (r *rendering) args() []string {
	args := []string{
		"--pool-name=" + r.d.PoolName(),
		"--pool-namespace=" + r.d.Target.Namespace,
		"--pool-group=" + inference.GroupName,
		"--config-file=" + configDir + "/" + configKey,
		"--tracing=false",
		"--metrics-endpoint-auth=false",
	}
	if r.highlyAvailable() {
		args = append(args, "--ha-enable-leader-election")
	}
	return args
}

// probe asks the health service of the design documents. With several endpoint
// pickers liveness and readiness differ, since only the leader is ready, and each
// has a service of its own.
func (r *rendering) probe(of string) *corev1.ProbeApplyConfiguration {
	service := "inference-extension"
	if r.highlyAvailable() {
		service = of
	}
	return corev1.Probe().WithGRPC(corev1.GRPCAction().WithPort(portHealth).WithService(service))
}

func fromField(name, path string) *corev1.EnvVarApplyConfiguration {
	return corev1.EnvVar().WithName(name).
		WithValueFrom(corev1.EnvVarSource().WithFieldRef(corev1.ObjectFieldSelector().WithFieldPath(path)))
}

func resources(of *core.ResourceRequirements) *corev1.ResourceRequirementsApplyConfiguration {
	a := corev1.ResourceRequirements()
	if len(of.Requests) > 0 {
		a.WithRequests(of.Requests)
	}
	if len(of.Limits) > 0 {
		a.WithLimits(of.Limits)
	}
	return a
}
