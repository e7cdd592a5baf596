package inferencecluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	inputs "github.com/fusioninfer/function-inferenceservice/internal/parse"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
)

// A cluster is what one call is about.
type cluster struct {
	v1alpha1.InferenceCluster

	input *v1beta1.Input
	// carrier reaches the cluster.
	carrier placement.Carrier
}

// An xr is the part of the composite resource that is read. The status is what an
// earlier call wrote.
type xr struct {
	Metadata struct {
		Name       string `json:"name"`
		UID        string `json:"uid"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec v1alpha1.InferenceClusterSpec `json:"spec"`
}

// parse reads a request, and reports every problem that it finds.
func parse(req *fnv1.RunFunctionRequest) (*cluster, field.ErrorList) {
	in, errs := inputs.Input(req.GetInput())
	resource := req.GetObserved().GetComposite().GetResource()
	if tooLarge := inputs.Bounded(resource); len(tooLarge) > 0 {
		return nil, append(errs, tooLarge...)
	}
	x := xr{}
	unread := kube.Decode(resource, nil, &x)
	v1alpha1.DefaultCluster(&x.Spec)
	c := &cluster{
		InferenceCluster: v1alpha1.InferenceCluster{
			ObjectMeta: metav1.ObjectMeta{Name: x.Metadata.Name, UID: types.UID(x.Metadata.UID), Generation: x.Metadata.Generation},
			Spec:       x.Spec,
		},
		input:   in,
		carrier: placement.Carrier{Config: x.Spec.ProviderConfigRef, Namespace: in.Fleet.Namespace},
	}
	errs = append(errs, unread...)
	errs = append(errs, inputs.Without(v1alpha1.ValidateCluster(&c.InferenceCluster), unread)...)
	// What cannot be read of an earlier status is as if it had not been written.
	_ = kube.Decode(kube.Lookup(resource, "status").GetStructValue(), nil, &c.Status)
	c.Status.Conditions = nil
	return c, errs
}

// taint returns the reason of a taint, and whether the cluster has it.
func (c *cluster) taint(effect v1alpha1.TaintEffect) (reason string, tainted bool) {
	i := slices.IndexFunc(c.Spec.Taints, func(t v1alpha1.Taint) bool { return t.Effect == effect })
	if i < 0 {
		return "", false
	}
	return c.Spec.Taints[i].Reason, true
}

func (c *cluster) dead() bool {
	_, dead := c.taint(v1alpha1.TaintDead)
	return dead
}

// observesNodes tells whether the nodes of a pool are observed.
func (c *cluster) observesNodes() bool {
	return slices.ContainsFunc(c.Spec.Pools, func(p v1alpha1.Pool) bool { return p.Nodes == nil })
}
