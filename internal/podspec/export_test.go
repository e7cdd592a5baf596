package podspec

import "k8s.io/kubernetes/pkg/apis/core/validation"

// Options are the library's, for the test that they are complete.
func Options() validation.PodValidationOptions { return options }
