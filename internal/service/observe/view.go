package observe

import (
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// A view is the part of an observed object that is read. One type serves all kinds, since
// a field that several kinds have means the same in each.
type view struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Replicas   *int32      `json:"replicas"`
		ParentRefs []parentRef `json:"parentRefs"`
	} `json:"spec"`
	Status status `json:"status"`
}

var objectView = incoming.NewView[view]()

type metadata struct {
	Generation        int64  `json:"generation"`
	CreationTimestamp string `json:"creationTimestamp"`
	DeletionTimestamp string `json:"deletionTimestamp"`
}

type status struct {
	ObservedGeneration int64            `json:"observedGeneration"`
	Replicas           int32            `json:"replicas"`
	ReadyReplicas      int32            `json:"readyReplicas"`
	UpdatedReplicas    int32            `json:"updatedReplicas"`
	AvailableReplicas  int32            `json:"availableReplicas"`
	Phase              string           `json:"phase"`
	Conditions         []condition      `json:"conditions"`
	Parents            []parent         `json:"parents"`
	Addresses          []address        `json:"addresses"`
	Listeners          []listenerStatus `json:"listeners"`
}

type condition struct {
	Type               string           `json:"type"`
	Status             composite.Status `json:"status"`
	Reason             string           `json:"reason"`
	Message            string           `json:"message"`
	ObservedGeneration int64            `json:"observedGeneration"`
	LastTransitionTime string           `json:"lastTransitionTime"`
}

// A parent has what one gateway reports on a route or a pool.
type parent struct {
	ParentRef  parentRef   `json:"parentRef"`
	Conditions []condition `json:"conditions"`
}

type address struct {
	Value string `json:"value"`
}

// replicas that the object requests. Kubernetes defaults them to 1.
func (v *view) replicas() int32 {
	if v.Spec.Replicas == nil {
		return 1
	}
	return *v.Spec.Replicas
}

// find returns the condition of a type. The status of an absent one is empty, not Unknown.
func find(conditions []condition, name string) condition {
	for _, c := range conditions {
		if c.Type == name {
			return c
		}
	}
	return condition{}
}

// newest returns the latest of some timestamps. Strings that are no timestamps are
// ignored, because anyone may have written them.
func newest(latest time.Time, timestamps ...string) time.Time {
	for _, s := range timestamps {
		if t, err := time.Parse(time.RFC3339, s); err == nil && t.After(latest) {
			latest = t
		}
	}
	return latest
}
