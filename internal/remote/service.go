package remote

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// KindOf is the kind of such Objects.
func KindOf(objects key.Objects) incoming.Kind {
	return incoming.Kind{APIVersion: ObjectBuilder{ClusterScoped: objects == key.ClusterScopedObjects}.apiVersionOfObjects(), Name: kindObject}
}

// OfService selects the Objects of one kind that a service composed for any cluster. If they are
// cluster-scoped, it also selects those of services with the same name in other namespaces.
func OfService(objects key.Objects, namespace, name string) *fnv1.ResourceSelector {
	return labelled(objects, namespace, map[string]string{naming.LabelService: name})
}

func labelled(objects key.Objects, namespace string, labels map[string]string) *fnv1.ResourceSelector {
	s := incoming.ByLabels(KindOf(objects).APIVersion, kindObject, "", labels)
	if objects == key.NamespacedObjects {
		s.Namespace = &namespace // It is sent even if it is empty.
	}
	return s
}

// A wrapped object is the part of a manifest that says what it is.
type wrapped struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

var wrappedView = incoming.NewView[carrier[wrapped]]()

// Workload tells whether an Object wraps a LeaderWorkerSet for the cluster, and in which
// namespace. An Object that cannot be read counts as one.
func (b ObjectBuilder) Workload(o incoming.Object) (namespace string, is bool) {
	w, c := carrier[wrapped]{}, configured{}
	if len(wrappedView.Read(o, &w))+len(configuredView.Read(o, &c)) > 0 {
		return "", true
	}
	// Cluster-scoped Objects do not name the kind of their configuration.
	manifest, ref := w.Spec.ForProvider.Manifest, c.Spec.ProviderConfigRef
	is = manifest.Kind == kindLeaderWorkerSet && ref.Name == b.Config.Name && (ref.Kind == "" || ref.Kind == b.Config.Kind)
	return manifest.Metadata.Namespace, is
}

const kindLeaderWorkerSet = "LeaderWorkerSet"
