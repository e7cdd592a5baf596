package composite

import (
	"google.golang.org/protobuf/proto"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// MaxResponse is the most bytes of requirements and desired objects in a response. Crossplane's client takes
// 4 MiB of a response, which cannot be raised. 64 KiB of them are for status and conditions.
const MaxResponse = 4<<20 - 64<<10

// Size returns the bytes of the response with these objects. By now it has the desired state of earlier
// functions, and the requirements.
func (c *Call) Size(objects []kube.Object) int {
	total := proto.Size(c.Response)
	for _, o := range objects {
		total += proto.Size(o.Resource) + EntrySize(o.Key)
	}
	return total
}

// EntrySize is how many bytes a desired object takes of a response beside its own: its key, the map entry and
// its readiness.
func EntrySize(k key.Key) int { return len(k.String()) + 24 }
