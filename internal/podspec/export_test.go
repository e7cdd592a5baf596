package podspec

import "k8s.io/kubernetes/pkg/apis/core/validation"

// Options returns the options of the library, for the test that they are complete.
func Options() validation.PodValidationOptions { return options }
