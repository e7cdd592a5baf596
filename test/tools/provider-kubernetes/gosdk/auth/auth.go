// Package auth stands in for the package of the same name of Nebius' SDK.
package auth

// A BearerToken would be sent with each request.
type BearerToken struct{ Token string }

// A PrivateKeyParser would read the key of a ServiceAccount.
type PrivateKeyParser struct{}

// NewPrivateKeyParser does nothing.
func NewPrivateKeyParser(_ []byte, _, _ string) PrivateKeyParser { return PrivateKeyParser{} }
