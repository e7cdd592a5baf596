package placement

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A State tells whether a remote object can be read.
type State struct {
	// Reason it cannot, in one word. Empty where it can.
	Reason string
	// Message says why.
	Message string
}

// The reasons why a remote object cannot be read.
const (
	// NotThereYet means that the provider has not reported an object so far.
	NotThereYet = "NotCreated"
	// NotSynced means that the provider cannot reach the cluster, or that the
	// cluster refuses the object. What the Object holds is then of the past.
	NotSynced = "CannotBeRead"
)

// Readable tells whether what Unwrap returned is how things are.
func (s State) Readable() bool { return s.Reason == "" }

// Unwrap returns the remote object that an observed Object has found, or nil. What
// is not an Object lives here and is returned as it is. An Object that is being
// deleted takes its remote object with it, which then carries the Object's
// deletionTimestamp.
func Unwrap(observed *structpb.Struct) (*structpb.Struct, State) {
	if !isObject(observed) {
		return observed, State{}
	}
	remote := kube.Lookup(observed, "status", "atProvider", "manifest").GetStructValue()
	if deleted := kube.Lookup(observed, "metadata", "deletionTimestamp"); deleted.GetStringValue() != "" && remote != nil {
		remote = kube.With(remote, deleted, "metadata", "deletionTimestamp")
	}
	if message, failed := notSynced(observed); failed {
		return remote, State{Reason: NotSynced, Message: message}
	}
	if len(remote.GetFields()) == 0 {
		return nil, State{Reason: NotThereYet, Message: "provider-kubernetes has not reported it yet"}
	}
	return remote, State{}
}

func isObject(s *structpb.Struct) bool {
	if kube.Lookup(s, "kind").GetStringValue() != kindObject {
		return false
	}
	group := groupOf(kube.Lookup(s, "apiVersion").GetStringValue())
	return group == groupNamespaced || group == groupCluster
}

// notSynced returns the provider's message where its last attempt failed.
func notSynced(observed *structpb.Struct) (string, bool) {
	for _, c := range kube.Lookup(observed, "status", "conditions").GetListValue().GetValues() {
		f := c.GetStructValue().GetFields()
		if f["type"].GetStringValue() == "Synced" && f["status"].GetStringValue() == "False" {
			return f["message"].GetStringValue(), true
		}
	}
	return "", false
}
