package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
)

// World reads what planning has to know of a service that is placed in a fleet, or was.
// Of any other it knows nothing, because looking at what is observed costs as much as
// judging it.
func World(req *fnv1.RunFunctionRequest, spec *v1alpha1.InferenceServiceSpec, now time.Time) plan.World {
	observed := req.GetObserved().GetResources()
	if !plan.InFleet(spec.Placement) && observed[plan.AskKey] == nil {
		return configsOf(req, spec.Placement)
	}
	w := plan.World{
		Now:       now,
		Created:   kube.Lookup(req.GetObserved().GetComposite().GetResource(), "metadata", "creationTimestamp").GetStringValue(),
		Clusters:  map[string]*v1alpha1.InferenceCluster{},
		Places:    map[string]*plan.Place{},
		Routed:    map[string]bool{},
		Entrances: map[string]*v1alpha1.GatewayStatus{},
	}
	answer, answered := require.Clusters(req)
	w.Answered = answered
	for _, i := range answer.GetItems() {
		c := &cluster{}
		_ = kube.Decode(i.GetResource(), nil, c) // What cannot be read of a cluster is as good as absent.
		if c.Metadata.Name != "" {
			w.Clusters[c.Metadata.Name] = c.inferenceCluster()
		}
	}
	readNamespace(&w, req)
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(observed))) {
		look(&w, key, observed[key].GetResource())
	}
	// Crossplane observes what the XR refers to, and the XR is its owner's to edit. An ask that
	// is there is the service's, also where the reference is gone.
	for _, i := range req.GetRequiredResources()[require.Existing(plan.AskKey)].GetItems() {
		if uid := ControllerUID(i.GetResource()); w.Ask == nil && uid != "" && uid == uidOf(req) {
			look(&w, plan.AskKey, i.GetResource())
		}
	}
	return w
}

// uidOf is the UID of the XR.
func uidOf(req *fnv1.RunFunctionRequest) string {
	return kube.Lookup(req.GetObserved().GetComposite().GetResource(), "metadata", "uid").GetStringValue()
}

// readNamespace reads the labels of the tenant's namespace, if it was asked for. One that
// is not there has none.
func readNamespace(w *plan.World, req *fnv1.RunFunctionRequest) {
	answer, answered := req.GetRequiredResources()[require.Namespace]
	w.NamespaceAnswered = answered
	n := struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}{}
	for _, i := range answer.GetItems() {
		_ = kube.Decode(i.GetResource(), nil, &n) // Labels that cannot be read select nothing.
	}
	w.NamespaceLabels = n.Metadata.Labels
}

// configsOf reads which provider configurations the fleet uses, for a service that is not
// of the fleet and names some itself.
func configsOf(req *fnv1.RunFunctionRequest, p *v1alpha1.Placement) plan.World {
	if !plan.NamesConfigs(p) {
		return plan.World{}
	}
	answer, answered := require.Clusters(req)
	w := plan.World{Answered: answered, Clusters: map[string]*v1alpha1.InferenceCluster{}}
	for _, i := range answer.GetItems() {
		name := kube.Lookup(i.GetResource(), "metadata", "name").GetStringValue()
		ic := &v1alpha1.InferenceCluster{}
		ic.Spec.ProviderConfigRef.Name = kube.Lookup(i.GetResource(), "spec", "providerConfigRef", "name").GetStringValue()
		w.Clusters[name] = ic
	}
	return w
}

// A cluster is the part of an InferenceCluster that is read.
type cluster struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec   v1alpha1.InferenceClusterSpec   `json:"spec"`
	Status v1alpha1.InferenceClusterStatus `json:"status"`
}

func (c *cluster) inferenceCluster() *v1alpha1.InferenceCluster {
	ic := &v1alpha1.InferenceCluster{Spec: c.Spec, Status: c.Status}
	ic.Name, ic.Labels = c.Metadata.Name, c.Metadata.Labels
	return ic
}

