package podsecurity

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

const restricted = `
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: vllm
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// unprivileged is a securityContext that the standard restricted accepts.
const unprivileged = "runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}"

const injected = "must be left out, unless the platform team allows it: Istio's injector may add volumes of the node, images and rights to the pod by it (podSecurity.allowedAnnotations in the Composition's input)"

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason   string
		standard inputv1alpha1.PodSecurity
		template string
		want     []string
	}{
		"Plain": {
			reason:   "A usual template does not violate the default standard.",
			template: `{spec: {containers: [{name: vllm, ports: [{containerPort: 8000}]}], volumes: [{name: shm, emptyDir: {medium: Memory}}]}}`,
		},
		"Host": {
			reason:   "Templates that reach the node are refused, with the path of each violation.",
			template: `{spec: {hostNetwork: true, volumes: [{name: root, hostPath: {path: /}}], initContainers: [{name: init, securityContext: {privileged: true}}], containers: [{name: vllm}, {name: x, ports: [{containerPort: 1, hostPort: 1}]}]}}`,
			want: []string{
				`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": hostPath volumes (volume "root"); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.initContainers[0]: Forbidden: violates PodSecurity "baseline:latest": privileged (container "init" must not set securityContext.privileged=true); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[1]: Forbidden: violates PodSecurity "baseline:latest": hostPort (container "x" uses hostPort 1); the platform team sets the standard (podSecurity in the Composition's input)`,
			},
		},
		"Privileged": {
			reason:   "The standard privileged allows everything.",
			standard: inputv1alpha1.PodSecurity{Enforce: inputv1alpha1.PodSecurityPrivileged},
			template: `{spec: {hostNetwork: true, hostPID: true, containers: [{name: vllm, securityContext: {privileged: true}}]}}`,
		},
		"Capability": {
			reason:   "The default standard does not allow IPC_LOCK, which RDMA needs.",
			template: `{spec: {containers: [{name: vllm, securityContext: {capabilities: {add: [IPC_LOCK]}}}]}}`,
			want:     []string{`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container "vllm" must not include "IPC_LOCK" in securityContext.capabilities.add); the platform team sets the standard (podSecurity in the Composition's input)`},
		},
		"AllowedCapability": {
			reason:   "An allowed capability is accepted, and others are still refused.",
			standard: inputv1alpha1.PodSecurity{AllowedCapabilities: []corev1.Capability{"IPC_LOCK"}},
			template: `{spec: {containers: [{name: vllm, securityContext: {capabilities: {add: [IPC_LOCK, SYS_ADMIN]}}}]}}`,
			want:     []string{`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container "vllm" must not include "SYS_ADMIN" in securityContext.capabilities.add); the platform team sets the standard (podSecurity in the Composition's input)`},
		},
		"Restricted": {
			reason:   "A template that satisfies the strictest standard is accepted.",
			standard: inputv1alpha1.PodSecurity{Enforce: inputv1alpha1.PodSecurityRestricted},
			template: restricted,
		},
		"NotRestricted": {
			reason:   "All violations are reported at once.",
			standard: inputv1alpha1.PodSecurity{Enforce: inputv1alpha1.PodSecurityRestricted, EnforceVersion: "v1.30"},
			template: `{spec: {containers: [{name: vllm}]}}`,
			want: []string{
				`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "restricted:v1.30": allowPrivilegeEscalation != false (container "vllm" must set securityContext.allowPrivilegeEscalation=false); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "restricted:v1.30": unrestricted capabilities (container "vllm" must set securityContext.capabilities.drop=["ALL"]); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "restricted:v1.30": runAsNonRoot != true (pod or container "vllm" must set securityContext.runAsNonRoot=true); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "restricted:v1.30": seccompProfile (pod or container "vllm" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"); the platform team sets the standard (podSecurity in the Composition's input)`,
			},
		},
		"Injector": {
			reason:   "Istio's injector would mount volumes of the node, or run its own container as root. Whether there is a sidecar is the tenant's choice.",
			template: `{metadata: {annotations: {sidecar.istio.io/inject: "true", sidecar.istio.io/userVolume: '{"root":{"hostPath":{"path":"/"}}}', proxy.istio.io/config: '{interceptionMode: TPROXY}', inject.istio.io/templates: own, traffic.sidecar.istio.io/kubevirtInterfaces: x, networking.istio.io/service-type: ClusterIP, example.com/a: b}}, spec: {containers: [{name: vllm}]}}`,
			want: []string{
				`spec.template.metadata.annotations[inject.istio.io/templates]: Forbidden: ` + injected,
				`spec.template.metadata.annotations[proxy.istio.io/config]: Forbidden: ` + injected,
				`spec.template.metadata.annotations[sidecar.istio.io/userVolume]: Forbidden: ` + injected,
				`spec.template.metadata.annotations[traffic.sidecar.istio.io/kubevirtInterfaces]: Forbidden: ` + injected,
			},
		},
		"AllowedInjector": {
			reason:   "The platform team may allow single annotations.",
			standard: inputv1alpha1.PodSecurity{AllowedAnnotations: []string{"proxy.istio.io/config"}},
			template: `{metadata: {annotations: {proxy.istio.io/config: '{holdApplicationUntilProxyStarts: true}', sidecar.istio.io/proxyImage: x}}, spec: {containers: [{name: vllm}]}}`,
			want:     []string{`spec.template.metadata.annotations[sidecar.istio.io/proxyImage]: Forbidden: ` + injected},
		},
		"PrivilegedInjector": {
			reason:   "The standard privileged allows every annotation.",
			standard: inputv1alpha1.PodSecurity{Enforce: inputv1alpha1.PodSecurityPrivileged},
			template: `{metadata: {annotations: {sidecar.istio.io/userVolume: '{}'}}, spec: {containers: [{name: vllm}]}}`,
		},
		"Annotation": {
			reason:   "AppArmor profiles in annotations, as in older Kubernetes, are checked, too.",
			template: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/vllm: unconfined}}, spec: {containers: [{name: vllm}]}}`,
			want:     []string{`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/vllm="unconfined""); the platform team sets the standard (podSecurity in the Composition's input)`},
		},
		"AnnotationBeside": {
			reason:   "The profile of a container is said at its path, and the annotation once.",
			template: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined}}, spec: {containers: [{name: vllm, securityContext: {appArmorProfile: {type: Unconfined}}}, {name: x}]}}`,
			want: []string{
				`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/x="unconfined""); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[0]: Forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profile (container "vllm" must not set AppArmor profile type to "Unconfined"); the platform team sets the standard (podSecurity in the Composition's input)`,
			},
		},
		"SeccompAnnotation": {
			reason:   "Old versions of the standard read seccomp profiles in annotations. Those of a container are said at its path.",
			standard: inputv1alpha1.PodSecurity{EnforceVersion: "v1.18"},
			template: `{metadata: {annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined, container.seccomp.security.alpha.kubernetes.io/x: unconfined, container.seccomp.security.alpha.kubernetes.io/vllm: runtime/default}}, spec: {containers: [{name: vllm}, {name: x}]}}`,
			want: []string{
				`spec.template.spec: Forbidden: violates PodSecurity "baseline:v1.18": seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined"); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[1]: Forbidden: violates PodSecurity "baseline:v1.18": seccompProfile (forbidden annotation container.seccomp.security.alpha.kubernetes.io/x="unconfined"); the platform team sets the standard (podSecurity in the Composition's input)`,
			},
		},
		"Ephemeral": {
			reason:   "An ephemeral container is the pod's, and says nothing of the others.",
			template: `{spec: {ephemeralContainers: [{name: debug, securityContext: {privileged: true}}], containers: [{name: vllm}]}}`,
			want:     []string{`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": privileged (container "debug" must not set securityContext.privileged=true); the platform team sets the standard (podSecurity in the Composition's input)`},
		},
		"EphemeralBeside": {
			reason:   "What the pod sets is said once, with the ephemeral container, and each other container has its own.",
			template: `{spec: {securityContext: {seccompProfile: {type: Unconfined}}, ephemeralContainers: [{name: debug, securityContext: {privileged: true, seccompProfile: {type: Unconfined}}}], containers: [{name: vllm}, {name: x, securityContext: {privileged: true}}]}}`,
			want: []string{
				`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": privileged (container "debug" must not set securityContext.privileged=true); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec: Forbidden: violates PodSecurity "baseline:latest": seccompProfile (pod and container "debug" must not set securityContext.seccompProfile.type to "Unconfined"); the platform team sets the standard (podSecurity in the Composition's input)`,
				`spec.template.spec.containers[1]: Forbidden: violates PodSecurity "baseline:latest": privileged (container "x" must not set securityContext.privileged=true); the platform team sets the standard (podSecurity in the Composition's input)`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := messages(check(t, tc.standard, tc.template))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefusesWhatTheLibraryRefuses shows that a template is refused if and only if the library refuses the whole pod. Only what the errors
// say goes by single containers.
func TestRefusesWhatTheLibraryRefuses(t *testing.T) {
	pods := []string{""}
	for _, part := range []struct {
		format string
		values []string
	}{
		{"{metadata: {annotations: {%s}}, ", []string{
			"", "container.apparmor.security.beta.kubernetes.io/a: unconfined", "container.apparmor.security.beta.kubernetes.io/gone: unconfined", "seccomp.security.alpha.kubernetes.io/pod: unconfined",
			"container.seccomp.security.alpha.kubernetes.io/a: unconfined", "container.seccomp.security.alpha.kubernetes.io/debug: unconfined", "example.com/a: b",
		}},
		{"spec: {securityContext: {%s}, ", []string{"", "runAsNonRoot: true", "runAsUser: 0", "seccompProfile: {type: RuntimeDefault}", "seccompProfile: {type: Unconfined}"}},
		{"containers: [{name: a, securityContext: {%s}}], ", []string{"", "privileged: true", unprivileged, "runAsUser: 0", "appArmorProfile: {type: Unconfined}"}},
		{"ephemeralContainers: [{name: debug, securityContext: {%s}}]}}", []string{"", "privileged: true", unprivileged}},
	} {
		var longer []string
		for _, p := range pods {
			for _, v := range part.values {
				longer = append(longer, p+fmt.Sprintf(part.format, v))
			}
		}
		pods = longer
	}
	for _, standard := range []inputv1alpha1.PodSecurity{{EnforceVersion: "v1.18"}, {}, {Enforce: inputv1alpha1.PodSecurityRestricted, EnforceVersion: "v1.18"}, {Enforce: inputv1alpha1.PodSecurityRestricted}} {
		c, accepted := checker(t, standard), 0
		for _, pod := range pods {
			p := template(t, pod)
			errs := c.Check(nil, &p.ObjectMeta, &p.Spec)
			allowed := policy.AggregateCheckResults(c.checks.EvaluatePod(c.level, &p.ObjectMeta, &p.Spec)).Allowed
			if allowed != (len(errs) == 0) {
				t.Errorf("%s: the library allows it: %t, got %v for %s", c.level.String(), allowed, errs, pod)
			}
			if allowed {
				accepted++
			}
		}
		if accepted == 0 || accepted == len(pods) {
			t.Errorf("%s: want pods of both kinds, %d of %d are accepted", c.level.String(), accepted, len(pods))
		}
	}
}

// A counter counts the ephemeral containers and annotations that it is given.
type counter struct {
	policy.Evaluator

	seen int
}

func (c *counter) EvaluatePod(level api.LevelVersion, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) []policy.CheckResult {
	c.seen += len(spec.EphemeralContainers) + len(metadata.Annotations)
	return c.Evaluator.EvaluatePod(level, metadata, spec)
}

// TestCheckSeesPodTwice shows that ephemeral containers and annotations are not checked again with every container.
func TestCheckSeesPodTwice(t *testing.T) {
	const each = 1000
	p := corev1.PodTemplateSpec{}
	p.Annotations = map[string]string{}
	yes := true
	for i := range each {
		name := strconv.Itoa(i)
		p.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+name] = "unconfined"
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, SecurityContext: &corev1.SecurityContext{Privileged: &yes}})
	}
	c := checker(t, inputv1alpha1.PodSecurity{})
	n := &counter{Evaluator: c.checks}
	c.checks = n
	if errs := c.Check(nil, &p.ObjectMeta, &p.Spec); len(errs) != each+1 {
		t.Errorf("want %d errors, got %d", each+1, len(errs))
	}
	if most := 2 * 2 * each; n.seen > most {
		t.Errorf("want at most %d ephemeral containers and annotations to be looked at, got %d", most, n.seen)
	}
}

