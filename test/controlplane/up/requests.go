package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/traffic"
)

// firstAnswer is how long the first request may take to be answered.
const firstAnswer = time.Minute

// requests sends requests to a service until its input ends, and waits until they are answered. For each line of input it says what came
// of them: of those since the last line, or since the last sum if the line is "sum".
func requests(args []string, in io.Reader, out io.Writer) error {
	to, every := traffic.Target{}, 100*time.Millisecond
	flags := flag.NewFlagSet("requests", flag.ContinueOnError)
	flags.StringVar(&to.Gateway, "gateway", "", "`address` and port of the gateway")
	flags.StringVar(&to.Host, "host", "", "`name` of the service's host")
	flags.StringVar(&to.Model, "model", "", "`name` of the model that it serves")
	flags.DurationVar(&every, "every", every, "`time` between two requests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	clusters, err := namesOf(flags.Args())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	first, err := answered(ctx, to)
	if err != nil {
		return err
	}
	where := "in " + clusters.name(first.Cluster)
	if len(clusters) == 0 {
		where = "by " + first.Pod
	}
	if _, err := fmt.Fprintf(out, "%.0f requests a second, every fourth for a stream. The first is answered %s.\n", time.Second.Seconds()/every.Seconds(), where); err != nil {
		return err
	}
	s, sum := traffic.Send(ctx, to, every), traffic.NewPhase()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		p := s.Next()
		p.Wait()
		sum.Add(p)
		if lines.Text() == "sum" {
			p, sum = sum, traffic.NewPhase()
		}
		if _, err := fmt.Fprintln(out, clusters.line(p)); err != nil {
			return err
		}
	}
	// Nobody is to be cut off.
	stop()
	s.Wait()
	return lines.Err()
}

// answered sends one request after the other until one is answered.
func answered(ctx context.Context, to traffic.Target) (traffic.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	for {
		by, err := to.Ask(ctx, false)
		if err == nil {
			return by, nil
		}
		select {
		case <-ctx.Done():
			return by, fmt.Errorf("no request to %s is answered: %w", to.Host, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A clusterName is a remote cluster and what the fleet calls it.
type clusterName struct{ fleet, remote string }

type clusterNames []clusterName

// namesOf reads arguments such as us-east=cluster-1. Without any, nobody asks which cluster answers.
func namesOf(args []string) (clusterNames, error) {
	var all clusterNames
	for _, a := range args {
		fleet, remote, ok := strings.Cut(a, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not such as us-east=cluster-1", a)
		}
		all = append(all, clusterName{fleet, remote})
	}
	return all, nil
}

func (c clusterNames) name(remote string) string {
	for _, n := range c {
		if n.remote == remote {
			return n.fleet
		}
	}
	return cmp.Or(remote, "an unknown cluster")
}

// line says in which clusters the requests of a phase were answered, and how many failed and why.
func (c clusterNames) line(p *traffic.Phase) string {
	return fmt.Sprintf("in %.0f s: %s, failed %d%s", p.Took.Seconds(), strings.Join(c.counts(p), ", "), p.Failed(), reasons(p))
}

// counts says how many requests were answered in which clusters, or by how many pods.
func (c clusterNames) counts(p *traffic.Phase) []string {
	if len(c) == 0 {
		n, pods := 0, map[string]bool{}
		for by, of := range p.Answered {
			n += of
			pods[by.Pod] = true
		}
		return []string{fmt.Sprintf("answered %d, by %d of its pods", n, len(pods))}
	}
	count := map[string]int{}
	for by, n := range p.Answered {
		count[c.name(by.Cluster)] += n
	}
	var all []string
	for _, n := range c {
		all = append(all, fmt.Sprintf("%s answered %d", n.fleet, count[n.fleet]))
		delete(count, n.fleet)
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprintf("%s answered %d", name, count[name]))
	}
	return all
}

// reasons are why requests failed.
func reasons(p *traffic.Phase) string {
	all := map[string]bool{}
	for why := range p.Wrong {
		short, _, _ := strings.Cut(why, ":")
		all[short] = true
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(slices.Sorted(maps.Keys(all)), ", ") + ")"
}
