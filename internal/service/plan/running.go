package plan

import (
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// A RunningView is what is observed of what the service runs: what Place and RollOut go by. Its functions read the
// observed state when they are called, because most of it is never needed.
type RunningView struct {
	Now time.Time
	// Revision of the newest template of each role, by the role's name.
	Revision map[string]string
	// Replica returns the state of a replica, by its key.
	Replica func(key.Key) rollout.State
	// Extra are the replicas that exist beyond those that were wanted, by the cluster. A replica that
	// the service was scaled down by is none.
	Extra map[string][]key.ReplicaID
	// Others are the other replicas that exist, by the cluster.
	Others map[string][]key.ReplicaID
	// Size returns the bytes that a replica of a role takes of an answer to Crossplane, and Room is how
	// many bytes there are for all of them.
	Size func(*Role) int
	Room int
	// Recovery returns what a replica has noted of failures, by its key.
	Recovery func(key.Key) Recovery
	// LastFailure returns what a replica has noted of its last crash, by its key.
	LastFailure func(key.Key) Failure
	// Crashes returns why pods of a replica that are read have crashed.
	Crashes func(*ClusterPlan, *Replica) []Failure
	// Leader returns the leader pod of a replica, if it is known.
	Leader func(*Replica) (Leader, bool)
	// PodGroup returns the PodGroup of a gang, by its key.
	PodGroup func(key.Key) PodGroupView
	// Admitted tells whether Kueue has admitted the Workload of that key.
	Admitted func(key.Key) bool
	// Awaits tells that the Workload of that key can be read, and Kueue has not admitted it.
	Awaits func(key.Key) bool
	// Observed tells whether the composed resource of that key exists.
	Observed func(key.Key) bool
	// Taken tells whether somebody else has the name of the object of that key, which does not exist, while the service runs. It is
	// nil where that is not known.
	Taken func(k key.Key, name string) bool
	// PoolType returns the type of role whose pods the InferencePool of that key selects, and whether it
	// exists. No type means the pods of all roles.
	PoolType func(key.Key) (t v1alpha1.ComponentType, exists bool)
	// ServiceRole returns the only role whose pods the Service of that key selects. It is empty if these are of several roles, or
	// there is no Service.
	ServiceRole func(key.Key) string
	// SidecarAccounts returns the service accounts that the RoleBinding of that key names.
	SidecarAccounts func(key.Key) []string
	// Metrics returns where the PodMonitor of that key finds the metrics of engines.
	Metrics func(key.Key) []Metrics
	// PickerConfig returns the hash of the endpoint picker's configuration in the ConfigMap of that key. It is empty
	// where that is not known.
	PickerConfig func(key.Key) string
	// PickerRuns tells whether an endpoint picker with a configuration of that hash is available in the Deployment of the key, and
	// all others are being deleted.
	PickerRuns func(k key.Key, hash string) bool
	// MayStop tells whether the ScaledObject of that key lets its role go to 0 for lack of requests.
	MayStop func(key.Key) bool
	// HasGangKind tells whether the cluster of the XR is known to have the kind of PodGroups.
	HasGangKind func() bool
	// Loader is the hash of what the pods of the loading Job are made from.
	Loader string
	// HasAdapterClaim tells that a claim for adapters exists in some cluster.
	HasAdapterClaim bool
	// Weights returns what is known of the weights in a cluster. It is nil where nothing is.
	Weights func(*ClusterPlan) WeightsView
}
