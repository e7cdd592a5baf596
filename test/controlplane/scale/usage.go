package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// A usage is what was spent until a time.
type usage struct {
	at    time.Time
	calls float64
	// reconciles of InferenceServices. Crossplane calls the function once or several times for each.
	reconciles float64
	// requests that the API server got, and those of them that Crossplane's core has sent.
	requests, coreRequests float64
	composed               int
	functionCPU, coreCPU   float64 // Seconds.
	functionMiB, coreMiB   float64
	functions              int
}

func look(ctx context.Context, c *cluster.Cluster) (usage, error) {
	u := usage{at: time.Now()}
	functions, err := c.FunctionMetrics(ctx)
	if err != nil {
		return u, err
	}
	for _, m := range functions {
		u.calls += m.Sum("grpc_server_handled_total", func(labels map[string]string) bool { return labels["grpc_method"] == "RunFunction" })
		u.functionCPU += m.Sum("process_cpu_seconds_total")
		u.functionMiB += m.Sum("process_resident_memory_bytes") / (1 << 20)
	}
	u.functions = len(functions)
	core, err := c.CoreMetrics(ctx)
	if err != nil {
		return u, err
	}
	u.reconciles = core.Sum("controller_runtime_reconcile_total", func(labels map[string]string) bool {
		return strings.Contains(labels["controller"], "inferenceservices")
	})
	u.coreRequests = core.Sum("rest_client_requests_total")
	u.coreCPU, u.coreMiB = core.Sum("process_cpu_seconds_total"), core.Sum("process_resident_memory_bytes")/(1<<20)
	server, err := c.ServerMetrics(ctx)
	if err != nil {
		return u, err
	}
	u.requests = server.Sum("apiserver_request_total")
	u.composed, err = composed(ctx, c)
	return u, err
}

// since is what was spent since then. Memory is what it is at the end.
func (u usage) since(before usage) usage {
	u.calls -= before.calls
	u.reconciles -= before.reconciles
	u.coreRequests -= before.coreRequests
	u.requests -= before.requests
	u.composed -= before.composed
	u.functionCPU -= before.functionCPU
	u.coreCPU -= before.coreCPU
	u.at = time.Time{}.Add(u.at.Sub(before.at))
	return u
}

func (u usage) row(title string, services int) string {
	each := "-"
	if u.composed > 0 {
		each = fmt.Sprintf("%.1f", u.requests/float64(u.composed))
	}
	return fmt.Sprintf("| %s | %.0f s | %d | %.1f | %.1f | %.1f s | %d x %.0f MiB | %.1f s | %.0f MiB | %.0f | %.0f | %s |",
		title, u.at.Sub(time.Time{}).Seconds(), u.composed, u.reconciles/float64(services), u.calls/float64(services),
		u.functionCPU, u.functions, u.functionMiB/float64(max(1, u.functions)), u.coreCPU, u.coreMiB, u.requests, u.coreRequests, each)
}
