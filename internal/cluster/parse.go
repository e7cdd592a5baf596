package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// A parsed request has the cluster, its ClusterInput, and how the cluster is reached.
type parsed struct {
	v1alpha1.InferenceCluster

	// created is when the InferenceCluster was created, as the API server writes it.
	created string
	input   *inputv1alpha1.ClusterInput
	// builder makes the Objects that reach the cluster.
	builder remote.ObjectBuilder
}

// A former is the status that an earlier call wrote.
type former struct {
	Status v1alpha1.InferenceClusterStatus `json:"status"`
}

var (
	xrView     = incoming.NewCompositeView[composite.XR[v1alpha1.InferenceClusterSpec]]()
	formerView = incoming.NewCompositeView[former]()
)

// parse reads a request, and reports every problem that it finds.
func parse(req incoming.Request) (*parsed, field.ErrorList) {
	in, errs := composite.ClusterInput(req.Input())
	if tooLarge := composite.CheckBounds(req.Composite()); len(tooLarge) > 0 {
		return nil, append(errs, tooLarge...)
	}
	x, unread := composite.Read(xrView, req.Composite())
	v1alpha1.DefaultCluster(&x.Spec)
	c := &parsed{
		InferenceCluster: v1alpha1.InferenceCluster{ObjectMeta: x.ObjectMeta(), Spec: x.Spec},

		created: x.Metadata.CreationTimestamp,
		input:   in,
		builder: remote.ObjectBuilder{Config: x.Spec.ProviderConfigRef.Ref(), Namespace: in.Namespace, ClusterScoped: x.Spec.ProviderConfigRef.APIGroup == v1alpha1.GroupClusterScopedObjects},
	}
	errs = append(errs, unread...)
	errs = append(errs, composite.WithoutConsequences(v1alpha1.ValidateCluster(&c.InferenceCluster), unread)...)
	// Fields of the former status that cannot be read count as absent.
	before := formerView.In(req.Composite())
	c.Status = before.Status
	c.Status.Conditions = nil
	return c, errs
}

// observedPools are the pools whose nodes are observed.
func (c *parsed) observedPools() []v1alpha1.Pool {
	return slices.DeleteFunc(slices.Clone(c.Spec.Pools), func(p v1alpha1.Pool) bool { return p.NodeCount != nil })
}
