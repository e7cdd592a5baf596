package remote

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Fields of Objects and of collections.
var (
	statusConditions   = incoming.NewPath("status", "conditions")
	statusManifest     = incoming.NewNested("status", "atProvider", "manifest")
	generation         = incoming.NewPath("metadata", "generation")
	membershipLabel    = incoming.NewPath("status", "membershipLabel")
	managementPolicies = incoming.NewPath("spec", "managementPolicies")
)

// A State tells whether a remote object could be read.
type State struct {
	// Reason why not, in one word. Empty if it could be read.
	Reason  string
	Message string
	// Outdated tells that the provider has not applied the newest spec of the Object yet. The
	// remote object is then as an older spec says.
	Outdated bool
	// Refused tells that the provider has read the object, and that its cluster refuses the newest spec of the
	// Object. The reason is CannotBeRead then, too: nothing may stop because of an object that has a former spec.
	Refused bool
}

// The reasons why a remote object cannot be read.
const (
	// NotCreated means that the provider has not reported the object yet.
	NotCreated = "NotCreated"
	// CannotBeRead means that the provider cannot reach the cluster, or that the cluster refuses
	// the object. The object in the Object's status is then outdated.
	CannotBeRead = "CannotBeRead"
)

// dryRunFailed is how the message of Synced begins if a cluster has refused the newest spec of an object that was read in the same
// attempt. The provider tries server-side apply before each change, once it has put the object into the status of the Object
// (internal/controller/namespaced/object/object.go of provider-kubernetes v1.3.1, Observe). Nothing has changed there. An update that
// fails later may have been accepted, though its answer was lost.
const dryRunFailed = "observe failed: cannot get desired state: "

// notReported is the message of NotCreated.
const notReported = "provider-kubernetes has not reported it yet"

// Readable tells whether the object that Unwrap returned is up to date.
func (s State) Readable() bool { return s.Reason == "" }

// Unwrap returns the remote object in the status of an observed Object, if any. An object of
// another kind is local, and returned as it is. Deleting an Object deletes its remote object,
// which therefore gets the Object's deletionTimestamp.
func Unwrap(observed incoming.Object) (incoming.Object, State) {
	if !isObject(observed) {
		return observed, State{}
	}
	remote := statusManifest.In(observed)
	if deleted := observed.DeletionTimestamp(); deleted != "" && remote.Exists() {
		remote = remote.WithDeletionTimestamp(deleted)
	}
	status, message, seen := synced(observed)
	former := seen > 0 && seen < generation.In(observed).GetNumberValue() // An older provider leaves the generation out.
	if status == "False" {
		refused := !remote.Empty() && !former && strings.HasPrefix(message, dryRunFailed)
		return remote, State{Reason: CannotBeRead, Message: message, Outdated: refused, Refused: refused}
	}
	if remote.Empty() {
		return incoming.Object{}, State{Reason: NotCreated, Message: notReported}
	}
	return remote, State{Outdated: former}
}

// isObject tells whether an observed object is an Object, which carries one of another cluster.
func isObject(o incoming.Object) bool {
	if o.Kind() != kindObject {
		return false
	}
	group := incoming.Kind{APIVersion: o.APIVersion()}.Group()
	return group == groupNamespaced || group == groupCluster
}

// synced returns the status and the steady message of the condition Synced, which tells whether the
// provider's last attempt succeeded, and the generation of the Object that it was about. They are
// empty if there is none.
func synced(observed incoming.Object) (status, message string, generation float64) {
	for _, c := range statusConditions.In(observed).GetListValue().GetValues() {
		if f := c.GetStructValue().GetFields(); f["type"].GetStringValue() == "Synced" {
			return f["status"].GetStringValue(), text.Steady(f["message"].GetStringValue()), f["observedGeneration"].GetNumberValue()
		}
	}
	return "", "", 0
}
