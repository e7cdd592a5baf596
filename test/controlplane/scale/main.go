/*
Command scale measures many InferenceServices on one control plane, and one that is
large: how long until all are ready, how often Crossplane reconciles and calls the
function for it, and what function, Crossplane and API server spend. It writes a table, and never fails
for being slow.
*/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	services := flag.Int("services", 200, "`number` of services")
	replicas := flag.Int("replicas", 300, "`number` of replicas of the large one")
	// The last one counts.
	rate := flag.Int("max-concurrent-reconciles", 5*runtime.NumCPU(), "`number` of composite resources on which Crossplane works at once")
	write := flag.String("write", "", "`file` to write the table into, between its marks")
	flag.Parse()

	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return err
	}
	args := append(slices.Clone(cluster.RecommendedCoreArgs), fmt.Sprintf("--max-concurrent-reconciles=%d", *rate))
	c, err := cluster.Up(ctx, cluster.Options{
		Dir: dir, Nodes: 60, GPUs: 128, CoreArgs: args,
		Progress: func(line string) { fmt.Fprintln(os.Stderr, "scale:", line) },
	})
	defer func() {
		err = errors.Join(err, c.Stop())
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	if err != nil {
		return err
	}
	if err := c.Install(ctx, "v0.1.0"); err != nil {
		return err
	}
	table, err := measure(ctx, c, *services, *replicas, *rate)
	if err != nil {
		return err
	}
	fmt.Print(table)
	if *write == "" {
		return nil
	}
	return replace(*write, table)
}

const (
	// settling is how long everything is left alone after it has become ready. The function is called ever more seldom then.
	settling = 5 * time.Minute
	// quiet is how long everything is left alone to see what it costs then.
	quiet = 2 * time.Minute
)

func measure(ctx context.Context, c *cluster.Cluster, services, replicas, rate int) (string, error) {
	rows := []string{
		"| | time | composed resources | reconciles of each service | calls of the function for each | function's CPU | function's memory | core's CPU | core's memory | API requests | of these by core | API requests for each composed resource |",
		"|---|---|---|---|---|---|---|---|---|---|---|---|",
	}
	add := func(title string, services int, f func() error) error {
		fmt.Fprintln(os.Stderr, "scale:", title)
		before, err := look(ctx, c)
		if err != nil {
			return err
		}
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
		after, err := look(ctx, c)
		if err != nil {
			return err
		}
		rows = append(rows, after.since(before).row(title, services))
		return nil
	}
	if err := errors.Join(
		add(fmt.Sprintf("%d services", services), services, func() error { return createAll(ctx, c, services) }),
		rest(ctx, settling),
		add(fmt.Sprintf("%d services, %s in which nothing happens", services, quiet), services, func() error { return rest(ctx, quiet) }),
		add(fmt.Sprintf("one more of %d replicas", replicas), 1, func() error { return createLarge(ctx, c, replicas) }),
	); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d cores, %s/%s, %s. Crossplane, LeaderWorkerSet, Volcano, API server and etcd share them, and Crossplane works on %d services at once.\n\n%s\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), rate, strings.Join(rows, "\n")), nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

const (
	begin = "<!-- Written by make bench-scale. -->\n"
	end   = "<!-- The end of what make bench-scale writes. -->\n"
)

// replace writes the table between the marks of a document.
func replace(file, table string) error {
	b, err := os.ReadFile(file) //nolint:gosec // The one that was asked for.
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(b), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table: %s", file, begin)
	}
	return os.WriteFile(file, []byte(head+begin+table+end+tail), 0o644) //nolint:gosec // A document.
}
