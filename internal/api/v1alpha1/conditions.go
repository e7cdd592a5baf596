package v1alpha1

// ConditionReachable is the condition of an InferenceCluster that tells whether
// provider-kubernetes reaches it.
const ConditionReachable = "Reachable"

// ConditionSchedulable is the condition of an InferenceCluster that tells whether it
// reserves anything new.
const ConditionSchedulable = "Schedulable"
