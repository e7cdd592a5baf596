package remote

import (
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// PoolsOf selects the Objects for the InferencePools of a service, in all clusters.
func PoolsOf(service, namespace string, claimed bool) *fnv1.ResourceSelector {
	labels := map[string]string{naming.LabelInferencePool: service}
	if claimed {
		// Crossplane sets this label on everything that the XR behind a claim composes.
		labels[v1alpha1.LabelClaimNamespace] = namespace
		return labelled(key.ClusterScopedObjects, namespace, labels)
	}
	return labelled(key.NamespacedObjects, namespace, labels)
}

// A pooled object is the part of an InferencePool, or of an object that refers to one, that says which
// pool it is.
type pooled struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		PoolRef struct {
			Name string `json:"name"`
		} `json:"poolRef"`
	} `json:"spec"`
}

// A configured object is the part of an Object, or of an InferenceCluster, that names a provider configuration.
type configured struct {
	Spec struct {
		ProviderConfigRef v1alpha1.ProviderConfigRef `json:"providerConfigRef"`
	} `json:"spec"`
}

var (
	pooledView     = NewDesiredView[pooled]()
	configuredView = incoming.NewView[configured]()
)

// ProviderConfigOf returns the provider configuration that an Object or an InferenceCluster names, if it does.
func ProviderConfigOf(o incoming.Object) v1alpha1.ProviderConfigRef {
	return configuredView.In(o).Spec.ProviderConfigRef
}

// A PoolLocation is an InferencePool in a cluster.
type PoolLocation struct {
	Target scheduling.Target
	// Pool is the name of the InferencePool.
	Pool string
	// Abandoned tells that deleting an Object for the cluster must not wait for the cluster.
	Abandoned bool
}

// PoolAt returns where an InferencePool is, or the pool of an object that refers to one. Either may be
// wrapped in an Object. The cluster is the one of the key. It is false for other objects, and for names
// that nothing can have.
func PoolAt(k key.Key, o incoming.Object) (PoolLocation, bool) {
	c, l := configured{}, PoolLocation{Target: scheduling.Target{Cluster: k.Cluster}}
	p, unread := pooledView.Read(o)
	ref := &c.Spec.ProviderConfigRef
	switch {
	case len(unread) > 0 || !isObject(o) && k.Cluster != "":
		return l, false
	case isObject(o):
		if len(configuredView.Read(o, &c)) > 0 || len(validation.IsDNS1123Subdomain(ref.Name)) > 0 || len(validation.IsDNS1123Label(k.Cluster)) > 0 {
			return l, false
		}
		l.Abandoned = Orphaned(o)
	}
	l.Target.Namespace, l.Target.ProviderConfig = p.Metadata.Namespace, *ref
	if l.Pool = p.Spec.PoolRef.Name; p.Kind == modelroute.KindPool {
		l.Pool = p.Metadata.Name
	}
	return l, len(validation.IsDNS1123Label(l.Pool)) == 0 && len(validation.IsDNS1123Label(l.Target.Namespace)) == 0
}

// WithLabels returns an Object with other labels than those that Wrap gives it.
func WithLabels(o kube.Object, labels map[string]string) kube.Object {
	fields := make(map[string]*structpb.Value, len(labels))
	for k, v := range labels {
		fields[k] = structpb.NewStringValue(v)
	}
	o.Resource = kube.With(o.Resource, structpb.NewStructValue(&structpb.Struct{Fields: fields}), "metadata", "labels")
	return o
}
