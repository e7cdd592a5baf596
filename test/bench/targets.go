package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
)

// A bench has what is measured and with what.
type bench struct {
	function, floor, goTemplating *target

	calls []*call
}

// The order in which targets take turns.
func (b *bench) targets() []*target { return []*target{b.floor, b.function, b.goTemplating} }

// prepare builds the targets and makes the workloads, whose answers by this
// function are what the floor answers.
func prepare(ctx context.Context, dir string) (*bench, error) {
	built, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	plain := func(c *call) []byte { return c.function }
	b := &bench{
		function:     &target{title: "this function", binary: built.function, args: []string{"--metrics-address="}, method: methodV1, request: plain},
		floor:        &target{title: "floor", binary: built.floor, method: methodV1, request: plain},
		goTemplating: &target{title: "function-go-templating", binary: built.goTemplating, method: methodV1beta1, request: func(c *call) []byte { return c.templated }},
	}
	p, err := start(ctx, b.function)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	for _, w := range workloads {
		calls, err := w.calls(ctx, p.caller)
		if err != nil {
			return nil, err
		}
		b.calls = append(b.calls, calls...)
	}
	for i, c := range b.calls {
		path := filepath.Join(dir, fmt.Sprintf("answer-%d.pb", i))
		answer, err := proto.Marshal(c.answer)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the answer to %s: %w", c.tag(), err)
		}
		if err := os.WriteFile(path, answer, 0o600); err != nil {
			return nil, fmt.Errorf("cannot keep the answer to %s: %w", c.tag(), err)
		}
		b.floor.args = append(b.floor.args, path)
		c.answerFile = path
	}
	return b, nil
}

// find returns the call of a workload in a state.
func (b *bench) find(workload, state string) *call {
	for _, c := range b.calls {
		if c.workload == workload && c.state == state {
			return c
		}
	}
	return nil
}
