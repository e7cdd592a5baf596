/*
Package gosdk stands in for Nebius' SDK, whose module the module proxy does not
give. provider-kubernetes logs in to clusters of Nebius with it, which nobody here
has: it has what provider-kubernetes names, and fails when it is used.
*/
package gosdk

import (
	"context"
	"errors"

	"github.com/nebius/gosdk/auth"
)

var errStandIn = errors.New("this provider-kubernetes was built without Nebius' SDK")

// An SDK would log in.
type SDK struct{}

// An Option of an SDK.
type Option struct{}

// New fails.
func New(context.Context, ...Option) (*SDK, error) { return nil, errStandIn }

// BearerToken fails.
func (*SDK) BearerToken(context.Context) (auth.BearerToken, error) {
	return auth.BearerToken{}, errStandIn
}

// Credentials would be those of a ServiceAccount.
type Credentials struct{}

// WithCredentials does nothing.
func WithCredentials(Credentials) Option { return Option{} }

// ServiceAccountReader does nothing.
func ServiceAccountReader(auth.PrivateKeyParser) Credentials { return Credentials{} }
