package service

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

func TestTooLarge(t *testing.T) {
	fn := function.Start(t)
	big := func(replicas, bytes int) string {
		return fixture.Service(fmt.Sprintf(`
roles:
- name: w
  componentType: worker
  replicas: %d
  template: {spec: {containers: [{name: vllm, image: i, args: [--model, m], env: [{name: X, value: "%s"}]}]}}
`, replicas, strings.Repeat("x", bytes)))
	}
	got := fixture.Fatals(fn.Run(t, fixture.Request(t, big(1900, 4000), "")))
	m := regexp.MustCompile(`spec\.roles\[0\]\.replicas: Invalid value: 1900: .*: at most (\d+) replicas of this role fit`).FindStringSubmatch(got)
	if m == nil {
		t.Fatalf("want a Fatal with the number that fits, because the response exceeds 4 MiB, got %q", got)
	}
	fit, _ := strconv.Atoi(m[1])
	rsp := fn.Run(t, fixture.Request(t, big(fit, 4000), ""))
	if got := fixture.Fatals(rsp); got != "" {
		t.Errorf("want no Fatal for %d replicas, which should fit, got %s", fit, got)
	}
	if size := proto.Size(rsp); size > 4<<20 {
		t.Errorf("a response of %d bytes is too large for Crossplane", size)
	}
	if got := fixture.Fatals(fn.Run(t, fixture.Request(t, big(fit+60, 4000), ""))); got == "" {
		t.Errorf("%d replicas more than the limit %d are accepted", 60, fit)
	}
	rsp = fn.Run(t, fixture.Request(t, big(1, 3<<20), ""))
	if got := fixture.Fatals(rsp); !strings.Contains(got, "spec.roles[0].template") {
		t.Errorf("want a Fatal for an object that no API server can store, got %q", got)
	}
	if got := fixture.Condition(rsp, "Accepted"); got != "FALSE TooLarge" {
		t.Errorf("the service is too large: want Accepted FALSE TooLarge, got %s", got)
	}
	if got := fixture.Fatals(fn.Run(t, fixture.Request(t, fixture.Service(strings.Replace(fixture.TwoNodes, "replicas: 2", "replicas: 2000", 1)+"replicas: 500"), ""))); !strings.Contains(got, "spec.replicas: Invalid value: 500") {
		t.Errorf("want a Fatal for too many groups, before they are rendered, got %q", got)
	}
}

// TestTooLargeOfOthers shows that the size includes what is not the user's: the platform's
// annotations of every object, and the desired state of earlier functions.
func TestTooLargeOfOthers(t *testing.T) {
	fn := function.Start(t)
	small := fixture.Service(`
roles:
- {name: w, componentType: worker, replicas: 200, template: {spec: {containers: [{name: vllm, image: i, args: [--model, m]}]}}}
`)
	annotated := fixture.Request(t, small, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, annotations: {note: "`+strings.Repeat("x", 30_000)+`"}}`)
	if got := fixture.Fatals(fn.Run(t, annotated)); !strings.Contains(got, "spec.roles[0].replicas: Invalid value: 200") {
		t.Errorf("want a Fatal for annotations of 6 MB, got %q", got)
	}
	pipeline := fixture.Request(t, small, "")
	pipeline.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{
		"theirs": {Resource: fixture.YAML(t, `{apiVersion: v1, kind: ConfigMap, data: {a: "`+strings.Repeat("x", 4<<20-96<<10)+`"}}`)},
	}}
	if got := fixture.Fatals(fn.Run(t, pipeline)); got == "" {
		t.Error("want a Fatal for a response with nearly 4 MiB of another function")
	}
}

// TestRequestTooLarge shows that a service is refused whose capacity request is larger than its clusters read, and not before.
func TestRequestTooLarge(t *testing.T) {
	fn := function.Start(t)
	cluster := fixture.YAML(t, "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east, uid: e}, spec: {providerConfigRef: {name: east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}]}, status: {pools: [{name: p, nodeCount: 1, free: [{nodeCount: 1}]}]}}")
	refused := func(replicas int) string {
		var spec strings.Builder
		spec.WriteString("placement: {clusters: [{name: east, inferenceClusterRef: {name: east}}]}\nroles:\n")
		for i := range 32 {
			var tolerations []string
			for j := range 30 {
				tolerations = append(tolerations, fmt.Sprintf("{key: example.com/%s%d, value: %[1]s%[2]d}", strings.Repeat("x", 40), j))
			}
			fmt.Fprintf(&spec, "- {name: role-with-a-long-name-%d, componentType: worker, replicas: %d, template: {spec: {tolerations: [%s], containers: [{name: vllm, image: i, args: [--model, m]}]}}}\n", i, replicas, strings.Join(tolerations, ", "))
		}
		req := fixture.Request(t, fixture.Service(spec.String()), "")
		req.RequiredResources = fixture.Fleet(t, kube.Lookup(req.GetObserved().GetComposite().GetResource(), "metadata", "uid").GetStringValue(), cluster)
		return fixture.Fatals(fn.Run(t, req))
	}
	if got := refused(50); got != "" {
		t.Errorf("want no Fatal for a request of some 300 KiB, got %.300s", got)
	}
	if got := refused(90); !strings.Contains(got, "makes a capacity request that is too large: at most 393216 bytes") {
		t.Errorf("want a Fatal for a request of some 450 KiB, got %.300q", got)
	}
}
