/*
Package profile has what an InferenceCluster tells services: its profile, which all services
read, an estimate of what is free, and its answers to their capacity requests.

Crossplane reconciles a service whenever an object changes that the service requires. The status
of an InferenceCluster changes with each service that runs there, so no service requires it. A
profile says only what all services have to know. The estimate seldom changes. The answers are in
several ConfigMaps. A service requires the one with its own answer, and only while it waits for one.
*/
package profile

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// Label is the label of all profiles, and EstimatesLabel that of all estimates. Their value is LabelValue.
const (
	Label          = "fusioninfer.io/cluster-profile"
	EstimatesLabel = "fusioninfer.io/cluster-estimates"
	LabelValue     = "true"
)

// The keys of the data of these ConfigMaps, and of the binary data of one with answers.
const (
	clusterKey   = "inferencecluster"
	poolsKey     = "pools"
	estimatesKey = "estimates"
	AnswersKey   = "answers"
)

// estimatesPrefix starts the names of estimates. The name of the cluster follows.
const estimatesPrefix = "clusterestimates-"

// Parts is the number of ConfigMaps that the answers of a cluster are in. With more, each reconcile
// of the cluster would apply more objects. With fewer, more services would be reconciled for an
// answer to another one.
const Parts = 16

// Name is the name of a cluster's profile.
func Name(cluster string) string { return "clusterprofile-" + cluster }

// EstimatesName is the name of the estimate of what is free in a cluster.
func EstimatesName(cluster string) string { return estimatesPrefix + cluster }

// Selector selects the profiles of all clusters, in the namespace of the ClusterInput.
func Selector(namespace string) *fnv1.ResourceSelector { return labelled(namespace, Label) }

// EstimatesSelector selects the estimates of all clusters, in the namespace of the ClusterInput.
func EstimatesSelector(namespace string) *fnv1.ResourceSelector {
	return labelled(namespace, EstimatesLabel)
}

func labelled(namespace, label string) *fnv1.ResourceSelector {
	return incoming.ByLabels("v1", "ConfigMap", namespace, map[string]string{label: LabelValue})
}

// PartSelector selects the part of a cluster's answers with the answer to a service.
func PartSelector(namespace, cluster, uid string) *fnv1.ResourceSelector {
	return incoming.ByName("v1", "ConfigMap", namespace, PartName(cluster, PartOf(uid)))
}

// PartName is the name of a part of a cluster's answers.
func PartName(cluster string, part int) string {
	return "clusteranswers-" + cluster + "-" + strconv.Itoa(part)
}

// PartOf returns the part with the answer to a service.
func PartOf(uid string) int {
	return naming.Number(uid) % Parts
}

// Data returns the data of a profile: a cluster as services read it.
func Data(c *v1alpha1.InferenceCluster) (map[string]string, error) {
	cluster, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the profile of %s: %w", c.Name, err)
	}
	return map[string]string{clusterKey: string(cluster)}, nil
}

// EstimatesData returns the data of estimates: the pools with what is about free in them, and the estimates by the
// names of the pools, which the next ones follow.
func EstimatesData(pools []v1alpha1.PoolStatus, estimates map[string]capacity.Estimate) (map[string]string, error) {
	data := map[string]string{}
	for k, v := range map[string]any{poolsKey: pools, estimatesKey: estimates} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the %s of a cluster: %w", k, err)
		}
		data[k] = string(text)
	}
	return data, nil
}

var (
	clusterText   = incoming.NewPath("data", clusterKey)
	poolsText     = incoming.NewPath("data", poolsKey)
	estimatesText = incoming.NewPath("data", estimatesKey)
	answersData   = incoming.NewPath("binaryData", AnswersKey)
)

// Texts returns the data of a profile or of estimates as it is.
func Texts(o incoming.Object) map[string]string {
	return texts(map[string]string{clusterKey: clusterText.Text(o), poolsKey: poolsText.Text(o), estimatesKey: estimatesText.Text(o)})
}

// Binary returns the binary data of answers as it is.
func Binary(answers incoming.Object) map[string]string {
	return texts(map[string]string{AnswersKey: answersData.Text(answers)})
}

func texts(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// Cluster returns the cluster in a profile, as an InferenceCluster. It has no fields if the
// profile cannot be read.
func Cluster(profile incoming.Object) incoming.Object {
	// A service reads all profiles in each call, and protojson takes longer.
	fields := map[string]any{}
	_ = json.Unmarshal([]byte(clusterText.Text(profile)), &fields)
	return objectOf(fields)
}

// Estimates returns the estimates by the names of the pools. Those that cannot be read are left out.
func Estimates(o incoming.Object) map[string]capacity.Estimate {
	all := map[string]capacity.Estimate{}
	_ = json.Unmarshal([]byte(estimatesText.Text(o)), &all)
	return all
}

// Estimated returns the cluster of estimates, as an InferenceCluster with its name, and with its pools and what is
// about free in them. It has no pools if they cannot be read.
func Estimated(estimates incoming.Object) incoming.Object {
	var pools []any
	_ = json.Unmarshal([]byte(poolsText.Text(estimates)), &pools)
	return objectOf(map[string]any{
		"metadata": map[string]any{"name": strings.TrimPrefix(estimates.Name(), estimatesPrefix)},
		"status":   map[string]any{"pools": pools},
	})
}

func objectOf(fields map[string]any) incoming.Object {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		s = &structpb.Struct{}
	}
	return incoming.ObjectOf(s)
}

// Answers are what a cluster says to services about their capacity requests.
type Answers struct {
	Reservations []v1alpha1.Reservation `json:"reservations,omitempty"`
	// Pending is what the cluster has read, and does not reserve now.
	Pending []v1alpha1.PendingRequest `json:"pending,omitempty"`
}

// Split returns the parts of the answers. A part without answers is nil.
func (a *Answers) Split() [Parts]*Answers {
	all := [Parts]*Answers{}
	part := func(uid string) *Answers {
		i := PartOf(uid)
		if all[i] == nil {
			all[i] = &Answers{}
		}
		return all[i]
	}
	for i := range a.Reservations {
		p := part(a.Reservations[i].UID)
		p.Reservations = append(p.Reservations, a.Reservations[i])
	}
	for i := range a.Pending {
		p := part(a.Pending[i].UID)
		p.Pending = append(p.Pending, a.Pending[i])
	}
	return all
}

// Encode encodes answers. The same answers give the same bytes.
func (a *Answers) Encode() ([]byte, error) {
	compressed, _, err := reservation.Compress(a)
	return compressed, err
}

// ReadAnswers returns the answers in a ConfigMap. It fails if they cannot be read.
func ReadAnswers(o incoming.Object) (*Answers, error) {
	a := &Answers{}
	compressed, err := base64.StdEncoding.DecodeString(answersData.Text(o))
	if err == nil {
		err = reservation.Decompress(compressed, a)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the answers in ConfigMap %s: %w", o.Name(), err)
	}
	return a, nil
}