// TestCheckIsShort shows that the length of errors is limited, although the library lists all violations.
func TestCheckIsShort(t *testing.T) {
	p := corev1.PodTemplateSpec{}
	const each = 2000
	yes := true
	for i := range each {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: strconv.Itoa(i), VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}})
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: strconv.Itoa(i), SecurityContext: &corev1.SecurityContext{Privileged: &yes}})
	}
	standard := inputv1alpha1.Input{}
	c, err := New(standard.PolicyOf("a").PodSecurity)
	if err != nil {
		t.Fatal(err)
	}
	errs := c.Check(field.NewPath("spec", "template"), &p.ObjectMeta, &p.Spec)
	if len(errs) != each+1 {
		t.Errorf("want %d errors, got %d", each+1, len(errs))
	}
	for _, e := range errs {
		if n := len(e.Error()); n > 2*maxDetail {
			t.Errorf("want a short error, got %d bytes", n)
		}
	}
}

func check(t *testing.T, standard inputv1alpha1.PodSecurity, doc string) field.ErrorList {
	t.Helper()
	p := template(t, doc)
	before := p.DeepCopy()
	errs := checker(t, standard).Check(field.NewPath("spec", "template"), &p.ObjectMeta, &p.Spec)
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the template was changed: -before +after:\n%s", diff)
	}
	return errs
}

func template(t *testing.T, doc string) *corev1.PodTemplateSpec {
	t.Helper()
	p := corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(doc), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func checker(t *testing.T, standard inputv1alpha1.PodSecurity) *Checker {
	t.Helper()
	in := inputv1alpha1.Input{Policy: inputv1alpha1.Policy{PodSecurity: &standard}}
	c, err := New(in.PolicyOf("a").PodSecurity)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func messages(errs field.ErrorList) []string {
	var all []string
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return all
}
