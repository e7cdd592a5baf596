/*
Package inferencecluster serves InferenceClusters: what a cluster has, and who was
granted how much of it.

Services ask for room by ConfigMaps with a label of the cluster. The cluster grants it,
the oldest service first, and keeps the grants in a ledger, another ConfigMap. Only the
cluster writes its ledger, and only over the version that it read: an answer that was
computed from an old ledger is refused by the API server, and Crossplane then stops
before it writes the status, which is where services read what they were granted. So no
room is given away twice.

As everywhere, nothing is kept between two calls, and what cannot be read is left as it
is.
*/
package inferencecluster

import (
	"context"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/respond"
)

// Kind answers for InferenceClusters.
var Kind = respond.Kind(ConditionTypes())

// Is tells whether a request is about an InferenceCluster.
func Is(req *fnv1.RunFunctionRequest) bool {
	return kube.Lookup(req.GetObserved().GetComposite().GetResource(), "kind").GetStringValue() == v1alpha1.KindCluster
}

// Run decides who is granted what of a cluster, and observes the cluster.
func Run(ctx context.Context, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, now time.Time) {
	c, errs := parse(req)
	if len(errs) > 0 {
		Kind.Refuse(rsp, errs)
		return
	}
	require(req, rsp, c)
	seen, err := look(req, c)
	if err != nil {
		Kind.Fail(rsp, err)
		return
	}
	if ctx.Err() != nil {
		return // Nobody waits for the answer.
	}
	d, err := decide(c, seen)
	if err != nil {
		Kind.Fail(rsp, err)
		return
	}
	if ctx.Err() != nil {
		return
	}
	objects, err := render(c, seen, d)
	if err != nil {
		Kind.Fail(rsp, err)
		return
	}
	if err := Kind.Accept(req, rsp, judge(c, seen, d, objects, now)); err != nil {
		Kind.Fail(rsp, err)
	}
}
