package router

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/epp"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

const (
	configDir    = "/config"
	configVolume = "plugins-config-volume"
	// nonRoot is the user that both images set.
	nonRoot = 65532
	// gracePeriod, in seconds, lets responses finish before the endpoint picker stops. It is
	// that of both projects' charts.
	gracePeriod = 130
	// drainPeriod, in seconds, is how long an endpoint picker that is deleted goes on as before. Gateways
	// learn in about a second that it is no longer an endpoint. Until then they connect to it for new requests.
	// It is short, because from one endpoint picker to two nobody answers meanwhile: see strategy.
	drainPeriod = 3
)

func (r *rendering) configMap() *corev1.ConfigMapApplyConfiguration {
	annotations := map[string]string{naming.AnnotationConfigHash: r.router.ConfigHash(r.cluster)}
	if r.router.PicksApart {
		annotations[naming.AnnotationPicksApart] = "true"
	}
	return corev1.ConfigMap(r.cluster.EPPConfigName(), r.cluster.Target.Namespace).
		WithAnnotations(annotations).
		WithData(map[string]string{epp.ConfigFile: r.router.ConfigIn(r.cluster)})
}

// deployment runs the endpoint picker. A single one goes once the next one is ready. Several are
// recreated instead: the leader has all the state, and a new pod becomes ready only once the old
// leader is gone.
func (r *rendering) deployment() (map[string]any, error) {
	labels := maps.Clone(r.plan.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	// The pods have the service's label, so that a failing one is found. Selectors of serving
	// pods also require a component type or the leader's index.
	maps.Copy(labels, r.ownLabels())
	annotations := maps.Clone(r.plan.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	// The endpoint picker reads its configuration only when it starts, so a change has to restart it.
	hash := r.router.ConfigHash(r.cluster)
	annotations[naming.AnnotationConfigHash] = hash
	fields := map[string]any{
		"replicas": int64(r.router.Replicas),
		"strategy": r.strategy(),
		"selector": map[string]any{"matchLabels": r.podLabels()},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels, "annotations": annotations},
			"spec":     r.podSpec(),
		},
	}
	if r.cluster.PickerPaused {
		fields["paused"] = true
	}
	spec, err := kube.Encode(fields)
	if err != nil {
		return nil, err
	}
	metadata := r.meta(r.cluster.EPPName())
	// They are read back from there. The spec is too large to be, and the API server adds defaults to it.
	metadata.Annotations = map[string]string{naming.AnnotationConfigHash: hash, naming.AnnotationPickersHash: naming.Hash(kube.Canonical(spec))}
	return map[string]any{
		"apiVersion": appsv1.SchemeGroupVersion.String(),
		"kind":       "Deployment",
		"metadata":   metadata,
		"spec":       spec,
	}, nil
}

func (r *rendering) strategy() *applyappsv1.DeploymentStrategyApplyConfiguration {
	if r.highlyAvailable() {
		return applyappsv1.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)
	}
	return applyappsv1.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(applyappsv1.RollingUpdateDeployment().WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt32(0)))
}

// podSpec mounts the whole ConfigMap, although one key of it is read. Items would change the pods, and several endpoint
// pickers are recreated then. No known plugin takes endpoints from a key that somebody adds: no configuration has a discovery.
func (r *rendering) podSpec() map[string]any {
	pod := &r.router.Pod
	spec := map[string]any{
		"serviceAccountName":            r.cluster.EPPName(),
		"terminationGracePeriodSeconds": int64(gracePeriod),
		"securityContext":               podSecurity,
		"containers":                    []any{r.container()},
		"volumes":                       []any{map[string]any{"name": configVolume, "configMap": map[string]string{"name": r.cluster.EPPConfigName()}}},
	}
	if len(pod.NodeSelector) > 0 {
		spec["nodeSelector"] = pod.NodeSelector
	}
	if len(pod.ImagePullSecrets) > 0 {
		spec["imagePullSecrets"] = pod.ImagePullSecrets
	}
	if len(pod.Tolerations) > 0 {
		spec["tolerations"] = pod.Tolerations
	}
	if r.highlyAvailable() {
		spec["topologySpreadConstraints"] = []any{corev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(core.LabelHostname).
			WithWhenUnsatisfiable(core.ScheduleAnyway).
			WithLabelSelector(metav1.LabelSelector().WithMatchLabels(r.podLabels()))}
	}
	return spec
}

