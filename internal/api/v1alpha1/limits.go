package v1alpha1

// Limits of the API. They keep the function's response below the 4 MiB that Crossplane
// accepts, and turn a mistyped number into an error. The markers of the types repeat them
// for the schema; a test compares the two.
const (
	MaxRoles    = 32
	MaxReplicas = 2000
	MaxGroups   = 500
	MaxNodes    = 1024
	MaxClusters = 32
	MaxModels   = 128
	MaxTargets  = 16
	MaxWeight   = 1000000
	// MaxFailoverAfterSeconds is a year.
	MaxFailoverAfterSeconds = 365 * 24 * 60 * 60
	// MaxStartTimeoutSeconds is a year, too.
	MaxStartTimeoutSeconds = MaxFailoverAfterSeconds

	// MaxSurge is the most units beyond the number that is wanted.
	MaxSurge = 100
	// MaxProgressDeadlineSeconds is a year, too.
	MaxProgressDeadlineSeconds = MaxFailoverAfterSeconds

	// MaxStartupSeconds is a day. MaxDrainSeconds is half of the longest grace period of pods in the
	// fleet.
	MaxStartupSeconds = 24 * 60 * 60
	MaxDrainSeconds   = 1800
	// MaxRestartGraceSeconds is a day, too.
	MaxRestartGraceSeconds = MaxStartupSeconds

	// MaxTolerancePercent is below 100, at which a ratio would ask for nothing.
	MaxTolerancePercent = 99
	// MaxSelector is more than the selector of any role needs.
	MaxSelector = 512

	// MaxRoleName leaves enough characters for the shortest service name and a replica's
	// index in MaxWorkloadName.
	MaxRoleName = 46
	// MaxName is the limit of a DNS subdomain, which other names have as well.
	MaxName = 253
	// MaxConfig is the limit of an endpointPickerConfig, in characters.
	MaxConfig = 262144
	// MaxWorkloadName is the limit of the name of a LeaderWorkerSet on several nodes. The
	// StatefulSet of its workers is named {name}-{group}, and the name of a StatefulSet has
	// at most 52 characters. A LeaderWorkerSet on one node could have 52. One limit for
	// both lets a role grow to several nodes under the same name.
	MaxWorkloadName = 50
)
