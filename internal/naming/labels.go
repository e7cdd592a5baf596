package naming

// Labels that the function puts on what it renders.
const (
	LabelService       = "fusioninfer.io/service"
	LabelComponentType = "fusioninfer.io/component-type"
	LabelRoleName      = "fusioninfer.io/role-name"
	LabelReplicaIndex  = "fusioninfer.io/replica-index"
	LabelGroupIndex    = "fusioninfer.io/group-index"
	LabelSpecHash      = "fusioninfer.io/spec-hash"
)