// What all endpoint pickers have in common is encoded once. The objects around it are maps,
// because apply configurations cannot contain encoded values.
var (
	podSecurity = kube.MustEncode(corev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(nonRoot).
			WithSeccompProfile(corev1.SeccompProfile().WithType(core.SeccompProfileTypeRuntimeDefault)))
	containerSecurity = kube.MustEncode(corev1.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithRunAsNonRoot(true).
				WithCapabilities(corev1.Capabilities().WithDrop("ALL")))
	containerPorts = kube.MustEncode([]any{
		corev1.ContainerPort().WithName("grpc").WithContainerPort(portExtProc).WithProtocol(core.ProtocolTCP),
		corev1.ContainerPort().WithName("grpc-health").WithContainerPort(portHealth).WithProtocol(core.ProtocolTCP),
		corev1.ContainerPort().WithName("metrics").WithContainerPort(plan.PickerMetricsPort).WithProtocol(core.ProtocolTCP)})
	containerEnv = kube.MustEncode([]any{
		fromField("NAMESPACE", "metadata.namespace"),
		fromField("POD_NAME", "metadata.name")})
	// An endpoint picker reports that it is healthy before it listens for gateways: it generates an RSA
	// key first (CreateSelfSignedTLSCertificate in internal/tls/tls.go of GAIE v1.6.0), which takes
	// seconds where CPU is short. Requests that come meanwhile would fail.
	startupProbe = kube.MustEncode(corev1.Probe().
			WithTCPSocket(corev1.TCPSocketAction().WithPort(intstr.FromInt32(portExtProc))).
			WithPeriodSeconds(1).
			WithFailureThreshold(120))
	drain = kube.MustEncode(corev1.Lifecycle().
		WithPreStop(corev1.LifecycleHandler().WithSleep(corev1.SleepAction().WithSeconds(drainPeriod))))
	configMounts = kube.MustEncode([]any{
		corev1.VolumeMount().WithName(configVolume).WithMountPath(configDir).WithReadOnly(true)})
)

// container is that of the endpoint picker. Of several, only the leader gets requests, and the next one leads
// once it is gone. So only a single one waits before it stops.
func (r *rendering) container() map[string]any {
	c := map[string]any{
		"name":            "epp",
		"image":           r.router.Image,
		"imagePullPolicy": string(r.router.Pod.ImagePullPolicy),
		"args":            r.args(),
		"startupProbe":    startupProbe,
		"livenessProbe":   r.probe("liveness").WithInitialDelaySeconds(5).WithPeriodSeconds(10),
		"readinessProbe":  r.readiness(),
		"resources":       resources(r.router.Pod.Resources),
		"securityContext": containerSecurity,
		"ports":           containerPorts,
		"env":             r.env(),
		"volumeMounts":    configMounts,
	}
	if !r.highlyAvailable() {
		c["lifecycle"] = drain
	}
	return c
}

// env has the variables of the endpoint picker.
func (r *rendering) env() any {
	if r.router.Tracing == nil {
		return containerEnv
	}
	all := []any{fromField("NAMESPACE", "metadata.namespace"), fromField("POD_NAME", "metadata.name")}
	for _, e := range r.router.Tracing {
		all = append(all, corev1.EnvVar().WithName(e.Name).WithValue(e.Value))
	}
	return all
}

// args are flags that every release since v1.2.1 has, but for those that need a later one. Tracing is off unless the Input has
// a collector. Metrics need no authentication: that takes a TokenReview, which only a ClusterRole can
// allow, and a namespaced XR cannot have one.
func (r *rendering) args() []string {
	args := []string{
		"--pool-name=" + r.cluster.PoolName(),
		"--pool-namespace=" + r.cluster.Target.Namespace,
		"--pool-group=" + inference.GroupName,
		"--config-file=" + configDir + "/" + epp.ConfigFile,
		"--tracing=" + strconv.FormatBool(r.router.Tracing != nil),
		"--metrics-endpoint-auth=false",
	}
	if r.highlyAvailable() {
		args = append(args, "--ha-enable-leader-election")
	}
	if r.router.EndsAtOnce {
		args = append(args, "--drain-timeout=0s")
	}
	if r.router.ScreensRevisions {
		args = append(args, "--allow-experimental-plugins=true")
	}
	return args
}

// probe checks the health service that the design documents name. With several endpoint pickers
// only the leader is ready, so liveness and readiness are services of their own.
func (r *rendering) probe(of string) *corev1.ProbeApplyConfiguration {
	service := "inference-extension"
	if r.highlyAvailable() {
		service = of
	}
	return corev1.Probe().WithGRPC(corev1.GRPCAction().WithPort(portHealth).WithService(service))
}

// readiness of an endpoint picker that screens revisions has to be seen for a while. It reports that it
// is healthy before it has seen the engines' pods, and answers 503 until then (Screen in
// pkg/epp/framework/plugins/requestcontrol/screener/disaggregatedsetrollout/screener.go of llm-d-router
// v0.10.0). An initial delay would not help: it counts from the start of the container.
func (r *rendering) readiness() *corev1.ProbeApplyConfiguration {
	probe := r.probe("readiness").WithPeriodSeconds(2)
	if r.router.ScreensRevisions {
		probe.WithSuccessThreshold(3)
	}
	return probe
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
