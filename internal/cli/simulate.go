package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// maxRounds is how often the function is called for each participant. Placement converges
// after a few rounds: a service requests capacity, a cluster creates its ledger, and then
// reserves the capacity.
const maxRounds = 20

// A participant is an XR that takes part in the simulation: a service that requests
// capacity, or a cluster that reserves it.
type participant struct {
	given *given
	// composed are its composed resources that the next round observes.
	composed map[string]object
	// published is what the other participants read of it: a capacity request, or a status.
	published string
}

// simulate places the services among the required objects in the InferenceClusters among
// them, as a control plane would in which every cluster is reachable. Afterwards g has each
// cluster with its status, and its own service's capacity request is observed.
func simulate(ctx context.Context, fn Runner, g *given) error {
	services := []*participant{{given: g, composed: map[string]object{}}}
	var clusters []*participant
	for _, o := range g.cluster[1+len(g.observed):] {
		switch {
		case ofCluster(o):
			clusters = append(clusters, newParticipant(o))
		case sameKind(o, g.xr):
			p := newParticipant(o)
			p.given.input = g.input
			services = append(services, p)
		}
	}
	// The order here decides nothing: clusters reserve for the oldest service first.
	for range maxRounds {
		before := published(services) + published(clusters)
		for _, s := range services {
			if err := s.requestCapacity(ctx, fn, g, clusters); err != nil {
				return err
			}
		}
		for _, c := range clusters {
			if err := c.reserve(ctx, fn, g, services); err != nil {
				return err
			}
		}
		if published(services)+published(clusters) == before {
			g.cluster = append(without(g.cluster, clusters), xrs(clusters)...)
			maps.Copy(g.observed, services[0].composed)
			return nil
		}
	}
	return fmt.Errorf("placement did not converge after %d rounds", maxRounds)
}

func newParticipant(o object) *participant {
	o = *o.DeepCopy()
	if o.GetUID() == "" {
		o.SetUID(defaultUID(o))
	}
	o = withLabel(o)
	return &participant{given: &given{xr: o, observed: map[string]object{}}, composed: map[string]object{}}
}

// sameKind reports whether a and b are different objects of one kind.
func sameKind(a, b object) bool {
	return a.GetKind() == b.GetKind() && a.GetAPIVersion() == b.GetAPIVersion() && (a.GetName() != b.GetName() || a.GetNamespace() != b.GetNamespace())
}

// published joins what all participants published last.
func published(all []*participant) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.published)
		b.WriteByte('\n')
	}
	return b.String()
}

// requestCapacity calls the function for a service, with the clusters as they are now.
func (p *participant) requestCapacity(ctx context.Context, fn Runner, g *given, clusters []*participant) error {
	now := *p.given
	now.observed = maps.Clone(p.given.observed)
	maps.Copy(now.observed, p.composed)
	now.cluster = append(without(g.cluster, clusters), xrs(clusters)...)
	out, err := run(ctx, fn, &now)
	if err != nil {
		return err
	}
	for _, o := range out.composed {
		if o.GetAnnotations()[composite.AnnotationResourceName] == key.CapacityRequest.String() {
			p.composed[key.CapacityRequest.String()] = o
			text, _, _ := unstructured.NestedString(o.Object, "data", reservation.RequestKey)
			p.published = text
		}
	}
	return nil
}

// reserve calls the function for a cluster, with the capacity requests as they are now.
func (p *participant) reserve(ctx context.Context, fn Runner, g *given, services []*participant) error {
	now := *p.given
	now.observed = p.composed
	now.cluster = []object{now.xr}
	for _, o := range g.cluster {
		if o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" {
			now.cluster = append(now.cluster, o) // allowedNamespaces may select by their labels.
		}
	}
	for _, s := range services {
		if o, ok := s.composed[key.CapacityRequest.String()]; ok {
			now.cluster = append(now.cluster, o)
		}
	}
	out, err := run(ctx, fn, &now)
	if err != nil {
		return err
	}
	for _, o := range out.composed {
		p.composed[o.GetAnnotations()[composite.AnnotationResourceName]] = applied(o)
	}
	status := out.xr.Object["status"]
	p.given.xr.Object["status"] = status
	p.published = fmt.Sprint(status)
	return nil
}

// applied returns a composed resource as it is observed once it is applied. An Object of
// provider-kubernetes then reports the manifest that its cluster has.
func applied(o object) object {
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

// run calls the function and composes its response. A Fatal is an error. Other results are
// dropped: they are about a placement that has not converged yet.
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

// without returns all objects but these clusters.
func without(all []object, clusters []*participant) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool {
		return ofCluster(o) && slices.ContainsFunc(clusters, func(c *participant) bool { return c.given.xr.GetName() == o.GetName() })
	})
}

func xrs(all []*participant) []object {
	list := make([]object, 0, len(all))
	for _, p := range all {
		list = append(list, p.given.xr)
	}
	return list
}
