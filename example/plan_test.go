package example

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestPlans runs the command in the first line of each file plan/*.txt, and compares what it
// writes with the rest of the file.
func TestPlans(t *testing.T) {
	t.Chdir("..")
	files, err := filepath.Glob("example/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			shown, _, _ := strings.Cut(string(b), "\n")
			args, runs := strings.CutPrefix(shown, "$ go run . ")
			if !runs {
				t.Fatalf("%s starts with %q, and has to start with $ go run .", f, shown)
			}
			out, errs, code := function.Command(t, strings.Fields(args)...)
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d\n%s", code, errs)
			}
			again, _, _ := function.Command(t, strings.Fields(args)...)
			if again != out {
				t.Errorf("two plans of the same files differ:\n%s\n%s", out, again)
			}
			golden(t, f, shown+"\n"+out)
		})
	}
}

// TestPlanExitCodes has the codes of --detailed-exitcode.
func TestPlanExitCodes(t *testing.T) {
	t.Chdir("..")
	input := []string{"--input", "example/plan/input.yaml"}
	cases := map[string]struct {
		reason      string
		input, args []string
		want        int
	}{
		"Stays":     {"Nothing runs in the new cluster, which is abandoned at once.", input, []string{"--abandon", "us-north", "--change", "example/plan/new-cluster.yaml"}, 0},
		"Moves":     {"The other services have room.", input, []string{"--delete", "team-b/qwen", "--drain", "us-south"}, 2},
		"Deleted":   {"What is in the lost cluster of a deleted service waits for it, and the fleet settles meanwhile.", input, []string{"--delete", "team-b/mistral", "--lose", "us-south"}, 2},
		"Changes":   {"All replicas restart where they are.", input, []string{"--change", "example/plan/new-image.yaml"}, 2},
		"Grown":     {"No node has room for the pods.", input, []string{"--change", "example/plan/larger-pods.yaml"}, 3},
		"NotPlaced": {"There is no room for the new service.", input, []string{"--change", "example/plan/new-service.yaml"}, 3},
		"Short":     {"More is reserved than the pool has then. What runs there stays, and nobody knows which node goes.", input, []string{"--change", "example/plan/fewer-nodes.yaml"}, 3},
		"Error":     {"No such cluster.", input, []string{"--drain", "us"}, 1},
		"Refused":   {"Nobody knows what becomes of a service that is refused, as the one whose Gateway only the Input allows.", nil, []string{"--drain", "us-west"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"plan", "example/plan/fleet.yaml", "--detailed-exitcode"}, append(tc.input, tc.args...)...)
			if _, errs, got := function.Command(t, args...); got != tc.want {
				t.Errorf("%s\nwant exit code %d, got %d\n%s", tc.reason, tc.want, got, errs)
			}
		})
	}
}

// scaledFleet has a service of one role with scaling, which runs in the first of two clusters. Only that one has
// room for three replicas.
const scaledFleet = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata: {name: west}
spec: {providerConfigRef: {name: west, apiGroup: %[4]s}, pools: [{name: a, nodeCount: 4, allocatable: {nvidia.com/gpu: 8}}]}
---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata: {name: east}
spec: {providerConfigRef: {name: east, apiGroup: %[4]s}, pools: [{name: a, nodeCount: 2, allocatable: {nvidia.com/gpu: 8}}]}
---
apiVersion: fusioninfer.io/v1alpha1
kind: %[1]s
metadata: {%[2]s, uid: 5a0c7d0e-5f3b-4f0f-9d56-3b1d0b6c2a13}
spec:
  placement: {policy: Failover, clusterSelector: {}}
  roles:
  - name: worker
    componentType: worker
    scaling: {minReplicas: 1, maxReplicas: 8}
    template: {spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model=a/b, --tensor-parallel-size=8], resources: {limits: {nvidia.com/gpu: "8"}}}]}}
status:
  clusters: [{name: west, state: Placed, assigned: [{group: 0}]}]
  %[3]s
`

// TestPlanScaledRole counts a role with scaling by what its InferenceRole asks for.
func TestPlanScaledRole(t *testing.T) {
	const (
		namespaced = "name: chat, namespace: team"
		claimed    = "name: chat-x7k2p, labels: {crossplane.io/claim-name: chat, crossplane.io/claim-namespace: team}"
		status     = "components: {worker: {desiredReplicas: 3, scaling: {requestedReplicas: 3}}}"
		// What kubectl get writes of it. Nothing else that the service composes is in the files.
		observed = `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceRole
metadata:
  name: chat-worker
  namespace: team
  annotations: {crossplane.io/composition-resource-name: inferencerole/worker%s}
  ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: %s, name: chat, controller: true, uid: 5a0c7d0e-5f3b-4f0f-9d56-3b1d0b6c2a13}]
spec: {serviceName: chat, roleName: worker, replicas: 3, current: {replicas: 3}}
`
		waits = `components: {worker: {desiredReplicas: 5, readyReplicas: 4, scaling: {requestedReplicas: 5}}}
  conditions: [{type: Scaled, status: "False", reason: NoCapacity, message: "role worker: 1 of 5 replicas wait for capacity in the fleet", lastTransitionTime: "2026-03-03T12:00:00Z"}]`
		typed = "---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-worker, namespace: team}, spec: {serviceName: %s, roleName: worker, replicas: 3}}\n"
		start = `, fusioninfer.io/start-replicas: "3"`
	)
	cases := map[string]struct {
		reason                     string
		kind, name, status, others string
		want                       string
		code                       int
	}{
		"Unknown":       {"Nobody says how many replicas run, so the least number does.", "InferenceService", namespaced, "", "", "24/32", 2},
		"InferenceRole": {"Three replicas do not fit.", "InferenceService", namespaced, "", fmt.Sprintf(observed, "", "InferenceService"), "8/32", 3},
		"NeverScaled":   {"So do those with which the service has started.", "InferenceService", namespaced, "", fmt.Sprintf(observed, start, "InferenceService"), "8/32", 3},
		"Claim":         {"The InferenceRole of a claim is in its namespace.", "XInferenceService", claimed, "", fmt.Sprintf(observed, "", "XInferenceService"), "8/32", 3},
		"Typed":         {"An InferenceRole without Crossplane's metadata is found by its name.", "InferenceService", namespaced, "", fmt.Sprintf(typed, "chat"), "8/32", 3},
		"ClaimTyped":    {"So is that of a claim.", "XInferenceService", claimed, "", fmt.Sprintf(typed, "chat"), "8/32", 3},
		"OfAnother":     {"An InferenceRole of another service has taken the name, so the service is refused.", "InferenceService", namespaced, "", fmt.Sprintf(typed, "cha"), "32/32", 1},
		"Status":        {"The status has what the InferenceRole asked for last.", "InferenceService", namespaced, status, "", "8/32", 3},
		"ClaimStatus":   {"So has that of the XR behind a claim.", "XInferenceService", claimed, status, "", "8/32", 3},
		"Waits":         {"What waits for capacity does not move what runs.", "InferenceService", namespaced, "", strings.ReplaceAll(fmt.Sprintf(typed, "chat"), "replicas: 3", "replicas: 5, current: {replicas: 4}"), "0/32", 3},
		"StatusWaits":   {"The condition Scaled tells that something waits.", "InferenceService", namespaced, waits, "", "0/32", 3},
		"Newer":         {"The InferenceRole itself counts more than the status.", "InferenceService", namespaced, strings.ReplaceAll(status, "3", "1"), fmt.Sprintf(observed, "", "InferenceService"), "8/32", 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			group := "kubernetes.m.crossplane.io"
			if tc.kind == "XInferenceService" {
				group = "kubernetes.crossplane.io"
			}
			file := filepath.Join(t.TempDir(), "fleet.yaml")
			if err := os.WriteFile(file, []byte(fmt.Sprintf(scaledFleet, tc.kind, tc.name, tc.status, group)+tc.others), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, code := function.Command(t, "plan", file, "--input", "plan/input.yaml", "--drain", "west", "--detailed-exitcode")
			if code != tc.code || (errs != "") != (code == 1) || !strings.Contains(out, tc.want+" nvidia.com/gpu") {
				t.Errorf("%s\nwant exit code %d and %s GPUs free before, got %d\n%s%s", tc.reason, tc.code, tc.want, code, errs, out)
			}
		})
	}
}

// TestPlanControlPlane names the cluster of the control plane, which has no name in a placement, where services come from it
// or go to it.
func TestPlanControlPlane(t *testing.T) {
	const placement = "placement: {policy: Failover, clusterSelector: {}}"
	service := func(placed string) string {
		return fmt.Sprintf(`---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: team}
spec:
  roles: [{name: worker, componentType: worker, template: {spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model=a/b, --tensor-parallel-size=8], resources: {limits: {nvidia.com/gpu: "8"}}}]}}}]
  %s
`, placed)
	}
	cluster := func(nodes int) string {
		return fmt.Sprintf("{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east}, spec: {providerConfigRef: {name: east}, pools: [{name: a, nodeCount: %d, allocatable: {nvidia.com/gpu: 8}}]}}\n", nodes)
	}
	cases := map[string]struct {
		reason         string
		nodes          int
		before, change string
		want           string
	}{
		"Joins":  {"A service joins the fleet.", 1, "", placement, "~ team/chat the control plane's cluster east the control plane's cluster: the placement does not name or select it"},
		"Waits":  {"It stays while the fleet has no room.", 0, "", placement, "! team/chat the control plane's cluster the control plane's cluster (cannot leave) east: "},
		"Leaves": {"A service leaves the fleet.", 1, placement, "", "~ team/chat east the control plane's cluster east: the placement does not name or select it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fleet, change := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "change.yaml")
			for file, text := range map[string]string{fleet: cluster(tc.nodes) + service(tc.before), change: service(tc.change)} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, code := function.Command(t, "plan", fleet, "--change", change)
			if code != 0 || errs != "" || !strings.Contains(strings.Join(strings.Fields(out), " "), tc.want) {
				t.Errorf("%s\nwant %q, got exit code %d\n%s%s", tc.reason, tc.want, code, errs, out)
			}
		})
	}
}

// TestPlanScale shows what becomes of a service whose InferenceRole somebody scales.
func TestPlanScale(t *testing.T) {
	target := func(n int) string {
		return fmt.Sprintf("---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-worker, namespace: team}, spec: {serviceName: chat, roleName: worker, replicas: %d, current: {replicas: %d}}}\n", n, min(n, 4))
	}
	cases := map[string]struct {
		reason   string
		from, to int
		want     string
		code     int
	}{
		"Fits":    {"The service stays where it is, and has more pods.", 1, 4, "scales role worker from 1 to 4 replicas", 2},
		"Shrinks": {"Or less.", 4, 1, "scales role worker from 4 to 1 replicas", 2},
		"Grows":   {"There is room for four.", 1, 5, "1 service cannot be placed completely", 3},
		"Worse":   {"What waits already waits for more.", 5, 6, "1 service cannot be placed completely", 3},
		"Same":    {"What waits as before is no news.", 5, 5, "1 service stays as it is", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fleet, change := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "change.yaml")
			text := fmt.Sprintf(scaledFleet, "InferenceService", "name: chat, namespace: team", "", "kubernetes.m.crossplane.io")
			for file, text := range map[string]string{fleet: text + target(tc.from), change: target(tc.to)} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, code := function.Command(t, "plan", fleet, "--input", "plan/input.yaml", "--change", change, "--detailed-exitcode")
			if code != tc.code || errs != "" || !strings.Contains(out, tc.want) {
				t.Errorf("%s\nwant exit code %d and %q, got %d\n%s%s", tc.reason, tc.code, tc.want, code, errs, out)
			}
		})
	}
}

// TestPlanNamespaces plans as in the default namespace where the Inputs have another one, or one of them has.
func TestPlanNamespaces(t *testing.T) {
	const (
		services = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, fleet: {namespace: fleet-system}}\n"
		clusters = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ClusterInput, namespace: fleet-system}\n"
	)
	dir := t.TempDir()
	fleet := filepath.Join(dir, "fleet.yaml")
	cluster, service, _ := strings.Cut(fmt.Sprintf(scaledFleet, "InferenceService", "name: chat, namespace: team", "", "kubernetes.m.crossplane.io"), "---\napiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\n")
	service = "apiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\n" + service
	for file, text := range map[string]string{"fleet.yaml": cluster + "---\n" + service, "clusters.yaml": cluster, "service.yaml": service, "Services": services, "Clusters": clusters, "Both": services + "---\n" + clusters} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := map[string][]string{
		"plan":   {"plan", fleet, "--drain", "west"},
		"render": {"render", filepath.Join(dir, "service.yaml"), "--required", filepath.Join(dir, "clusters.yaml"), "--simulate", "--format", "summary"},
	}
	for command, args := range commands {
		want, errs, code := function.Command(t, args...)
		if code != 0 || errs != "" || !strings.Contains(want, "east") {
			t.Fatalf("%s: exit code %d\n%s%s", command, code, errs, want)
		}
		for _, input := range []string{"Services", "Clusters", "Both"} {
			if command == "render" && input != "Services" {
				continue // It takes the Input of its XR only.
			}
			out, errs, code := function.Command(t, append(args, "--input", filepath.Join(dir, input))...)
			if out != want || errs != "" || code != 0 {
				t.Errorf("%s with %s: want\n%s\ngot exit code %d\n%s%s", command, input, want, code, errs, out)
			}
		}
	}
}

// TestSimulateDeleted gives the room of a service that is being deleted to others.
func TestSimulateDeleted(t *testing.T) {
	const placed = `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: %s, namespace: team, creationTimestamp: "%s"%s}
spec:
  placement: {clusterSelector: {}}
  roles: [{name: worker, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model=a/b, --tensor-parallel-size=8], resources: {limits: {nvidia.com/gpu: "8"}}}]}}}]
`
	const cluster = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east}, spec: {providerConfigRef: {name: east}, pools: [{name: a, nodeCount: 3, allocatable: {nvidia.com/gpu: 8}}]}}\n"
	dir := t.TempDir()
	service, fleet := filepath.Join(dir, "service.yaml"), filepath.Join(dir, "fleet.yaml")
	for name, tc := range map[string]struct {
		deleted, warning string
		placed           bool
	}{
		"Stays": {},
		"Goes":  {`, deletionTimestamp: "2026-03-02T12:00:00Z"`, "warning: --required: team/old is being deleted, so it counts as gone, and its capacity as free\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			for file, text := range map[string]string{
				service: fmt.Sprintf(placed, "new", "2026-03-03T12:00:00Z", ""),
				fleet:   cluster + fmt.Sprintf(placed, "old", "2026-03-01T12:00:00Z", tc.deleted),
			} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, code := function.Command(t, "render", service, "--required", fleet, "--simulate", "--format", "summary")
			if code != 0 || errs != tc.warning || strings.Contains(out, "WaitingForCapacity") == tc.placed {
				t.Errorf("want placed: %t, got exit code %d\n%s%s", tc.placed, code, errs, out)
			}
		})
	}
}

// TestPlanModelCaches has weights loaded where a service goes that names a ModelCache.
func TestPlanModelCaches(t *testing.T) {
	const (
		cluster = "---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %s}, spec: {providerConfigRef: {name: %s, apiGroup: %s}, pools: [{name: a, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}]}}\n"
		service = `---
apiVersion: fusioninfer.io/v1alpha1
kind: %s
metadata: {%s, uid: 5a0c7d0e-5f3b-4f0f-9d56-3b1d0b6c2a13}
spec:
  placement: {policy: Failover, clusterSelector: {}}
  model: {cacheRef: {name: qwen}}
  roles: [{name: worker, componentType: worker, template: {spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--tensor-parallel-size=8], resources: {limits: {nvidia.com/gpu: "8"}}}]}}}]
status: {clusters: [{name: west, state: Placed, assigned: [{group: 0}]}]}
`
		cache = `---
apiVersion: fusioninfer.io/v1alpha1
kind: %s
metadata: {%s, uid: 6d1f0a52-8a0e-4a39-9c61-2f1f5d7a1e01}
spec: {uri: "hf://Qwen/Qwen3-8B", revision: 9c925d64d72725edaf899c6cb9c377fd0709d9c5, size: 40Gi, %s}
`
		moves = "chat west east west: the cluster is drained"
	)
	const dangling = "warning: spec.model.cacheRef of InferenceService team/chat names ModelCache team/qwen, which is not in the files, so it runs nowhere here\n" +
		"warning: team/chat runs in west by its status, and would not stay there even without the change\n"
	missing := func(kind, name, caches string) string {
		return "error: cannot plan: spec.model.cacheRef of " + kind + " " + name + " names ModelCache team/qwen, which is not in the files, as no other is. Add " + caches + ".fusioninfer.io to the kinds that kubectl gets, or leave the service out\n"
	}
	cases := map[string]struct {
		reason        string
		claimed       bool
		cache, change string
		want, err     string
		code          int
	}{
		"Missing":      {"Without its ModelCache the service would run nowhere.", false, "", "", "", missing("InferenceService", "team/chat", "modelcaches"), 1},
		"MissingClaim": {"So would the one behind a claim.", true, "", "", "", missing("XInferenceService", "chat-x7k2p", "xmodelcaches"), 1},
		"Dangling":     {"Another ModelCache is there, so this one may not exist.", false, "another", "", "Plan: 1 service stays as it is.", dangling, 0},
		"Everywhere":   {"The weights are where the ModelCache says, and are loaded at once.", false, "clusterSelector: {}", "", moves, "", 2},
		"OnDemand":     {"Or where the service goes.", false, "clusterSelector: {}, loadPolicy: OnDemand", "", moves, "", 2},
		"Claim":        {"A ModelCache has a claim as well.", true, "clusterSelector: {}", "", "chat-x7k2p west east west: the cluster is drained", "", 2},
		"Elsewhere":    {"The service goes nowhere else.", false, "clusters: [west]", "", "east: ModelCache qwen is not for this cluster", "", 3},
		"Changed":      {"Until the ModelCache does.", false, "clusters: [west]", fmt.Sprintf(cache, "ModelCache", "name: qwen, namespace: team", "clusters: [west, east]"), moves, "", 2},
		"NewImage":     {"With its weights, the pods of the service are there.", false, "clusterSelector: {}", strings.Replace(fmt.Sprintf(service, "InferenceService", "name: chat, namespace: team"), "v0.11.0", "v0.12.0", 1), "restarts the replica of role worker", "", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prefix, group := "", "kubernetes.m.crossplane.io"
			named := func(name string) string { return "name: " + name + ", namespace: team" }
			if tc.claimed {
				prefix, group = "X", "kubernetes.crossplane.io"
				named = func(name string) string {
					return "name: " + name + "-x7k2p, labels: {crossplane.io/claim-name: " + name + ", crossplane.io/claim-namespace: team}"
				}
			}
			fleet := fmt.Sprintf(cluster, "west", "west", group) + fmt.Sprintf(cluster, "east", "east", group) + fmt.Sprintf(service, prefix+"InferenceService", named("chat"))
			switch tc.cache {
			case "":
			case "another":
				fleet += fmt.Sprintf(cache, "ModelCache", "name: another, namespace: team", "clusterSelector: {}")
			default:
				fleet += fmt.Sprintf(cache, prefix+"ModelCache", named("qwen"), tc.cache)
			}
			dir := t.TempDir()
			args := []string{"plan", filepath.Join(dir, "fleet.yaml"), "--detailed-exitcode"}
			if !strings.Contains(tc.change, "InferenceService") {
				args = append(args, "--drain", "west")
			}
			if tc.change != "" {
				args = append(args, "--change", filepath.Join(dir, "change.yaml"))
			}
			for file, text := range map[string]string{"fleet.yaml": fleet, "change.yaml": tc.change} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, code := function.Command(t, args...)
			if code != tc.code || errs != tc.err || !strings.Contains(strings.Join(strings.Fields(out), " "), tc.want) {
				t.Errorf("%s\nwant exit code %d, %q and %q, got %d\n%s%s", tc.reason, tc.code, tc.want, tc.err, code, errs, out)
			}
		})
	}
}

// TestPlanCopy plans a copy of a service with the UID of the original as one without: an API server gives it its own.
func TestPlanCopy(t *testing.T) {
	cases := map[string]struct {
		reason            string
		kind, name, group string
	}{
		"Service": {"The original is in the same namespace.", "InferenceService", "name: %s, namespace: team", "kubernetes.m.crossplane.io"},
		"Claim": {
			"So it is with the composite resources behind claims.", "XInferenceService",
			"name: %[1]s-x, labels: {crossplane.io/claim-name: %[1]s, crossplane.io/claim-namespace: team}", "kubernetes.crossplane.io",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fleet, change := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "change.yaml")
			west, east, _ := strings.Cut(fmt.Sprintf(scaledFleet, tc.kind, fmt.Sprintf(tc.name, "chat"), "", tc.group), "---\n")
			_, chat, _ := strings.Cut(east, "---\n")
			text := west + "---\n" + chat
			service := strings.Replace(chat, fmt.Sprintf(tc.name, "chat"), fmt.Sprintf(tc.name, "copy"), 1)
			plans := map[string]string{}
			for copied, service := range map[string]string{
				"with":    strings.Replace(service, "uid: ", `deletionTimestamp: "2026-03-02T12:00:00Z", uid: `, 1),
				"without": strings.Replace(service, ", uid: 5a0c7d0e-5f3b-4f0f-9d56-3b1d0b6c2a13", "", 1),
			} {
				for file, text := range map[string]string{fleet: text, change: service} {
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				out, errs, code := function.Command(t, "plan", fleet, "--input", "plan/input.yaml", "--change", change, "--detailed-exitcode")
				plans[copied] = fmt.Sprintf("exit code %d\n%s%s", code, errs, out)
			}
			if diff := cmp.Diff(plans["without"], plans["with"]); diff != "" || !strings.Contains(plans["with"], "Plan: 1 service is new") {
				t.Errorf("%s\n-without, +with:\n%s\n%s", tc.reason, diff, plans["with"])
			}
		})
	}
}
