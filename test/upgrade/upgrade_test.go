package upgrade

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	xr = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata:
  name: qwen
`
	lws = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  annotations:
    crossplane.io/composition-resource-name: leaderworkerset/worker/0
  labels:
    fusioninfer.io/spec-hash: aaaa
  name: qwen-worker-0
  namespace: default
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
        - name: vllm
          image: vllm:v1
`
	remote = `apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
metadata:
  annotations:
    crossplane.io/composition-resource-name: cluster/a/deployment/epp
  name: qwen-epp-deployment-1234
spec:
  forProvider:
    manifest:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: qwen-epp, namespace: llm}
      spec:
        replicas: 2
        selector: {matchLabels: {app: qwen-epp}}
        template: {metadata: {annotations: {hash: "1"}}}
`
	config = `apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    crossplane.io/composition-resource-name: configmap/epp
  name: qwen-epp
`
	rendered = xr + "---\n" + lws + "---\n" + remote + "---\n" + config
)

func TestWorkloads(t *testing.T) {
	got, err := Workloads(rendered)
	if err != nil {
		t.Fatal(err)
	}
	want := []Workload{
		{
			Key:    "leaderworkerset/worker/0",
			Object: "LeaderWorkerSet default/qwen-worker-0",
			Pods: map[string]any{"leaderWorkerTemplate": map[string]any{
				"size": float64(2),
				"workerTemplate": map[string]any{"spec": map[string]any{
					"containers": []any{map[string]any{"name": "vllm", "image": "vllm:v1"}},
				}},
			}},
		},
		{
			Key:    "cluster/a/deployment/epp",
			Object: "Deployment llm/qwen-epp",
			Pods: map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": "qwen-epp"}},
				"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"hash": "1"}}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workloads: -want, +got:\n%s", diff)
	}
}

// TestCheck stores a release of two examples, renders them differently, and checks the problems
// that are reported.
func TestCheck(t *testing.T) {
	type args struct {
		// now is what comes out today, for the example story.
		now       string
		refused   error
		changelog string
	}
	released := "## v0.1.0\n\n- rolls pods: all: this is about older ones\n"
	cases := map[string]struct {
		reason string
		args   args
		// want is in the one problem. Empty is no problem.
		want string
	}{
		"Same": {
			reason: "Without a difference there is no problem.",
			args:   args{now: rendered, changelog: "## Unreleased\n" + released},
		},
		"NotPods": {
			reason: "Replica counts, labels of the object, other objects and new ones restart nothing.",
			args: args{
				now: strings.NewReplacer("replicas: 2", "replicas: 3", "spec-hash: aaaa", "spec-hash: bbbb", "v1\nkind: ConfigMap", "v2\nkind: ConfigMap").Replace(rendered) +
					"---\n" + strings.ReplaceAll(lws, "worker/0", "worker/1"),
				changelog: released,
			},
		},
		"Image": {
			reason: "Another image replaces the pods.",
			args:   args{now: strings.ReplaceAll(rendered, "vllm:v1", "vllm:v2"), changelog: "## Unreleased\n" + released},
			want:   "leaderworkerset/worker/0 (LeaderWorkerSet default/qwen-worker-0): the pods are replaced",
		},
		"Size": {
			reason: "Another size replaces the pods of the group.",
			args:   args{now: strings.ReplaceAll(rendered, "size: 2", "size: 3"), changelog: released},
			want:   "the pods are replaced",
		},
		"Remote": {
			reason: "Objects for other clusters are compared, too.",
			args:   args{now: strings.ReplaceAll(rendered, `hash: "1"`, `hash: "2"`), changelog: released},
			want:   "cluster/a/deployment/epp (Deployment llm/qwen-epp): the pods are replaced",
		},
		"Name": {
			reason: "Under the same key, the observed name stays: but a template that carries it differs, and a new service gets another name.",
			args:   args{now: strings.ReplaceAll(rendered, "name: qwen-worker-0", "name: qwen-w-0"), changelog: released},
			want:   "the pods are replaced",
		},
		"Key": {
			reason: "With another key, the object is deleted and created again.",
			args:   args{now: strings.ReplaceAll(rendered, "leaderworkerset/worker/0", "lws/worker/0"), changelog: released},
			want:   "leaderworkerset/worker/0 (LeaderWorkerSet default/qwen-worker-0) is deleted",
		},
		"Refused": {
			reason: "An example that a release accepted must not be refused.",
			args:   args{refused: errors.New("spec.roles: no"), changelog: released},
			want:   "it is refused now, and was not: spec.roles: no",
		},
		"Named": {
			reason: "The changelog names the case.",
			args: args{
				now:       strings.ReplaceAll(rendered, "vllm:v1", "vllm:v2"),
				changelog: "## Unreleased\n\n- rolls pods: other, story: a better probe.\n\n" + released,
			},
		},
		"NamedButLost": {
			reason: "The changelog cannot excuse pods that are lost.",
			args: args{
				now:       strings.ReplaceAll(rendered, "leaderworkerset/worker/0", "lws/worker/0"),
				changelog: "## Unreleased\n- rolls pods: all: a better probe.\n" + released,
			},
			want: "leaderworkerset/worker/0 (LeaderWorkerSet default/qwen-worker-0) is deleted",
		},
		"NamedByReleaseBetween": {
			reason: "An upgrade over two releases includes the lines of both.",
			args: args{
				now:       strings.ReplaceAll(rendered, "vllm:v1", "vllm:v2"),
				changelog: "## Unreleased\n## [v0.2.0] 2027-01-01\n- rolls pods: all: a better probe.\n" + released,
			},
		},
		"NamedAnother": {
			reason: "A line about another case does not excuse this one.",
			args: args{
				now:       strings.ReplaceAll(rendered, "vllm:v1", "vllm:v2"),
				changelog: "## Unreleased\n- rolls pods: other: a better probe.\n" + released,
			},
			want: "story: leaderworkerset/worker/0",
		},
		"NamedWithoutWhy": {
			reason: "A line without a reason does not count.",
			args: args{
				now:       strings.ReplaceAll(rendered, "vllm:v1", "vllm:v2"),
				changelog: "## Unreleased\n- rolls pods: all:\n" + released,
			},
			want: "the pods are replaced",
		},
		"NamedBefore": {
			reason: "A line above the first section is an example, and does not count.",
			args: args{
				now:       strings.ReplaceAll(rendered, "vllm:v1", "vllm:v2"),
				changelog: "- rolls pods: all: why\n## Unreleased\n" + released,
			},
			want: "the pods are replaced",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := keepRelease(t)
			render := func(dir string) (string, error) {
				if filepath.Base(dir) == "story" {
					return tc.args.now, tc.args.refused
				}
				return rendered, nil
			}
			problems, err := Check(dir, "v0.1.0", tc.args.changelog, render)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tc.want == "" && len(problems) > 0:
				t.Errorf("\n%s\nwant no problem, got %q", tc.reason, problems)
			case tc.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tc.want)):
				t.Errorf("\n%s\nwant one problem with %q, got %q", tc.reason, tc.want, problems)
			}
		})
	}
}

