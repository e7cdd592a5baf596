package v1alpha1

// ConditionReachable is the condition of an InferenceCluster that tells whether
// provider-kubernetes reaches it.
const ConditionReachable = "Reachable"

// ConditionNodesObserved is the condition of an InferenceCluster that tells whether the nodes of
// all pools are known.
const ConditionNodesObserved = "NodesObserved"

// ConditionSchedulable is the condition of an InferenceCluster that tells whether it
// reserves anything new.
const ConditionSchedulable = "Schedulable"
