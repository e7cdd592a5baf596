/*
Package require asks Crossplane for what the function has to know beyond its own
composed resources: the service's pods, objects that already have a name the
service wants, and which kinds the cluster has.

Crossplane calls the function again until it asks for the same as before, five
times at most. What is asked for depends on the XR, the observed resources and
the schemas only, which do not change between those calls, so it settles at the
second or third.
*/
package require

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

const (
	// Pods is the name of the requirement for the service's pods.
	Pods = "pods"
	// Fleet is the name of the requirement for the clusters of the fleet.
	Fleet = "fleet"
	// existing starts the name of the requirement for an object that has the name
	// of one that is to be composed.
	existing = "existing/"
)

// Headless is the name of the requirement for a Service that may already have the
// name of a LeaderWorkerSet, which makes one of its own name for its pods.
func Headless(key string) string { return "headless/" + key }

// Existing is the name of the requirement for an object that may already have
// the name of the composed resource of that key.
func Existing(key string) string { return existing + key }

// Schema is the name of the requirement for the schema of a kind.
func Schema(o kube.Object) string { return o.Kind() + "." + o.APIVersion() }

// Declare adds the requirements to the response and returns the objects that
// have to wait for their kind. An object whose kind is missing is left out only
// while it is not observed.
func Declare(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, p *plan.Plan, objects []kube.Object) []plan.Held {
	r := &fnv1.Requirements{
		Resources: map[string]*fnv1.ResourceSelector{},
		Schemas:   map[string]*fnv1.SchemaSelector{},
	}
	observed := req.GetObserved().GetResources()
	pods(r, p)
	if p.Fleet != nil {
		// All of them: those that are not selected may be where the service still is, and
		// Crossplane selects by equal labels only.
		r.Resources[Fleet] = &fnv1.ResourceSelector{ApiVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: v1alpha1.KindCluster, Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}}}
	}
	var held []plan.Held
	var known map[string]bool
	if p.RequireSchemas {
		known = kinds(objects, observed)
	}
	for _, o := range objects {
		if observed[o.Key] != nil {
			continue
		}
		if p.RequireSchemas && !builtIn(o) && !known[Schema(o)] {
			r.Schemas[Schema(o)] = &fnv1.SchemaSelector{ApiVersion: o.APIVersion(), Kind: o.Kind()}
			answer, answered := req.GetRequiredSchemas()[Schema(o)]
			if !answered {
				continue
			}
			if answer.GetOpenapiV3() == nil {
				held = append(held, missing(o))
				continue
			}
		}
		// Asking by name for a kind that is missing would fail the whole
		// reconcile, so it comes after the schema.
		r.Resources[Existing(o.Key)] = named(o, o.APIVersion(), o.Kind())
		if o.Kind() == "LeaderWorkerSet" {
			r.Resources[Headless(o.Key)] = named(o, "v1", "Service")
		}
	}
	rsp.Requirements = r
	return held
}

func missing(o kube.Object) plan.Held {
	return plan.Held{
		Key:     o.Key,
		Reason:  plan.HeldForKind,
		Message: fmt.Sprintf("the cluster has no %s of %s", o.Kind(), o.APIVersion()),
	}
}

// pods asks for the pods of a service that is small enough to read them one by
// one and runs beside the XR.
func pods(r *fnv1.Requirements, p *plan.Plan) {
	for i := range p.Deployments {
		d := &p.Deployments[i]
		if d.Target.Remote() || d.Pods() == 0 || d.Pods() > p.PodLimit {
			continue
		}
		r.Resources[Pods] = &fnv1.ResourceSelector{
			ApiVersion: "v1",
			Kind:       "Pod",
			Namespace:  ptr.To(d.Target.Namespace),
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{
				Labels: map[string]string{plan.LabelService: d.Base},
			}},
		}
	}
}

// kinds are those of which something is observed, and which the cluster
// therefore has. Their schemas, which are large, are not asked for.
func kinds(objects []kube.Object, observed map[string]*fnv1.Resource) map[string]bool {
	known := map[string]bool{}
	for _, o := range objects {
		if observed[o.Key] != nil {
			known[Schema(o)] = true
		}
	}
	return known
}

// builtIn tells the kinds that every cluster has.
func builtIn(o kube.Object) bool {
	return slices.Contains([]string{"v1", "apps/v1", "rbac.authorization.k8s.io/v1", "policy/v1", "discovery.k8s.io/v1"}, o.APIVersion())
}

// named selects an object that has the name of o.
func named(o kube.Object, apiVersion, kind string) *fnv1.ResourceSelector {
	s := &fnv1.ResourceSelector{
		ApiVersion: apiVersion,
		Kind:       kind,
		Match:      &fnv1.ResourceSelector_MatchName{MatchName: o.Name()},
	}
	if n := kube.Lookup(o.Resource, "metadata", "namespace").GetStringValue(); n != "" {
		s.Namespace = &n
	}
	return s
}