// keepRelease keeps v0.1.0 of three examples, one of which is refused.
func keepRelease(t *testing.T) string {
	t.Helper()
	examples, dir := t.TempDir(), t.TempDir()
	for _, f := range []string{"story/xr.yaml", "story/input.yaml", "story/rendered.yaml", "story/stderr.txt", "other/xr.yaml", "invalid/xr.yaml"} {
		f = filepath.Join(examples, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(filepath.Base(f)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	render := func(dir string) (string, error) {
		if filepath.Base(dir) == "invalid" {
			return "", errors.New("refused")
		}
		return rendered, nil
	}
	if err := Keep(dir, "v0.1.0", examples, render); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestKeep(t *testing.T) {
	dir := keepRelease(t)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i], _ = filepath.Rel(dir, f)
	}
	want := []string{
		"v0.1.0/other/pods.yaml", "v0.1.0/other/xr.yaml",
		"v0.1.0/story/input.yaml", "v0.1.0/story/pods.yaml", "v0.1.0/story/xr.yaml",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("want the inputs and pods of the accepted examples: -want, +got:\n%s", diff)
	}
	versions, err := Releases(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v0.1.0"}, versions); diff != "" {
		t.Errorf("releases: -want, +got:\n%s", diff)
	}
}

func TestMistakes(t *testing.T) {
	render := func(string) (string, error) { return rendered, nil }
	dir := keepRelease(t)
	cases := map[string]struct {
		reason string
		do     func() error
		want   string
	}{
		"Twice": {
			reason: "A stored release cannot be changed.",
			do:     func() error { return Keep(dir, "v0.1.0", t.TempDir(), render) },
			want:   "file exists",
		},
		"NoVersion": {
			reason: "A version must be valid, because it becomes the name of a directory.",
			do:     func() error { return Keep(dir, "../0.1.0", t.TempDir(), render) },
			want:   "is not a version",
		},
		"NothingKept": {
			reason: "A release of which nothing is stored is an error: its check would always pass.",
			do: func() error {
				_, err := Check(dir, "v0.2.0", "## v0.2.0", render)
				return err
			},
			want: "nothing is kept of it",
		},
		"NoSection": {
			reason: "A release without a section is an error: every line would count.",
			do: func() error {
				_, err := Check(dir, "v0.1.0", "## Unreleased\n- rolls pods: all: why", render)
				return err
			},
			want: "CHANGELOG.md has no section of it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.do(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
