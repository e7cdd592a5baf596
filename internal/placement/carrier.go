package placement

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Carrier reaches a cluster for what is not a service's: it has the configuration of
// provider-kubernetes with the cluster's credentials, and the namespace of its Objects.
// A ProviderConfig is read for cluster-scoped Objects, which have no namespace.
type Carrier struct {
	Config    v1alpha1.ProviderConfigRef
	Namespace string
}

// ClusterScoped tells whether its Objects are.
func (c Carrier) ClusterScoped() bool { return c.Config.Kind == v1alpha1.KindProviderConfig }

// A Care says what provider-kubernetes does with a remote object.
type Care int

const (
	// Observe it, and nothing else.
	Observe Care = iota
	// Watch it: observe it every 30 seconds, in place of every 10 minutes.
	Watch
	// Make it, keep it as it is wanted, and leave it there when its Object is deleted.
	Make
	// MakeOnce makes it if it is not there, and leaves it as it is.
	MakeOnce
)

// never is what a remote object that is watched is ready by: provider-kubernetes
// looks every 30 seconds at an object that is not ready.
const never = "false"

// always is what a remote object that is made once is ready by. By default
// provider-kubernetes (v1.3) waits until the object is as it is wanted, which one that
// somebody else made never is.
const always = "true"

func (c Care) policies() []string {
	switch c {
	case Make:
		return []string{"Observe", "Create", "Update"}
	case MakeOnce:
		return []string{"Observe", "Create"}
	case Observe, Watch:
	}
	return []string{"Observe"}
}

func (c Care) readiness() readiness {
	switch c {
	case Watch:
		return readiness{Policy: "DeriveFromCelQuery", CelQuery: never}
	case MakeOnce:
		return readiness{Policy: "DeriveFromCelQuery", CelQuery: always}
	case Observe, Make:
	}
	return readiness{Policy: "SuccessfulCreate"}
}

// Object is an Object for a remote object. None of them deletes the remote object, so
// that an Object can always be deleted, whether or not the cluster answers.
func (c Carrier) Object(name string, labels map[string]string, manifest any, care Care) (*structpb.Struct, error) {
	m, err := kube.Encode(manifest)
	if err != nil {
		return nil, fmt.Errorf("cannot render what Object %q carries: %w", name, err)
	}
	o := object{
		APIVersion: c.apiVersionOfObjects(),
		Kind:       kindObject,
		Metadata:   c.metadata(name, labels),
		Spec: objectSpec{
			ForProvider:        forProvider{Manifest: m},
			ProviderConfigRef:  c.ref(),
			Readiness:          care.readiness(),
			ManagementPolicies: care.policies(),
		},
	}
	return kube.Encode(o)
}

// A collection is a provider-kubernetes ObservedObjectCollection, as far as it is
// written here: apis/namespaced/observedobjectcollection/v1alpha1 and apis/cluster/...
// of v1.3.1. It makes an Object that only observes for each remote object that it
// selects.
type collection struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   metadata       `json:"metadata"`
	Spec       collectionSpec `json:"spec"`
}

type collectionSpec struct {
	ObserveObjects    observeObjects    `json:"observeObjects"`
	ProviderConfigRef providerConfigRef `json:"providerConfigRef"`
	ObjectTemplate    objectTemplate    `json:"objectTemplate"`
}

type observeObjects struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
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

// Nodes is an ObservedObjectCollection of the nodes with some labels.
func (c Carrier) Nodes(name string, labels, nodes map[string]string) (*structpb.Struct, error) {
	return kube.Encode(collection{
		APIVersion: c.group() + "/v1alpha1",
		Kind:       "ObservedObjectCollection",
		Metadata:   c.metadata(name, labels),
		Spec: collectionSpec{
			ObserveObjects:    observeObjects{APIVersion: "v1", Kind: "Node", Selector: selector{MatchLabels: nodes}},
			ProviderConfigRef: c.ref(),
			ObjectTemplate:    objectTemplate{Metadata: templateMetadata{Labels: labels}},
		},
	})
}

// Members selects the Objects that an observed collection made, or nothing as long as
// it does not say which they are.
func (c Carrier) Members(observed *structpb.Struct) *fnv1.ResourceSelector {
	members := map[string]string{}
	for k, v := range kube.Lookup(observed, "status", "membershipLabel").GetStructValue().GetFields() {
		members[k] = v.GetStringValue()
	}
	if len(members) == 0 {
		return nil
	}
	s := &fnv1.ResourceSelector{
		ApiVersion: c.apiVersionOfObjects(),
		Kind:       kindObject,
		Match:      &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: members}},
	}
	if !c.ClusterScoped() {
		s.Namespace = &c.Namespace
	}
	return s
}

// Synced tells how an observed collection is: its members are there, or why not.
func Synced(observed *structpb.Struct) State {
	for _, v := range kube.Lookup(observed, "status", "conditions").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		if f["type"].GetStringValue() != "Synced" {
			continue
		}
		if f["status"].GetStringValue() == "True" {
			return State{}
		}
		return State{Reason: NotSynced, Message: f["message"].GetStringValue()}
	}
	return State{Reason: NotThereYet, Message: "provider-kubernetes has not reported it yet"}
}

func (c Carrier) group() string {
	if c.ClusterScoped() {
		return groupCluster
	}
	return groupNamespaced
}

func (c Carrier) apiVersionOfObjects() string {
	if c.ClusterScoped() {
		return apiVersionCluster
	}
	return apiVersionNamespaced
}

func (c Carrier) metadata(name string, labels map[string]string) metadata {
	m := metadata{Name: name, Namespace: c.Namespace, Labels: labels}
	if c.ClusterScoped() {
		m.Namespace = ""
	}
	return m
}

func (c Carrier) ref() providerConfigRef {
	if c.ClusterScoped() {
		return providerConfigRef{Name: c.Config.Name}
	}
	return providerConfigRef{Kind: c.Config.Kind, Name: c.Config.Name}
}
