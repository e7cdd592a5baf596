package main

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/inferencecluster"
	"github.com/fusioninfer/function-inferenceservice/internal/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/parse"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/render"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
	"github.com/fusioninfer/function-inferenceservice/internal/respond"
)

// A Function composes InferenceServices, and the InferenceClusters that they run in.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
	// clock tells the time, to which clusters out of reach are compared, and on which it
	// depends when Crossplane is to call again. Nil is the system's.
	clock func() time.Time
}

func (f *Function) now() time.Time {
	if f.clock == nil {
		return time.Now()
	}
	return f.clock()
}

// RunFunction composes what a request is about. Any problem is a Fatal, which keeps
// all that exists: a partial answer would delete what it leaves out.
//
// A call that nobody waits for any more ends with its context's error, which Crossplane
// takes for the same.
func (f *Function) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (rsp *fnv1.RunFunctionResponse, _ error) {
	rsp = respond.Start(req)
	run, fail := f.composeService, respond.Fail
	if inferencecluster.Is(req) {
		run, fail = inferencecluster.Run, inferencecluster.Kind.Fail
	}
	defer func() { respond.Defect(rsp, f.log, recover(), fail) }()
	run(ctx, req, rsp, f.now())
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return rsp, nil
}

// composeService decides what an InferenceService needs, renders it, and judges what exists
// of it.
func (f *Function) composeService(ctx context.Context, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, now time.Time) {
	r, errs := parse.Parse(req)
	p, errs := plan.Build(r.Service, r.Spec, r.Input, observe.World(req, r.Spec, now), errs)
	if ctx.Err() != nil {
		return
	}
	if len(errs) > 0 {
		respond.Refuse(rsp, errs)
		return
	}
	objects, err := render.Render(p)
	if err != nil {
		respond.Fail(rsp, err)
		return
	}
	if ctx.Err() != nil {
		return
	}
	held := require.Declare(req, rsp, p, objects)
	seen := observe.Look(req, p)
	held = append(append(held, p.Held...), p.HoldForGang(seen.PodGroup, seen.Observed)...)
	held = append(held, p.HoldUnchecked(objects, seen.Observed)...)
	if errs := append(seen.Conflicts(objects), respond.TooLarge(req, rsp, p, objects)...); len(errs) > 0 {
		respond.Refuse(rsp, errs)
		return
	}
	objects = render.Without(objects, held)
	if err := respond.Accept(req, rsp, objects, observe.Judge(p, seen, objects, held), now); err != nil {
		respond.Fail(rsp, err)
	}
}
