package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// cachedModel is a service of one replica with a model.
func cachedModel(model string) string {
	return "model: {" + model + "}\nroles:\n- {name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm}]}}}\n"
}

// TestLoader shows what the loading Job runs, as whom and where.
func TestLoader(t *testing.T) {
	type want struct {
		Image, Script            string
		Args, Env, Secrets       []string
		User, Group, VolumeGroup int64
		NodeSelector             map[string]string
		Tolerations              []string
	}
	const hub = `model: {uri: "hf://Qwen/Qwen3-8B", revision: main, tokenSecretRef: {name: hf}, cache: {size: 40Gi}}`
	cases := map[string]struct {
		reason, spec, input string
		want                want
	}{
		"Hub": {
			reason: "The token is a reference.", spec: cachedModel(`uri: "hf://Qwen/Qwen3-8B", revision: main, tokenSecretRef: {name: hf}, cache: {size: 40Gi}`),
			want: want{
				Image: "vllm/vllm-openai:v0.27.1", Script: `hf download "$2" --local-dir "$1" --revision "$3"`,
				Args: []string{"load", "/mnt/models/qwen3-8b-333aff3ef395", "Qwen/Qwen3-8B", "main"}, Env: []string{"HOME=/tmp", "PYTHONNOUSERSITE=1", "HF_HOME=/tmp/huggingface", "HF_TOKEN from hf/token"},
				Secrets: []string{"hf"}, User: 1000, Group: 1000, VolumeGroup: 1000,
			},
		},
		"Bucket": {
			reason: "So are credentials.", spec: cachedModel(`uri: "s3://models/qwen/8b", credentialsSecretRef: {name: s3}, cache: {size: 40Gi}`),
			want: want{
				Image: "public.ecr.aws/aws-cli/aws-cli:2.31.0", Script: `aws s3 sync "$2" "$1" --no-progress --only-show-errors --delete`,
				Args:    []string{"load", "/mnt/models/8b-7b747a4b05c1", "s3://models/qwen/8b"},
				Env:     []string{"HOME=/tmp", "PYTHONNOUSERSITE=1", "AWS_ACCESS_KEY_ID from s3/AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY from s3/AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN from s3/AWS_SESSION_TOKEN", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true"},
				Secrets: []string{"s3", "s3"}, User: 1000, Group: 1000, VolumeGroup: 1000,
			},
		},
		"Public": {
			reason: "Without credentials it has none of the node, and it deletes nothing in a claim of others.", spec: cachedModel(`uri: "s3://models", cache: {claimName: weights}`),
			want: want{
				Image: "public.ecr.aws/aws-cli/aws-cli:2.31.0", Script: `aws s3 sync "$2" "$1" --no-progress --only-show-errors --no-sign-request`,
				Args: []string{"load", "/mnt/models/models-f0252ddd88b6", "s3://models"}, Env: []string{"HOME=/tmp", "PYTHONNOUSERSITE=1", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true"},
				User: 1000, Group: 1000, VolumeGroup: 1000,
			},
		},
		"Platform": {
			reason: "The platform team says where the hub is, and sets no variable that the Job needs.", spec: cachedModel(`uri: "hf://a/b", cache: {size: 1Gi}`),
			input: `modelLoader: {hubImage: mirror/hf, runAsUser: 7, imagePullSecrets: [{name: pull}], env: [{name: HF_ENDPOINT, value: "https://hub"}, {name: HOME, value: /root}]}`,
			want: want{
				Image: "mirror/hf", Script: `hf download "$2" --local-dir "$1"`, Args: []string{"load", "/mnt/models/b-15249ce5c3c6", "a/b"},
				Env: []string{"HF_ENDPOINT=https://hub", "HOME=/tmp", "PYTHONNOUSERSITE=1", "HF_HOME=/tmp/huggingface"}, Secrets: []string{"pull"}, User: 7, Group: 7, VolumeGroup: 7,
			},
		},
		"Configured": {
			reason: "The platform team may have a configuration of aws in an image of its own.", spec: cachedModel(`uri: "s3://models", cache: {size: 1Gi}`),
			input: `modelLoader: {env: [{name: AWS_CONFIG_FILE, value: /etc/aws/config}]}`,
			want: want{
				Image: "public.ecr.aws/aws-cli/aws-cli:2.31.0", Script: `aws s3 sync "$2" "$1" --no-progress --only-show-errors --delete --no-sign-request`,
				Args: []string{"load", "/mnt/models/models-f0252ddd88b6", "s3://models"}, Env: []string{"AWS_CONFIG_FILE=/etc/aws/config", "HOME=/tmp", "PYTHONNOUSERSITE=1", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true"},
				User: 1000, Group: 1000, VolumeGroup: 1000,
			},
		},
		"Engines": {
			reason: "It runs as the engines do and where they do, with their device's taint and without the device.", spec: hub + `
roles:
- name: w
  componentType: worker
  template:
    spec:
      securityContext: {runAsUser: 2000, fsGroup: 3000}
      nodeSelector: {gpu: h100}
      tolerations: [{key: team, operator: Exists}]
      containers: [{name: vllm, image: vllm, resources: {limits: {nvidia.com/gpu: "1"}}}]
`,
			want: want{
				Image: "vllm/vllm-openai:v0.27.1", Script: `hf download "$2" --local-dir "$1" --revision "$3"`,
				Args: []string{"load", "/mnt/models/qwen3-8b-333aff3ef395", "Qwen/Qwen3-8B", "main"}, Env: []string{"HOME=/tmp", "PYTHONNOUSERSITE=1", "HF_HOME=/tmp/huggingface", "HF_TOKEN from hf/token"},
				Secrets: []string{"hf"}, User: 2000, Group: 2000, VolumeGroup: 3000, NodeSelector: map[string]string{"gpu": "h100"}, Tolerations: []string{"team", "nvidia.com/gpu"},
			},
		},
		"Root": {
			reason: "It is never root.", spec: hub + `
roles: [{name: w, componentType: worker, template: {spec: {securityContext: {runAsUser: 0}, containers: [{name: vllm, image: vllm}]}}}]
`,
			want: want{
				Image: "vllm/vllm-openai:v0.27.1", Script: `hf download "$2" --local-dir "$1" --revision "$3"`,
				Args: []string{"load", "/mnt/models/qwen3-8b-333aff3ef395", "Qwen/Qwen3-8B", "main"}, Env: []string{"HOME=/tmp", "PYTHONNOUSERSITE=1", "HF_HOME=/tmp/huggingface", "HF_TOKEN from hf/token"},
				Secrets: []string{"hf"}, User: 1000, Group: 1000, VolumeGroup: 1000,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, tc.input)
			if err != nil {
				t.Fatal(err)
			}
			l := p.Weights.Loader
			script := &strings.Builder{}
			for line := range strings.Lines(l.Command[2]) {
				if strings.HasPrefix(line, "hf ") || strings.HasPrefix(line, "aws ") {
					script.WriteString(strings.TrimSuffix(line, "\n"))
				}
			}
			got := want{
				Image: l.Image, Script: script.String(), Args: l.Command[3:], Secrets: p.Weights.secrets(),
				User: l.User, Group: l.Group, VolumeGroup: l.VolumeGroup, NodeSelector: l.NodeSelector,
			}
			for _, e := range l.Env {
				if f := e.ValueFrom; f != nil {
					got.Env = append(got.Env, e.Name+" from "+f.SecretKeyRef.Name+"/"+f.SecretKeyRef.Key)
				} else {
					got.Env = append(got.Env, e.Name+"="+e.Value)
				}
			}
			for _, toleration := range l.Tolerations {
				got.Tolerations = append(got.Tolerations, toleration.Key)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCachedModel shows that engines get what is loaded from the claim, by the model's name and without
// a token.
func TestCachedModel(t *testing.T) {
	p, err := build(t, `
model: {uri: "hf://Qwen/Qwen3-8B", revision: main, tokenSecretRef: {name: hf}, cache: {size: 40Gi}}
roles: [{name: w, componentType: worker, template: {spec: {securityContext: {fsGroup: 5}, containers: [{name: vllm, image: vllm}]}}}]
`, "")
	if err != nil {
		t.Fatal(err)
	}
	pod := p.Roles[0].Leader
	type got struct {
		Args      []string
		Env       int
		Claim     string
		ReadOnly  bool
		MountPath string
		Policy    string
	}
	want := got{
		Args:  []string{"--model", "/mnt/models/qwen3-8b-333aff3ef395", "--served-model-name", "Qwen/Qwen3-8B"},
		Claim: p.Weights.ClaimName, ReadOnly: true, MountPath: "/mnt/models", Policy: "OnRootMismatch",
	}
	mount := pod.engine().VolumeMounts[0]
	if diff := cmp.Diff(want, got{
		pod.engine().Args, len(pod.engine().Env), pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, mount.ReadOnly, mount.MountPath, string(*pod.Spec.SecurityContext.FSGroupChangePolicy),
	}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestBelowCache proves that nothing is mounted in a cache: it is read-only, and has no directory for that.
func TestBelowCache(t *testing.T) {
	const spec = `
model: {uri: "hf://Qwen/Qwen3-8B", cache: {size: 40Gi}}
roles:
- name: w
  componentType: worker
  template: {spec: {volumes: [{name: lora, emptyDir: {}}], containers: [{name: vllm, image: vllm, volumeMounts: [{name: lora, mountPath: /mnt/PATH}]}]}}
`
	if _, err := build(t, strings.Replace(spec, "PATH", "models-of-others", 1), ""); err != nil {
		t.Errorf("beside the cache: %v", err)
	}
	_, err := build(t, strings.Replace(spec, "PATH", "models//lora", 1), "")
	const want = `spec.roles[0].template.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/mnt/models//lora": must be another path: the cache of spec.model is mounted above, read-only, and has no such directory`
	if err == nil || err.Error() != want {
		t.Errorf("in the cache:\nwant %s\ngot  %v", want, err)
	}
}

// TestCaches shows which claims a tenant may have.
func TestCaches(t *testing.T) {
	const allowed = `modelCaches: {storageClassName: nfs, allowedStorageClassNames: ["fast-*"], maxSize: 100Gi}`
	hub := func(cache string) string { return cachedModel(`uri: "hf://a/b", cache: {` + cache + `}`) }
	cases := map[string]struct {
		reason, spec, input  string
		class, err, warnings string
	}{
		"Default": {reason: "The platform team's class is the default.", spec: hub("size: 100Gi"), input: allowed, class: "nfs"},
		"Cluster": {reason: "Without one it is the cluster's.", spec: hub("size: 1Ti")},
		"Allowed": {reason: "Others may be allowed.", spec: hub("size: 1Gi, storageClassName: fast-ssd"), input: allowed, class: "fast-ssd"},
		"Named":   {reason: "The default may be named.", spec: hub("size: 1Gi, storageClassName: nfs"), input: allowed, class: "nfs"},
		"Class": {
			reason: "None is allowed by default.", spec: hub("size: 1Gi, storageClassName: gold"),
			err: `spec.model.cache.storageClassName: Invalid value: "gold": must be left out: none is allowed in namespace ns (modelCaches.allowedStorageClassNames in the Composition's input)`,
		},
		"Size": {
			reason: "A claim is not larger than allowed.", spec: hub("size: 101Gi"), input: allowed,
			err: `spec.model.cache.size: Invalid value: "101Gi": must be at most 100Gi (modelCaches.maxSize in the Composition's input)`,
		},
		"OneNode": {
			reason: "One pod can use a claim of one node.", spec: hub("size: 1Gi, accessMode: ReadWriteOnce") + "rollout: {maxSurge: 0}\n",
		},
		"SeveralNodes": {
			reason: "Several pods may not, but all of them may be on one node.",
			spec:   strings.Replace(hub("size: 1Gi, accessMode: ReadWriteOnce"), "name: w,", "name: w, replicas: 2,", 1),
			warnings: "spec.model.cache.accessMode: lets only one node mount the claim, and the service may have several pods: those on other nodes stay Pending. " +
				"Use ReadWriteMany with a class that nodes can share, or leave out spec.model.cache, so that each engine downloads the model",
		},
		"Shared": {
			reason: "A claim in a namespace of several tenants may be another one's.",
			spec:   hub("claimName: weights") + "placement: {clusters: [{name: east, namespace: shared, providerConfigRef: {name: east}}]}\n",
			input:  `allowedProviderConfigs: [{name: east, namespaces: [shared]}]`,
			err:    `spec.model.cache.claimName: Forbidden: must be left out while cluster "east" runs the service in another namespace than ns: the claim there may be somebody else's`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, tc.input)
			if err != nil || tc.err != "" {
				if diff := cmp.Diff(tc.err, err.Error()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			var warnings []string
			for _, w := range p.Warnings {
				if strings.Contains(w.Path, "model") {
					warnings = append(warnings, w.Path+": "+w.Message)
				}
			}
			if diff := cmp.Diff([]string{tc.class, tc.warnings}, []string{p.Weights.StorageClassName, strings.Join(warnings, "; ")}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDefaultCache shows which models get the cache of the platform team.
func TestDefaultCache(t *testing.T) {
	const own = `modelCaches: {defaultSize: 100Gi, storageClassName: nfs}`
	cases := map[string]struct{ reason, model, input, want string }{
		"Hub":     {reason: "The service says nothing of a cache.", model: `uri: "hf://Qwen/Qwen3-8B"`, input: own, want: "100Gi nfs ReadWriteMany"},
		"Own":     {reason: "The service says what it needs.", model: `uri: "hf://Qwen/Qwen3-8B", cache: {size: 40Gi, accessMode: ReadWriteOnce}`, input: own, want: "40Gi nfs ReadWriteOnce"},
		"Claim":   {reason: "The service has a claim.", model: `uri: "hf://Qwen/Qwen3-8B", cache: {claimName: weights}`, input: own, want: "weights"},
		"Mounted": {reason: "Nothing is loaded.", model: `uri: "pvc://weights/qwen"`, input: own, want: "none"},
		"Unset":   {reason: "The platform team gives none.", model: `uri: "hf://Qwen/Qwen3-8B"`, input: `modelCaches: {storageClassName: nfs}`, want: "none"},
		"Tenant": {
			reason: "A tenant that may have less gets that.", model: `uri: "hf://Qwen/Qwen3-8B"`,
			input: own + "\ntenants: [{namespaces: [ns], modelCaches: {maxSize: 50Gi}}]", want: "50Gi nfs ReadWriteMany",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, cachedModel(tc.model), tc.input)
			if err != nil {
				t.Fatal(err)
			}
			got := "none"
			if w := p.Weights; w != nil && w.Own {
				got = fmt.Sprintf("%s %s %s", w.Size, w.StorageClassName, w.AccessMode)
			} else if w != nil {
				got = w.ClaimName
			}
			mounted := strings.Contains(fmt.Sprint(p.Roles[0].Leader), "persistentVolumeClaim")
			if diff := cmp.Diff([]any{tc.want, tc.want != "none" || name == "Mounted"}, []any{got, mounted}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDefaultCacheKeepsItsName proves that another default size makes no other claim, and so loads nothing again.
func TestDefaultCacheKeepsItsName(t *testing.T) {
	var names []string
	for _, size := range []string{"100Gi", "200Gi"} {
		p, err := build(t, cachedModel(`uri: "hf://Qwen/Qwen3-8B"`), "modelCaches: {defaultSize: "+size+"}")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p.Weights.ClaimName)
	}
	if diff := cmp.Diff(names[0], names[1]); diff != "" {
		t.Errorf("-100Gi, +200Gi:\n%s", diff)
	}
}

// TestDefaultCacheWithAdapters proves that a default changes no service whose engines load adapters: it may run, and
// could not get the weights from another place.
func TestDefaultCacheWithAdapters(t *testing.T) {
	spec := `
model: {uri: "hf://Qwen/Qwen3-8B"}
adapterCache: {size: 10Gi}
roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.27.1", command: [vllm, serve]}]}}}]
`
	for _, input := range []string{"", "modelCaches: {defaultSize: 100Gi}"} {
		p, err := build(t, spec, input)
		if err != nil {
			t.Fatal(err)
		}
		if p.Weights != nil || !p.Downloads {
			t.Errorf("input %q: got weights %v", input, p.Weights)
		}
	}
}

// TestWeightsNames proves that names differ with whatever makes other weights or another claim, and with
// nothing else.
func TestWeightsNames(t *testing.T) {
	names := map[string]string{}
	same := func(a, b string) bool { return names[a] == names[b] }
	for name, tc := range map[string]struct{ model, namespace string }{
		"first":    {`uri: "hf://a/b", cache: {size: 1Gi}`, "ns"},
		"token":    {`uri: "hf://a/b", tokenSecretRef: {name: hf}, name: other, cache: {size: 1Gi}`, "ns"},
		"model":    {`uri: "hf://a/c", cache: {size: 1Gi}`, "ns"},
		"revision": {`uri: "hf://a/b", revision: main, cache: {size: 1Gi}`, "ns"},
		"size":     {`uri: "hf://a/b", cache: {size: 2Gi}`, "ns"},
		"mode":     {`uri: "hf://a/b", cache: {size: 1Gi, accessMode: ReadWriteOnce}`, "ns"},
		"tenant":   {`uri: "hf://a/b", cache: {size: 1Gi}`, "other"},
	} {
		p, err := build(t, cachedModel(tc.model), "")
		if err != nil {
			t.Fatal(err)
		}
		names[name] = weightsOf(p.spec.Model, naming.Identity{Name: strings.Repeat("s", 60), Namespace: tc.namespace}).ClaimName
		if n := len(names[name]) + jobSuffix; n > naming.MaxLabel {
			t.Errorf("the Job of claim %q would have %d characters", names[name], n)
		}
	}
	for name := range names {
		if want := name == "first" || name == "token"; same("first", name) != want {
			t.Errorf("%s: claim %s, the first one is %s", name, names[name], names["first"])
		}
	}
}

// TestLoadersOfOneClaim proves that services which share a claim have Jobs of their own, with names that
// Jobs may have whatever the claim's name is.
func TestLoadersOfOneClaim(t *testing.T) {
	m := &v1alpha1.Model{URI: "hf://a/b", Cache: &v1alpha1.Cache{ClaimName: strings.Repeat("c", 253)}}
	one, other := weightsOf(m, naming.Identity{Name: "one", Namespace: "ns"}), weightsOf(m, naming.Identity{Name: "other", Namespace: "ns"})
	if one.ClaimName != other.ClaimName || one.Directory != other.Directory {
		t.Errorf("the weights of one service are %+v, and those of the other %+v", one, other)
	}
	if one.LoaderName == other.LoaderName {
		t.Errorf("Jobs of both services are called %s", one.LoaderName)
	}
	if n := len(one.LoaderName) + jobSuffix; n > naming.MaxLabel {
		t.Errorf("the Job %q would have %d characters", one.LoaderName, n)
	}
}

// TestLoadingInFleet proves that nothing is loaded in a cluster before it has reserved what a replica needs.
func TestLoadingInFleet(t *testing.T) {
	spec := &v1alpha1.InferenceServiceSpec{
		Model: &v1alpha1.Model{URI: "hf://a/b", Cache: &v1alpha1.Cache{ClaimName: "weights"}},
	}
	for reserved, want := range map[bool]bool{false: false, true: true} {
		c := ClusterPlan{Target: scheduling.Target{Cluster: "east"}, NotStarted: !reserved}
		p := &Plan{Weights: weightsOf(spec.Model, naming.Identity{Name: "svc"}), Clusters: []ClusterPlan{c}}
		if reserved {
			p.Clusters[0].Groups = []Group{{Replicas: []Replica{{Role: &Role{Name: "w"}}}}}
		}
		p.load(&RunningView{Replica: func(key.Key) rollout.State { return rollout.State{} }, Weights: func(*ClusterPlan) WeightsView {
			return WeightsView{Loaded: func(string, string) (string, bool) { return "", false }, Job: func(key.Key) JobView { return JobView{} }}
		}})
		if l := p.Clusters[0].Loading; (l != nil && l.Renders) != want {
			t.Errorf("reserved: %v, loading: %+v", reserved, l)
		}
	}
}
