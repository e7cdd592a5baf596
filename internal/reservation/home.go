package reservation

// A Home is the cluster that a replica group belongs to. The service records it in its request,
// so that it is read back and never worked out anew from what happens to be ready.
type Home struct {
	// Cluster is the name in the service's placement.
	Cluster string `json:"cluster"`
	// Epoch is raised whenever the group gets another home.
	Epoch int64 `json:"epoch"`
	// Started tells that the group could answer in this home at least once, or has no start time-out there.
	Started bool `json:"started,omitempty"`
	// FailedIn is the home before, if the group could not answer there in time, and has not since.
	FailedIn string `json:"failedIn,omitempty"`
}
