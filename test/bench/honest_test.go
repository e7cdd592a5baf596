package main

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// tolerance is by how much a resource may be larger or smaller than this
// function's, as a part of it. Status texts and hashes differ a little.
const tolerance = 0.02

// TestHonest checks that all targets return the same resources for every call. Otherwise the
// bench would compare functions that do different work.
func TestHonest(t *testing.T) {
	b, err := prepare(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range b.targets() {
		p, err := start(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.stop)
		for _, c := range b.calls {
			t.Run(target.title+", "+c.tag(), func(t *testing.T) {
				got, err := p.caller.call(t.Context(), target.request(c))
				if err != nil {
					t.Fatal(err)
				}
				rsp := &fnv1.RunFunctionResponse{}
				if err := proto.Unmarshal(got, rsp); err != nil {
					t.Fatal(err)
				}
				if f := fatal(rsp); f != "" {
					t.Fatal(f)
				}
				compare(t, c.answer.GetDesired(), rsp.GetDesired())
			})
		}
	}
}

func compare(t *testing.T, want, got *fnv1.State) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want.GetResources()))
	if diff := cmp.Diff(keys, slices.Sorted(maps.Keys(got.GetResources()))); diff != "" {
		t.Fatalf("the same resources: -want, +got:\n%s", diff)
	}
	for _, key := range keys {
		w, g := want.GetResources()[key], got.GetResources()[key]
		// function-go-templating leaves the map that its own annotations were in.
		if m := g.GetResource().GetFields()["metadata"].GetStructValue().GetFields(); len(m["annotations"].GetStructValue().GetFields()) == 0 {
			delete(m, "annotations")
		}
		if w.GetReady() != g.GetReady() {
			t.Errorf("%s: ready is %s, want %s", key, g.GetReady(), w.GetReady())
		}
		sameSize(t, key, w.GetResource(), g.GetResource())
	}
	sameSize(t, "the XR's status", status(want), status(got))
}

// status of the XR. What else is there only says which XR it is.
func status(s *fnv1.State) *structpb.Struct {
	return s.GetComposite().GetResource().GetFields()["status"].GetStructValue()
}

func sameSize(t *testing.T, what string, want, got *structpb.Struct) {
	t.Helper()
	w, g := float64(proto.Size(want)), float64(proto.Size(got))
	if math.Abs(w-g) > tolerance*w {
		t.Errorf("%s has %.0f bytes, want about %.0f: -want, +got:\n%s", what, g, w, cmp.Diff(want.AsMap(), got.AsMap()))
	}
}

// TestSteady checks that nothing is left to do in the steady state. Otherwise the bench would
// measure other work.
func TestSteady(t *testing.T) {
	b, err := prepare(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.calls {
		for key, r := range c.answer.GetDesired().GetResources() {
			want := fnv1.Ready_READY_FALSE
			if c.state == "steady" {
				want = fnv1.Ready_READY_TRUE
			}
			if r.GetReady() != want {
				t.Errorf("%s: %s has %s, want %s", c.tag(), key, r.GetReady(), want)
			}
		}
		if c.state == "steady" && len(c.answer.GetResults()) > 0 {
			t.Errorf("%s: the function still has something to say: %v", c.tag(), c.answer.GetResults())
		}
	}
}
