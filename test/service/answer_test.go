// Package service tests the whole function with InferenceServices, over gRPC as Crossplane calls it. Each file has one subject.
package service

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

func TestQuiet(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
	fixture.Observe(req, fn.Run(t, req))
	fixture.MakeReady(t, req)
	rsp := fn.Run(t, req)
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != composite.WhileStable {
		t.Errorf("the service is ready: want TTL %s, got %s", composite.WhileStable, got)
	}
	for key, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			t.Errorf("%s is not ready", key)
		}
	}
	if len(rsp.GetResults()) > 0 {
		t.Errorf("want no results for a service that is ready, got %v", rsp.GetResults())
	}
}

func TestTransitions(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
	fixture.Observe(req, fn.Run(t, req))
	fixture.MakeReady(t, req)
	withConditions := func(status string) *fnv1.RunFunctionRequest {
		r := proto.Clone(req).(*fnv1.RunFunctionRequest)
		r.Observed.Composite.Resource = kube.With(r.GetObserved().GetComposite().GetResource(),
			structpb.NewStructValue(fixture.YAML(t, `{conditions: [{type: WorkloadsReady, status: "`+status+`"}]}`)), "status")
		return r
	}
	if got := fn.Run(t, withConditions("True")).GetResults(); len(got) != 0 {
		t.Errorf("no condition changed: want no results, got %v", got)
	}
	got := fn.Run(t, withConditions("False")).GetResults()
	if len(got) != 1 || got[0].GetSeverity() != fnv1.Severity_SEVERITY_NORMAL || !strings.Contains(got[0].GetMessage(), "WorkloadsReady is True") {
		t.Errorf("a condition changed: want one normal result, got %v", got)
	}
}

// TestWarnings shows that a result is a warning only if something is wrong. That a condition is
// not known yet is no reason for one.
func TestWarnings(t *testing.T) {
	fn := function.Start(t)
	was := func(condition, status string) *fnv1.RunFunctionRequest {
		req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(),
			structpb.NewStructValue(fixture.YAML(t, `{conditions: [{type: `+condition+`, status: "`+status+`"}]}`)), "status")
		return req
	}
	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		want   fnv1.Severity
	}{
		"True":  {"missing kinds were installed", was("KindsAvailable", "False"), fnv1.Severity_SEVERITY_NORMAL},
		"False": {"the workloads are gone", was("WorkloadsReady", "True"), fnv1.Severity_SEVERITY_WARNING},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fn.Run(t, tc.req).GetResults()
			if len(got) != 1 || got[0].GetSeverity() != tc.want {
				t.Errorf("%s: want one result of %s, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
