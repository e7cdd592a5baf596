/*
Package main measures the function over gRPC on loopback, beside the floor (a
function on the same SDK that answers with what it built before) and beside
function-go-templating with a template of the same resources.

The targets take turns in one run, and each round's figures are compared with
each other, so that what else the machine does falls on all of them alike. It
prints figures and judges nothing: a busy machine is no defect.
*/
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// commands are the command's flags.
type commands struct {
	Write string `type:"path" help:"Document to write the figures into, between its markers."`
	Only  string `help:"Measure only the latency of the calls whose names begin with this, or, with the word hostile, only what hostile requests cost, or, with the word collection, only what the collection of garbage costs."`
}

func main() {
	c := &commands{}
	kong.Parse(c, kong.Description("Measure the function beside the floor and function-go-templating."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c *commands) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for the binaries: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	progress("build, and make the requests")
	b, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	if c.Only != "" {
		return only(ctx, b, c.Only)
	}
	r, err := measure(ctx, b)
	if err != nil {
		return err
	}
	report := r.report()
	fmt.Print(report)
	if c.Write == "" {
		return nil
	}
	return write(c.Write, report)
}

// only is for those who work on the speed of one thing.
func only(ctx context.Context, b *bench, prefix string) error {
	r := &results{bench: b}
	out := &strings.Builder{}
	if prefix == "collection" {
		all, err := collections(ctx, b, b.find("story 4", "steady"))
		if err != nil {
			return err
		}
		reportCollections(out, all)
		fmt.Print(out.String())
		return nil
	}
	if prefix == "hostile" {
		h, err := survive(ctx, b, b.find("story 4", "steady"))
		if err != nil {
			return err
		}
		h.report(out)
		fmt.Print(out.String())
		return nil
	}
	b.calls = slices.DeleteFunc(b.calls, func(c *call) bool { return !strings.HasPrefix(c.tag(), prefix) })
	running, err := startAll(ctx, b)
	if err != nil {
		return err
	}
	defer stopAll(running)
	if r.latencies, err = latencies(ctx, b, running); err != nil {
		return err
	}
	r.latency(out)
	fmt.Print(out.String())
	return nil
}

func measure(ctx context.Context, b *bench) (*results, error) {
	r := &results{bench: b}
	steady := b.find("story 4", "steady")
	progress("memory and first answers")
	var err error
	if r.footprints, err = footprints(ctx, b, steady); err != nil {
		return nil, err
	}
	if r.collections, err = collections(ctx, b, steady); err != nil {
		return nil, err
	}
	if r.hostility, err = survive(ctx, b, steady); err != nil {
		return nil, err
	}
	running, err := startAll(ctx, b)
	if err != nil {
		return nil, err
	}
	defer stopAll(running)
	if r.latencies, err = latencies(ctx, b, running); err != nil {
		return nil, err
	}
	progress("throughput")
	if r.throughput, err = throughputs(ctx, steady, running); err != nil {
		return nil, err
	}
	return r, nil
}

func startAll(ctx context.Context, b *bench) ([]*server, error) {
	var running []*server
	for _, t := range b.targets() {
		p, err := start(ctx, t)
		if err != nil {
			stopAll(running)
			return nil, err
		}
		running = append(running, p)
	}
	return running, nil
}

func stopAll(running []*server) {
	for _, p := range running {
		p.stop()
	}
}

// progress tells what goes on, apart from the figures.
func progress(what string) { fmt.Fprintln(os.Stderr, "bench:", what) }
