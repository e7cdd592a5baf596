package model

import (
	"fmt"
	"slices"

	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// deferred has why objects are left out for now, by their keys.
type deferred map[key.Key]string

// A requirer collects requirements. They depend on the XR, the observed objects, and the answers to earlier
// ones: the service, the definition of the pool's kind, the pools, and what has the names of the
// objects. That is stable with the fifth call, which Crossplane allows.
type requirer struct {
	*parsed

	req   incoming.Request
	state *observedState
	all   map[string]*fnv1.ResourceSelector
}

// require asks for the service, its pools, and for what may have the names of objects that do not exist
// yet. It returns the objects that are left out for now.
func require(req incoming.Request, rsp *fnv1.RunFunctionResponse, p *parsed, state *observedState, objects []kube.Object) deferred {
	r := &requirer{parsed: p, req: req, state: state, all: map[string]*fnv1.ResourceSelector{serviceRequirement: p.selectService()}}
	rsp.Requirements = &fnv1.Requirements{Resources: r.all}
	left := deferred{}
	if state.held {
		r.pools()
	}
	for i := range state.loading {
		cluster := state.pools[i].Target.Cluster
		if found := remote.MembersOf(req.Observed(loaderPodsKey(cluster)), p.identity); state.loading[i].findsPods && found != nil {
			r.all[loaderPodsRequirement(cluster)] = found
		}
	}
	for _, o := range objects {
		if o.Key.Kind == key.Job && o.Key.Cluster == "" {
			r.all[loadersRequirement] = p.selectLoaders()
		}
		if req.Observed(o.Key).Exists() {
			continue
		}
		if why := r.blocked(o); why != "" {
			left[o.Key] = why
		}
	}
	return left
}

// selectService selects the service, or the XR behind its claim.
func (p *parsed) selectService() *fnv1.ResourceSelector {
	return composite.TenantObject(p.identity, v1alpha1.KindInferenceService, v1alpha1.KindClaimedService, p.spec.ServiceName)
}

// selectLoaders selects the pods that load the model's adapters, which say why they fail.
func (p *parsed) selectLoaders() *fnv1.ResourceSelector {
	return incoming.ByLabels("v1", "Pod", p.identity.Namespace, map[string]string{naming.LabelModelLoader: p.loaderName()})
}

// pools requires the pools of the service where it has some. A requirement for a missing kind fails the
// whole reconcile, so the kinds are required only where the service says that it uses them.
func (r *requirer) pools() {
	local, elsewhere := r.state.runsLocally(), r.state.runsElsewhere()
	for cluster := range r.state.own {
		local, elsewhere = local || cluster == "", elsewhere || cluster != ""
	}
	_, there := r.state.own[""]
	if local && (there || r.available(incoming.Kind{APIVersion: inference.GroupVersion.String(), Name: modelroute.KindPool})) {
		r.all[localRequirement] = incoming.ByName(inference.GroupVersion.String(), modelroute.KindPool, r.identity.Namespace, r.localPool())
	}
	if elsewhere {
		r.all[remoteRequirement] = remote.PoolsOf(r.spec.ServiceName, r.identity.Namespace, r.identity.Claimed)
	}
}

// available tells whether the control plane has a kind. With missingKinds: Fail it always does.
func (r *requirer) available(kind incoming.Kind) bool {
	return r.input.MissingKinds != inputv1alpha1.MissingKindsSkip || r.defined(kind)
}

// defined tells whether the control plane has a kind, whatever the input says.
func (r *requirer) defined(kind incoming.Kind) bool {
	kind.Require(r.all)
	is, _ := kind.Available(r.req)
	return is
}

// blocked says why an object that does not exist yet is left out: its kind is missing, or another object
// has its name.
func (r *requirer) blocked(o kube.Object) string {
	kind, local := incoming.KindOf(o), o.Key != lockKey && o.Key.Kind != key.Job && o.Key.Cluster == ""
	if o.Key.Kind == key.LoaderPods && !r.defined(kind) || local && !r.available(kind) {
		return kind.Missing()
	}
	r.all[composite.Existing(o.Key)] = incoming.ByName(o.APIVersion(), o.Kind(), o.Namespace(), o.Name())
	existing, _ := r.req.Required(composite.Existing(o.Key))
	for _, e := range existing {
		if whose := r.state.conflict(r.parsed, o.Key, e); whose != "" {
			return fmt.Sprintf("%s %s is there already, of %s", o.Kind(), o.Name(), whose)
		}
	}
	return ""
}

// runsLocally tells whether the service says that it has a pool in the cluster of the InferenceModel.
func (r *observedState) runsLocally() bool {
	if r.service == nil || r.service.Status.ModelRouting == nil {
		return false
	}
	all := r.service.Status.Clusters
	for i := range all {
		if all[i].Name == "" {
			return true
		}
	}
	return len(all) == 0
}

// runsElsewhere tells whether the service says that it has a pool in another cluster.
func (r *observedState) runsElsewhere() bool {
	if r.service == nil || r.service.Status.ModelRouting == nil {
		return false
	}
	for _, c := range r.service.Status.Clusters {
		if c.Name != "" && slices.Contains([]v1alpha1.PlacementState{v1alpha1.StatePlaced, v1alpha1.StateLeaving}, c.State) {
			return true
		}
	}
	return false
}
