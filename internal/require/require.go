/*
Package require asks Crossplane for what the function has to know beyond its own
composed resources: the service's pods, objects that already have a name the
service wants, and which kinds the cluster has.

Crossplane calls the function again until it asks for the same as before, five
times at most. What is asked for depends on the XR, the observed resources, the
definitions of kinds and the clusters of the fleet only, which do not change
between those calls. The longest way is the clusters, the tenant's namespace, the
definitions of kinds and then objects of these, and settles with the fifth call.
*/
package require

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
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
	// Namespace is the name of the requirement for the tenant's namespace.
	Namespace = "namespace"
	// fleetKind is the name of the requirement for the definition of these clusters.
	fleetKind = kindOf + fleetDefinition
	// kindOf starts the name of the requirement for the definition of a kind.
	kindOf = "kind/"
	// existing starts the name of the requirement for an object that has the name
	// of one that is to be composed.
	existing = "existing/"
)

// Headless is the name of the requirement for a Service that may already have the
// name of a LeaderWorkerSet, which makes one of its own name for its pods.
func Headless(key string) string { return "headless/" + key }

// Above is the name of the requirement for a LeaderWorkerSet whose workers' StatefulSet
// would have the name of the replica of that key.
func Above(key string) string { return "above/" + key }

// Below is the name of the requirement for a LeaderWorkerSet that may have the name of
// the StatefulSet of the workers of the replica of that key.
func Below(key string) string { return "below/" + key }

// Existing is the name of the requirement for an object that may already have
// the name of the composed resource of that key.
func Existing(key string) string { return existing + key }

// Definition is the name of the requirement for the definition of an object's kind.
//
// The schema of a kind would tell as well whether the cluster has it, and costs
// about as much to send. But Crossplane (2.4) reads the list of schemas anew only
// when a definition changes, and often before the API server has changed the
// list: a kind that was installed could then be missing for ever, and after one
// was deleted each call failed before the function was asked. Definitions it
// watches, and its own role lets it read them.
//
// What speaks for schemas is that Crossplane keeps those that were asked for, and
// of definitions all that there are: see docs/operations.md. And a kind
// that an aggregated API server serves has a schema and no definition. None of
// those that are composed is such a kind.
func Definition(o kube.Object) string { return kindOf + definition(o) }

// definition is the name of the definition of an object's kind. All kinds that are
// composed have their plural with an s.
func definition(o kube.Object) string {
	group, _, _ := strings.Cut(o.APIVersion(), "/")
	return strings.ToLower(o.Kind()) + "s." + group
}

// fleetVersion is that of InferenceClusters, and fleetDefinition the name of their
// definition.
const (
	fleetVersion    = v1alpha1.Group + "/" + v1alpha1.Version
	fleetDefinition = "inferenceclusters." + v1alpha1.Group
)

// clusters asks for the clusters of the fleet. All of them: those that are not selected may
// be where the service still is, or have the configuration that it names, and Crossplane
// selects by equal labels only.
//
// A service that is not of the fleet may be in a control plane that does not know
// InferenceClusters, and asking for a kind that is missing would fail the whole reconcile.
// So their definition comes first, where definitions are asked for at all.
func clusters(req *fnv1.RunFunctionRequest, r *fnv1.Requirements, p *plan.Plan) {
	all := &fnv1.ResourceSelector{ApiVersion: fleetVersion, Kind: v1alpha1.KindCluster, Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}}}
	switch {
	case p.Fleet != nil:
		r.Resources[Fleet] = all
	case p.NamesConfigs && !p.RequireKinds:
		r.Resources[Fleet] = all
	case p.NamesConfigs:
		r.Resources[fleetKind] = definitionOf(fleetDefinition)
		if answer, answered := req.GetRequiredResources()[fleetKind]; answered && available(answer, fleetVersion) {
			r.Resources[Fleet] = all
		}
	}
}

