package composite

import (
	"google.golang.org/protobuf/proto"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// MaxAnswer is the most bytes of a response: Crossplane's client takes 4 MiB, which cannot be raised. The
// rest is for status, conditions and requirements.
const MaxAnswer = 4<<20 - 64<<10

// Size returns the bytes of the response with these objects. By now it has the desired state of earlier
// functions, and the requirements.
func (c *Call) Size(objects []kube.Object) int {
	total := proto.Size(c.Response)
	for _, o := range objects {
		// The key, the map entry and the readiness.
		total += proto.Size(o.Resource) + len(o.Key.String()) + 24
	}
	return total
}