// look notes what one composed resource says of the service in its cluster.
func look(w *plan.World, key string, observed *structpb.Struct) {
	switch key {
	case plan.AskKey:
		// One that cannot be read is as good as none: it is written anew.
		if a, err := fleet.DecodeAsk(kube.Lookup(observed, "data", fleet.AskKey).GetStringValue()); err == nil {
			w.Ask = a
		}
		return
	case plan.HubKey:
		w.Routed, w.Led = routed(observed)
		return
	}
	if name, ok := strings.CutPrefix(key, plan.SlicePrefix); ok {
		if g := entrance(observed); g != nil {
			w.Entrances[name] = g
		}
		return
	}
	// Both are there while an address changes.
	if name, ok := strings.CutPrefix(key, plan.SlicePrefix6); ok {
		if g := entrance(observed); g != nil && w.Entrances[name] == nil {
			w.Entrances[name] = g
		}
		return
	}
	// What is being deleted is no place to stay, and nothing of it can be changed.
	if kube.Lookup(observed, "metadata", "deletionTimestamp").GetStringValue() != "" {
		return
	}
	name, local := plan.SplitKey(key)
	kind, replica, _ := strings.Cut(local, "/")
	if name == "" && kind != "leaderworkerset" && w.Places[name] == nil {
		return // It may be what stays beside the XR anyway.
	}
	if w.Places[name] == nil {
		w.Places[name] = &plan.Place{Present: map[string]bool{}, Ready: map[string]bool{}, Served: map[string]bool{}, Orphaned: true}
	}
	at := w.Places[name]
	at.Orphaned = at.Orphaned && placement.Orphaned(observed)
	if ref := kube.Lookup(observed, "spec", "providerConfigRef", "name").GetStringValue(); ref != "" {
		at.Config.Kind, at.Config.Name = kube.Lookup(observed, "spec", "providerConfigRef", "kind").GetStringValue(), ref
		at.Namespace = cmp.Or(kube.Lookup(observed, "status", "atProvider", "manifest", "metadata", "namespace").GetStringValue(), at.Namespace)
	}
	switch kind {
	case "leaderworkerset":
		at.Present[replica] = true
		lookCloser(observed, func(served, ready bool) { at.Served[replica], at.Ready[replica] = served, ready })
	case "deployment":
		lookCloser(observed, func(served, ready bool) { at.RouterServed, at.RouterReady = served, ready })
	}
}

// lookCloser tells whether an object was ready when it could be read last, and whether it
// is now.
func lookCloser(observed *structpb.Struct, note func(served, ready bool)) {
	remote, state := placement.Unwrap(observed)
	v := &view{}
	_ = kube.Decode(remote, nil, v) // Fields of the wrong type are as good as absent.
	served := v.Metadata.DeletionTimestamp == "" && v.Status.ReadyReplicas > 0
	note(served, served && state.Readable())
}

// entrance is the gateway to which a slice leads, or nil.
func entrance(observed *structpb.Struct) *v1alpha1.GatewayStatus {
	s := struct {
		Endpoints []struct {
			Addresses []string `json:"addresses"`
		} `json:"endpoints"`
		Ports []struct {
			Port int32 `json:"port"`
		} `json:"ports"`
	}{}
	if len(kube.Decode(observed, nil, &s)) > 0 || len(s.Endpoints) == 0 || len(s.Endpoints[0].Addresses) == 0 || len(s.Ports) == 0 {
		return nil
	}
	return &v1alpha1.GatewayStatus{Address: s.Endpoints[0].Addresses[0], Port: s.Ports[0].Port}
}

// routed are the backends that a route over all clusters leads to, and those that it may
// lead to. A route that one of its gateways has not accepted as it is now leads nowhere new,
// and perhaps to everything that it names.
func routed(observed *structpb.Struct) (leads, may map[string]bool) {
	accepted := acceptedByAll(observed)
	leads, may = map[string]bool{}, map[string]bool{}
	for _, rule := range kube.Lookup(observed, "spec", "rules").GetListValue().GetValues() {
		for _, b := range kube.Lookup(rule.GetStructValue(), "backendRefs").GetListValue().GetValues() {
			ref := b.GetStructValue()
			name, weighs := kube.Lookup(ref, "name").GetStringValue(), kube.Lookup(ref, "weight").GetNumberValue() > 0
			if weighs || !accepted {
				may[name] = true
			}
			if weighs && accepted {
				leads[name] = true
			}
		}
	}
	return leads, may
}

// acceptedByAll tells whether each gateway that a route names has accepted it as it is now.
func acceptedByAll(route *structpb.Struct) bool {
	r := struct {
		Metadata struct {
			Generation int64  `json:"generation"`
			Namespace  string `json:"namespace"`
		} `json:"metadata"`
		Spec struct {
			ParentRefs []parentRef `json:"parentRefs"`
		} `json:"spec"`
		Status struct {
			Parents []struct {
				ParentRef  parentRef   `json:"parentRef"`
				Conditions []condition `json:"conditions"`
			} `json:"parents"`
		} `json:"status"`
	}{}
	_ = kube.Decode(route, nil, &r) // Fields of the wrong type are as good as absent.
	have := map[parentRef]bool{}
	for _, p := range r.Status.Parents {
		if c := find(p.Conditions, "Accepted"); c.Status == True && c.ObservedGeneration >= r.Metadata.Generation {
			have[p.ParentRef.in(r.Metadata.Namespace)] = true
		}
	}
	for _, p := range r.Spec.ParentRefs {
		if !have[p.in(r.Metadata.Namespace)] {
			return false
		}
	}
	return len(r.Spec.ParentRefs) > 0
}

// in has the defaults of a reference in some namespace.
func (p parentRef) in(namespace string) parentRef {
	p.Group, p.Kind = cmp.Or(p.Group, "gateway.networking.k8s.io"), cmp.Or(p.Kind, "Gateway")
	p.Namespace = cmp.Or(p.Namespace, namespace)
	return p
}
