package main

import (
	"context"
	"time"

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
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (rsp *fnv1.RunFunctionResponse, _ error) {
	rsp = respond.Start(req)
	run, fail := f.composeService, respond.Fail
	if inferencecluster.Is(req) {
		run, fail = inferencecluster.Run, inferencecluster.Kind.Fail
	}
	defer func() { respond.Defect(rsp, f.log, recover(), fail) }()
	run(req, rsp, f.now())
	return rsp, nil
}

// composeService decides what an InferenceService needs, renders it, and judges what exists
// of it.
func (f *Function) composeService(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, now time.Time) {
	r, errs := parse.Parse(req)
	p, errs := plan.Build(r.Service, r.Spec, r.Input, observe.World(req, r.Spec, now), errs)
	if len(errs) > 0 {
		respond.Refuse(rsp, errs)
		return
	}
	objects, err := render.Render(p)
	if err != nil {
		respond.Fail(rsp, err)
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
