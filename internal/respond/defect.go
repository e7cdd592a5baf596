package respond

import (
	"fmt"
	"runtime/debug"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Defect answers a panic with a Fatal, which keeps all that exists. A crash
// would take the answers to all other services with it.
func Defect(rsp *fnv1.RunFunctionResponse, log logging.Logger, recovered any, fail func(*fnv1.RunFunctionResponse, error)) {
	if recovered == nil {
		return
	}
	log.Info("Recovered from a defect", "panic", recovered, "stack", string(debug.Stack()))
	fail(rsp, fmt.Errorf("a defect of the function: %v", recovered))
}
