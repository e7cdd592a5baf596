package remote

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// An ObjectBuilder builds Objects. It has the provider configuration of the cluster that they reach, and their
// namespace. Cluster-scoped ones have none, and do not name the kind of their configuration.
type ObjectBuilder struct {
	Config        v1alpha1.ProviderConfigRef
	Namespace     string
	ClusterScoped bool
}

// builderOf returns the ObjectBuilder of a service in a target.
func builderOf(s naming.Identity, t scheduling.Target) ObjectBuilder {
	return ObjectBuilder{Config: t.ProviderConfig, Namespace: s.Namespace, ClusterScoped: s.Claimed}
}

// A ManagementPolicy says what provider-kubernetes does with a remote object.
type ManagementPolicy int

const (
	// Observe only observes it.
	Observe ManagementPolicy = iota
	// Watch observes it every 30 seconds instead of every 10 minutes.
	Watch
	// CreateAndUpdate creates and updates it, and keeps it when its Object is deleted.
	CreateAndUpdate
	// CreateOnly creates it if it does not exist, and never updates it.
	CreateOnly
)

// neverReady keeps the Object unready, because provider-kubernetes polls unready Objects every
// 30 seconds.
const neverReady = "false"

// alwaysReady makes the Object ready at once. By default provider-kubernetes (v1.3) waits until
// the object is as the manifest says. If another client created the object, it never is.
const alwaysReady = "true"

func (p ManagementPolicy) policies() []string {
	switch p {
	case CreateAndUpdate:
		return []string{"Observe", "Create", "Update"}
	case CreateOnly:
		return []string{"Observe", "Create"}
	case Observe, Watch:
	}
	return []string{"Observe"}
}

func (p ManagementPolicy) readiness() readiness {
	switch p {
	case Watch:
		return readyBy(neverReady)
	case CreateOnly:
		return readyBy(alwaysReady)
	case Observe, CreateAndUpdate:
	}
	return readyBy("")
}

// Object returns an Object for a remote object. Its deletion never deletes the remote object,
// so it can always be deleted, whether or not the cluster answers.
func (b ObjectBuilder) Object(k key.Key, name string, labels map[string]string, manifest any, policy ManagementPolicy) (kube.Object, error) {
	m, err := kube.Encode(manifest)
	if err != nil {
		return kube.Object{}, fmt.Errorf("cannot render the manifest of Object %q: %w", name, err)
	}
	o := b.object(name, labels, m)
	o.Spec.Readiness, o.Spec.ManagementPolicies = policy.readiness(), policy.policies()
	return kube.Render(k, o)
}

// object returns an Object of a manifest.
func (b ObjectBuilder) object(name string, labels map[string]string, manifest *structpb.Struct) object {
	return object{
		APIVersion: b.apiVersionOfObjects(),
		Kind:       kindObject,
		Metadata:   kube.Metadata{Name: name, Namespace: b.namespace(), Labels: labels},
		Spec:       objectSpec{ForProvider: forProvider{Manifest: manifest}, ProviderConfigRef: b.ref()},
	}
}

// A collection is a provider-kubernetes ObservedObjectCollection, with the fields that are set
// here: apis/namespaced/observedobjectcollection/v1alpha1 and apis/cluster/... of v1.3.1. It
// makes an observe-only Object for each remote object that it selects.
type collection struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   kube.Metadata  `json:"metadata"`
	Spec       collectionSpec `json:"spec"`
}

type collectionSpec struct {
	ObserveObjects    observeObjects             `json:"observeObjects"`
	ProviderConfigRef v1alpha1.ProviderConfigRef `json:"providerConfigRef"`
	ObjectTemplate    *objectTemplate            `json:"objectTemplate,omitempty"`
}

type observeObjects struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Selector   selector `json:"selector"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type objectTemplate struct {
	Metadata templateMetadata `json:"metadata"`
}

type templateMetadata struct {
	Labels map[string]string `json:"labels"`
}

// Nodes returns an ObservedObjectCollection of the nodes with some labels.
func (b ObjectBuilder) Nodes(k key.Key, name string, labels, nodes map[string]string) (kube.Object, error) {
	c := b.collection(name, labels, observeObjects{APIVersion: "v1", Kind: "Node", Selector: selector{MatchLabels: nodes}})
	c.Spec.ObjectTemplate = &objectTemplate{Metadata: templateMetadata{Labels: labels}}
	return kube.Render(k, c)
}

// collection returns an ObservedObjectCollection of what it is to observe.
func (b ObjectBuilder) collection(name string, labels map[string]string, of observeObjects) collection {
	return collection{
		APIVersion: b.apiVersionOfCollections(),
		Kind:       kindCollection,
		Metadata:   kube.Metadata{Name: name, Namespace: b.namespace(), Labels: labels},
		Spec:       collectionSpec{ObserveObjects: of, ProviderConfigRef: b.ref()},
	}
}

// Members selects the Objects that an observed collection made. It returns nil as long as the
// collection does not say which these are.
func (b ObjectBuilder) Members(observed incoming.Object) *fnv1.ResourceSelector {
	labels := map[string]string{}
	for k, v := range membershipLabel.In(observed).GetStructValue().GetFields() {
		labels[k] = v.GetStringValue()
	}
	if len(labels) == 0 {
		return nil
	}
	return incoming.ByLabels(b.apiVersionOfObjects(), kindObject, b.namespace(), labels)
}

// Synced tells whether the Objects of an observed collection are up to date, or why not.
func Synced(observed incoming.Object) State {
	switch status, message, _ := synced(observed); status {
	case "True":
		return State{}
	case "":
		return State{Reason: NotCreated, Message: notReported}
	default:
		return State{Reason: CannotBeRead, Message: message}
	}
}

func (b ObjectBuilder) apiVersionOfCollections() string {
	if b.ClusterScoped {
		return apiVersionCollections
	}
	return apiVersionNamespaced
}

func (b ObjectBuilder) apiVersionOfObjects() string {
	if b.ClusterScoped {
		return apiVersionCluster
	}
	return apiVersionNamespaced
}

func (b ObjectBuilder) namespace() string {
	if b.ClusterScoped {
		return ""
	}
	return b.Namespace
}

func (b ObjectBuilder) ref() v1alpha1.ProviderConfigRef {
	ref := b.Config
	if b.ClusterScoped {
		ref.Kind = ""
	}
	return ref
}
