package model

import (
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// lockKey is the key of the name lock.
var lockKey = key.New("", key.ConfigMap, "model-name")

// rewriteKey is the key of the InferenceModelRewrite in a cluster.
func rewriteKey(cluster string) key.Key { return key.New(cluster, key.InferenceModelRewrite) }

// objectiveKey is the key of the InferenceObjective in a cluster.
func objectiveKey(cluster string) key.Key { return key.New(cluster, key.InferenceObjective) }

// localPool is the name of the service's pool in the cluster of the InferenceModel.
func (p *parsed) localPool() string { return p.spec.ServiceName + naming.PoolSuffix }

// lockName is the name of the name lock.
func (p *parsed) lockName() string { return naming.ModelObject(p.localPool(), p.spec.ModelName) }

func (p *parsed) labels() map[string]string {
	return map[string]string{naming.LabelModel: p.identity.Name}
}

// loaderName is the label of the pods that load the model's adapters.
func (p *parsed) loaderName() string {
	return naming.Shorten(p.identity.Name+"-adapter", p.identity.Namespace+"/"+p.identity.Name, naming.MaxLabel)
}

// loaderPodsKey is the key of the collection that finds the pods of Jobs in another cluster.
func loaderPodsKey(cluster string) key.Key { return key.New(cluster, key.LoaderPods) }

// loaderPodsRequirement is the name of the requirement for what that collection has found.
func loaderPodsRequirement(cluster string) string { return loaderPodsKey(cluster).String() }

// The names of requirements.
const (
	// loadersRequirement is for the pods that load adapters in the cluster of the InferenceModel.
	loadersRequirement = "loaders"
	// serviceRequirement is for the service.
	serviceRequirement = "service"
	// localRequirement is for the service's pool in the cluster of the InferenceModel.
	localRequirement = "pool"
	// remoteRequirement is for the Objects of its pools in other clusters.
	remoteRequirement = "pools"
)
