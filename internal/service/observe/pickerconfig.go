package observe

import (
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

var configHash = incoming.NewPath("metadata", "annotations", naming.AnnotationConfigHash)

// PickerConfig returns the hash of the endpoint picker's configuration in a ConfigMap as it was read last.
func (r *ObservedState) PickerConfig(k key.Key) string {
	found, _ := remote.Unwrap(r.req.Observed(k))
	return configHash.Text(found)
}
