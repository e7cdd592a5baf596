package composite

import "github.com/fusioninfer/function-inferenceservice/internal/key"

// Existing is the name of the requirement for an object that may already have the name of the
// composed resource with the key.
func Existing(k key.Key) string { return "existing/" + k.String() }
