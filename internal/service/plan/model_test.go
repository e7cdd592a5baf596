package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestModel shows what a role of vLLM gets of a model.
func TestModel(t *testing.T) {
	hub := v1alpha1.Model{URI: "hf://Qwen/Qwen3-8B", Revision: "main", TokenSecretRef: &v1alpha1.SecretKeyRef{Name: "hf"}}
	claim := v1alpha1.Model{URI: "pvc://weights/qwen/8b"}
	image := v1alpha1.Model{URI: "oci://ghcr.io/acme/qwen:8b@sha256:00", Path: "models", Name: "Qwen/Qwen3-8B"}
	type want struct {
		Args    []string
		Env     []corev1.EnvVar
		Volumes []corev1.Volume
		Mounts  []corev1.VolumeMount
		Err     string
	}
	token := corev1.EnvVar{Name: "HF_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "hf"}, Key: "token"}}}
	mount := func(name string) []corev1.VolumeMount {
		return []corev1.VolumeMount{{Name: name, MountPath: "/mnt/models", ReadOnly: true}}
	}
	weights := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "weights", ReadOnly: true}}}
	}
	cases := map[string]struct {
		reason   string
		model    v1alpha1.Model
		template string
		want     want
	}{
		"Hub": {
			reason: "The engine downloads it.", model: hub, template: `{spec: {containers: [{name: vllm, image: vllm}]}}`,
			want: want{Args: []string{"--model", "Qwen/Qwen3-8B", "--served-model-name", "Qwen/Qwen3-8B", "--revision", "main"}, Env: []corev1.EnvVar{token}},
		},
		"OwnToken": {
			reason: "The template says which token.", model: hub, template: `{spec: {containers: [{name: vllm, image: vllm, env: [{name: HF_TOKEN, value: mine}]}]}}`,
			want: want{Args: []string{"--model", "Qwen/Qwen3-8B", "--served-model-name", "Qwen/Qwen3-8B", "--revision", "main"}, Env: []corev1.EnvVar{{Name: "HF_TOKEN", Value: "mine"}}},
		},
		"Claim": {
			reason: "The claim is mounted.", model: claim, template: `{spec: {containers: [{name: vllm, image: vllm, args: [--port=8000]}]}}`,
			want: want{Args: []string{"--port=8000", "--model", "/mnt/models/qwen/8b", "--served-model-name", "8b"}, Volumes: []corev1.Volume{weights("model")}, Mounts: mount("model")},
		},
		"OtherContainer": {
			reason: "The engine gets it, and no other container. A volume of the template keeps its name.", model: claim,
			template: `{spec: {volumes: [{name: model, emptyDir: {}}], containers: [{name: vllm, image: vllm}, {name: logs, image: logs}]}}`,
			want: want{
				Args: []string{"--model", "/mnt/models/qwen/8b", "--served-model-name", "8b"}, Mounts: mount("model-2"),
				Volumes: []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, weights("model-2")},
			},
		},
		"Image": {
			reason: "The image is mounted.", model: image, template: `{spec: {containers: [{name: vllm, image: vllm}]}}`,
			want: want{
				Args: []string{"--model", "/mnt/models/models", "--served-model-name", "Qwen/Qwen3-8B"}, Mounts: mount("model"),
				Volumes: []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "ghcr.io/acme/qwen:8b@sha256:00"}}}},
			},
		},
		"Named": {
			reason: "Two models cannot be loaded.", model: claim, template: `{spec: {containers: [{name: vllm, image: vllm, args: [--model=other]}]}}`,
			want: want{Err: `spec.roles[0].template.spec.containers[0].args: Invalid value: "--model=other": it names the model "other", and so does spec.model: leave one of them out`},
		},
		"NamedAndMore": {
			reason: "Other problems of the template are told with it.", model: claim,
			template: `{spec: {containers: [{name: vllm, image: vllm, imagePullPolicy: always, args: [--model=other]}]}}`,
			want: want{Err: `[spec.roles[0].template.spec.containers[0].imagePullPolicy: Unsupported value: "always": supported values: "Always", "IfNotPresent", "Never", ` +
				`spec.roles[0].template.spec.containers[0].args: Invalid value: "--model=other": it names the model "other", and so does spec.model: leave one of them out]`},
		},
		"NoImage": {
			reason: "Which engine the image starts is not known, and no other problem.", model: claim, template: `{spec: {containers: [{name: engine}]}}`,
			want: want{Err: `spec.roles[0].template.spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it`},
		},
		"Mounted": {
			reason: "Two volumes cannot be mounted there.", model: claim,
			template: `{spec: {volumes: [{name: w, emptyDir: {}}], containers: [{name: vllm, image: vllm, volumeMounts: [{name: w, mountPath: /mnt/models/}]}]}}`,
			want:     want{Err: `spec.roles[0].template.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/mnt/models/": must be another path: spec.model is mounted there`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, tc.template)}
			r, _, errs := planRole(0, role, loads{model: &loadedModel{Model: &tc.model}}, defaultInput(), false)
			if len(errs) > 0 {
				if diff := cmp.Diff(tc.want.Err, errs.ToAggregate().Error()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			engine := r.Leader.engine()
			got := want{Args: engine.Args, Env: engine.Env, Volumes: r.Leader.Spec.Volumes, Mounts: engine.VolumeMounts}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPathsWithModel shows that warnings name words of the command line as the user wrote it, wherever
// the model of spec.model was put.
func TestPathsWithModel(t *testing.T) {
	const at = "spec.roles[0].template.spec.containers[0]."
	for name, tc := range map[string]struct{ command, args, want string }{
		"Args":      {"[]", "[--no-such-flag]", at + "args[0]"},
		"Serve":     {"[vllm, serve]", "[--enforce-eager, --no-such-flag]", at + "args[1]"},
		"InCommand": {"[vllm, serve, --no-such-flag]", "[]", at + "command[2]"},
		"InArgs":    {"[vllm]", "[serve, --no-such-flag]", at + "args[1]"},
		"Both":      {"[nice, vllm, serve, --enforce-eager]", "[--no-such-flag]", at + "args[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			template := `{spec: {containers: [{name: engine, image: "vllm/vllm-openai:v0.19.0", command: ` + tc.command + ", args: " + tc.args + "}]}}"
			role := v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, template)}
			_, warnings, errs := planRole(0, role, loads{model: &loadedModel{Model: &v1alpha1.Model{URI: "hf://org/m"}}}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.Path)
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
