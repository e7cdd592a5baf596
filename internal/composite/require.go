package composite

// Existing is the name of the requirement for an object that may already have the name of the
// composed resource with the key.
func Existing(key string) string { return "existing/" + key }
