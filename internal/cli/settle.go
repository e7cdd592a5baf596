package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// maxRounds is how often services and clusters are asked in turn. They come to rest
// after a few: a service asks, a cluster makes its ledger, and then grants.
const maxRounds = 20

// A party is an XR that takes part: a service that asks, or a cluster that grants.
type party struct {
	given *given
	// kept are its composed resources that the next round has to see.
	kept map[string]object
	// said is what it said last: an ask, or a status.
	said string
}

// settle lets the services and the InferenceClusters among the required objects agree
// on who runs where, as they would in a control plane whose clusters all answer. What
// they agree on is left in g: each cluster with its status, and the asks.
func settle(ctx context.Context, fn Runner, g *given) error {
	services := []*party{{given: g, kept: map[string]object{}}}
	var clusters []*party
	for _, o := range g.cluster[1+len(g.observed):] {
		switch {
		case ofCluster(o):
			clusters = append(clusters, newParty(o))
		case sameKind(o, g.xr):
			p := newParty(o)
			p.given.input = g.input
			services = append(services, p)
		}
	}
	// Whoever asks first is not served first: the oldest is.
	for range maxRounds {
		before := said(services) + said(clusters)
		for _, s := range services {
			if err := s.ask(ctx, fn, g, clusters); err != nil {
				return err
			}
		}
		for _, c := range clusters {
			if err := c.grant(ctx, fn, g, services); err != nil {
				return err
			}
		}
		if said(services)+said(clusters) == before {
			g.cluster = append(without(g.cluster, clusters), xrs(clusters)...)
			maps.Copy(g.observed, services[0].kept)
			return nil
		}
	}
	return fmt.Errorf("the clusters do not come to rest within %d rounds", maxRounds)
}

func newParty(o object) *party {
	o = *o.DeepCopy()
	if o.GetUID() == "" {
		o.SetUID(defaultUID(o))
	}
	o = withLabel(o)
	return &party{given: &given{xr: o, observed: map[string]object{}}, kept: map[string]object{}}
}

func sameKind(a, b object) bool {
	return a.GetKind() == b.GetKind() && a.GetAPIVersion() == b.GetAPIVersion() && (a.GetName() != b.GetName() || a.GetNamespace() != b.GetNamespace())
}

// said is what everybody said last.
func said(all []*party) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.said)
		b.WriteByte('\n')
	}
	return b.String()
}

// ask calls the function on a service, with the clusters as they are.
func (p *party) ask(ctx context.Context, fn Runner, g *given, clusters []*party) error {
	now := *p.given
	now.observed = maps.Clone(p.given.observed)
	maps.Copy(now.observed, p.kept)
	now.cluster = append(without(g.cluster, clusters), xrs(clusters)...)
	out, err := run(ctx, fn, &now)
	if err != nil {
		return err
	}
	for _, o := range out.composed {
		if o.GetAnnotations()[annotationResourceName] == plan.AskKey {
			p.kept[plan.AskKey] = o
			text, _, _ := unstructured.NestedString(o.Object, "data", "ask")
			p.said = text
		}
	}
	return nil
}

// grant calls the function on a cluster, with the asks as they are.
func (p *party) grant(ctx context.Context, fn Runner, g *given, services []*party) error {
	now := *p.given
	now.observed = p.kept
	now.cluster = []object{now.xr}
	for _, o := range g.cluster {
		if o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" {
			now.cluster = append(now.cluster, o) // A cluster may go by their labels.
		}
	}
	for _, s := range services {
		if o, ok := s.kept[plan.AskKey]; ok {
			now.cluster = append(now.cluster, o)
		}
	}
	out, err := run(ctx, fn, &now)
	if err != nil {
		return err
	}
	for _, o := range out.composed {
		p.kept[o.GetAnnotations()[annotationResourceName]] = carried(o)
	}
	status := out.xr.Object["status"]
	p.given.xr.Object["status"] = status
	p.said = fmt.Sprint(status)
	return nil
}

// carried is a composed resource as it is once its cluster has taken it.
func carried(o object) object {
	o = *o.DeepCopy()
	o.SetResourceVersion("1")
	manifest, ok, _ := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
	if !ok {
		return o
	}
	o.Object["status"] = map[string]any{
		"atProvider": map[string]any{"manifest": manifest},
		"conditions": []any{map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": conditionTime}},
	}
	return o
}

// run calls the function and composes its answer. Its results are of no interest
// before everybody agrees, unless it refuses.
func run(ctx context.Context, fn Runner, g *given) (*rendered, error) {
	rsp, err := call(ctx, fn, g)
	if err != nil {
		return nil, err
	}
	if isFatal(rsp) {
		return nil, fmt.Errorf("cannot plan %s %s: %s", g.xr.GetKind(), g.xr.GetName(), rsp.GetResults()[0].GetMessage())
	}
	return compose(g, rsp)
}

// without leaves out the clusters as they were given.
func without(all []object, clusters []*party) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool {
		return ofCluster(o) && slices.ContainsFunc(clusters, func(c *party) bool { return c.given.xr.GetName() == o.GetName() })
	})
}

func xrs(all []*party) []object {
	list := make([]object, 0, len(all))
	for _, p := range all {
		list = append(list, p.given.xr)
	}
	return list
}
