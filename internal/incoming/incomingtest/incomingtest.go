// Package incomingtest passes the requests of tests through the codec, as gRPC does. Fields
// that the codec skips are therefore missing in tests, too.
package incomingtest

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// Raw returns a request as it arrives at the function.
func Raw(tb testing.TB, sent *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	tb.Helper()
	raw, err := codec.Copy(sent)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// Request returns a request as its readers get it.
func Request(tb testing.TB, sent *fnv1.RunFunctionRequest) incoming.Request {
	tb.Helper()
	return incoming.Of(Raw(tb, sent))
}

// Object returns an observed object as its readers get it.
func Object(tb testing.TB, sent *structpb.Struct) incoming.Object {
	tb.Helper()
	k := key.New("", "object")
	return Request(tb, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{k.String(): {Resource: sent}}}}).Observed(k)
}