// Clusters returns the clusters of the fleet, and whether Crossplane has said which there
// are. There are none where it has said that it does not know the kind.
func Clusters(req *fnv1.RunFunctionRequest) (*fnv1.Resources, bool) {
	if all, answered := req.GetRequiredResources()[Fleet]; answered {
		return all, true
	}
	definition, answered := req.GetRequiredResources()[fleetKind]
	return nil, answered && !available(definition, fleetVersion)
}

func definitionOf(name string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: "apiextensions.k8s.io/v1",
		Kind:       "CustomResourceDefinition",
		Match:      &fnv1.ResourceSelector_MatchName{MatchName: name},
	}
}

// Declare adds the requirements to the response and returns the objects that
// have to wait for their kind. An object whose kind is missing is left out only
// while it is not observed.
func Declare(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, p *plan.Plan, objects []kube.Object) []plan.Held {
	r := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{}}
	observed := req.GetObserved().GetResources()
	pods(r, p)
	clusters(req, r, p)
	if p.ReadsNamespace {
		r.Resources[Namespace] = &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Namespace", Match: &fnv1.ResourceSelector_MatchName{MatchName: p.Service.Namespace}}
	}
	var held []plan.Held
	var known map[string]bool
	if p.RequireKinds {
		known = kinds(objects, observed)
	}
	near := neighbours{plan: p, into: r}
	for _, o := range objects {
		if observed[o.Key] != nil {
			near.above(o)
			continue
		}
		if p.RequireKinds && !builtIn(o) && !known[definition(o)] {
			r.Resources[Definition(o)] = definitionOf(definition(o))
			answer, answered := req.GetRequiredResources()[Definition(o)]
			if !answered {
				continue
			}
			if !available(answer, o.APIVersion()) {
				held = append(held, missing(o))
				continue
			}
		}
		// Asking by name for a kind that is missing would fail the whole
		// reconcile, so it comes after the definition.
		r.Resources[Existing(o.Key)] = named(o, o.APIVersion(), o.Kind())
		if o.Kind() == "LeaderWorkerSet" {
			r.Resources[Headless(o.Key)] = named(o, "v1", "Service")
		}
		near.above(o)
		near.below(o)
	}
	rsp.Requirements = r
	return held
}

// available tells whether objects of a kind and version can be created, by the
// definition of the kind. One that is being deleted still serves its version,
// and takes no more objects.
func available(definition *fnv1.Resources, apiVersion string) bool {
	if len(definition.GetItems()) == 0 {
		return false
	}
	crd := definition.GetItems()[0].GetResource()
	return kube.Lookup(crd, "metadata", "deletionTimestamp").GetStringValue() == "" && established(crd) && serves(crd, apiVersion)
}

// established tells whether the API server has begun to serve a definition.
func established(crd *structpb.Struct) bool {
	for _, v := range kube.Lookup(crd, "status", "conditions").GetListValue().GetValues() {
		c := v.GetStructValue().GetFields()
		if c["type"].GetStringValue() == "Established" {
			return c["status"].GetStringValue() == "True"
		}
	}
	return false
}

func serves(crd *structpb.Struct, apiVersion string) bool {
	_, version, _ := strings.Cut(apiVersion, "/")
	for _, v := range kube.Lookup(crd, "spec", "versions").GetListValue().GetValues() {
		c := v.GetStructValue().GetFields()
		if c["name"].GetStringValue() == version {
			return c["served"].GetBoolValue()
		}
	}
	return false
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
// therefore has. Their definitions, which are large, are not asked for.
func kinds(objects []kube.Object, observed map[string]*fnv1.Resource) map[string]bool {
	known := map[string]bool{}
	for _, o := range objects {
		if observed[o.Key] != nil {
			known[definition(o)] = true
		}
	}
	return known
}

// builtIn tells the kinds that every cluster has.
func builtIn(o kube.Object) bool {
	return slices.Contains([]string{"v1", "apps/v1", "rbac.authorization.k8s.io/v1", "policy/v1", "discovery.k8s.io/v1", "networking.k8s.io/v1"}, o.APIVersion())
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
