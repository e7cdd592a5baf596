package respond

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A Kind answers for composite resources of one kind. It has the types of their
// conditions, all of which are set in every answer.
type Kind []string

// Refuse is like the function Refuse.
func (k Kind) Refuse(rsp *fnv1.RunFunctionResponse, errs field.ErrorList) { refuse(rsp, k, errs) }

// Fail is like the function Fail.
func (k Kind) Fail(rsp *fnv1.RunFunctionResponse, err error) { fail(rsp, k, err) }

// Accept answers with what is desired.
func (k Kind) Accept(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, a Answer) error {
	return accept(req, rsp, a)
}
