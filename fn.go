package main

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cluster"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/model"
	"github.com/fusioninfer/function-inferenceservice/internal/modelcache"
	"github.com/fusioninfer/function-inferenceservice/internal/role"
	"github.com/fusioninfer/function-inferenceservice/internal/service"
)

// A Function composes InferenceServices, the InferenceClusters in which they run, the InferenceModels that
// they answer, the ModelCaches that they share, and the InferenceRoles by which they scale.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
	// clock supplies the time of each call. Everything that takes time goes by it: failover, reservations,
	// the deadlines of rollouts and of starts, the recovery of replicas, failed Jobs, and the response's TTL.
	// Nothing else reads a clock. Nil means time.Now.
	clock func() time.Time
	// answered is told of each call, and its error. Nil is for simulations, which decide
	// nothing.
	answered func(context.Context, *composite.Call, error)
}

// A resource is a composite resource. RunFunction calls its steps in this order.
type resource interface {
	Parse() error   // reads what the user wants and the platform allows, defaults and validates it
	Observe() error // takes the snapshot from which it is planned
	Plan() error    // decides what is needed, and where it runs
	Render() error  // makes the objects
	Require() error // requires what else must be known: pods, names in use, kinds
	Respond() error // evaluates what exists: desired objects, status, conditions
}

// RunFunction composes the composite resource of a request. Any error of a step becomes a
// Fatal result, because Crossplane deletes every composed resource that a response without
// one leaves out.
//
// It returns an error only if the context is done: the caller no longer waits.
func (f *Function) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	now := time.Now
	if f.clock != nil {
		now = f.clock
	}
	call := composite.NewCall(req, now())
	f.compose(ctx, call)
	if f.answered != nil {
		f.answered(ctx, call, ctx.Err())
	}
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return call.Response, nil
}

func (f *Function) compose(ctx context.Context, call *composite.Call) {
	defer func() { call.RefuseInternalError(f.log, recover()) }()
	var r resource
	switch kind := call.Kind(); {
	case kind == cluster.Kind:
		r = cluster.New(call)
	case model.IsKind(kind):
		r = model.New(call)
	case modelcache.IsKind(kind):
		r = modelcache.New(call)
	case kind == role.Kind:
		r = role.New(call)
	default:
		r = service.New(call)
	}
	for _, step := range []func() error{r.Parse, r.Observe, r.Plan, r.Render, r.Require, r.Respond} {
		if ctx.Err() != nil {
			return
		}
		if err := step(); err != nil {
			call.Refuse(err)
			return
		}
	}
}
