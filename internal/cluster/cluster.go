/*
Package cluster takes an InferenceCluster through the steps of a call. It reads the free
capacity of the cluster, and reserves capacity for the services that request it.

A service requests capacity with a ConfigMap that has a label of the cluster. The cluster
grants it by the rules of package reservation, and keeps the grants in its ledger, another
ConfigMap.

No capacity is granted twice. Only the cluster writes its ledger, and only over the
resourceVersion that it read. So the API server refuses a response that was computed from
an older ledger. Services read the answers of the cluster, which it makes from the ledger that
it has read: what is in an answer was written before.

Nothing is kept in memory between two calls. What cannot be read is left as it is.
*/
package cluster

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// Kind is the kind of these composite resources.
const Kind = v1alpha1.KindInferenceCluster

// A Cluster is the InferenceCluster of one call. Its steps run in the order of the methods,
// each once, until one returns an error.
type Cluster struct {
	call *composite.Call

	parsed  *parsed
	state   *observedState
	plan    *ledgerPlan
	objects []kube.Object
}

// New returns the InferenceCluster of a call.
func New(c *composite.Call) *Cluster {
	c.ConditionTypes = ConditionTypes()
	return &Cluster{call: c}
}

// Parse reads the InferenceCluster and the ClusterInput.
func (c *Cluster) Parse() error {
	if err := c.call.CheckKinds(inputv1alpha1.KindClusterInput, Kind); err != nil {
		return err
	}
	var problems field.ErrorList
	c.parsed, problems = parse(c.call.Request)
	return composite.Invalid(problems)
}

// Observe reads the ledger, the capacity requests, and what is known of the cluster. A
// ledger that cannot be read is an error: a new one would lose all reservations.
func (c *Cluster) Observe() error {
	var err error
	c.state, err = observe(c.call.Request, c.parsed, c.call.Now)
	return err
}

// Plan decides what is reserved for which service.
func (c *Cluster) Plan() error {
	var err error
	c.plan, err = planLedger(c.parsed, c.state, c.call.Now)
	return err
}

// Render makes the ledger, the Objects that observe the cluster, and those of the namespaces
// that services need there.
func (c *Cluster) Render() error {
	var err error
	c.objects, err = render(c.parsed, c.state, c.plan)
	return err
}

// Require asks Crossplane for the resources that the next call reads.
func (c *Cluster) Require() error {
	require(c.call.Request, c.call.Response, c.parsed, c.state)
	requireMissing(c.call.Request, c.call.Response, c.parsed, c.state)
	return nil
}

// Respond answers with the objects, the status and the conditions.
func (c *Cluster) Respond() error {
	return c.call.Accept(evaluate(c.parsed, c.state, c.plan, c.objects, composite.MaxResponse-c.call.Size(c.objects)))
}
