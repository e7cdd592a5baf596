package respond

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

const (
	// maxAnswer is what Crossplane's client receives; it cannot be raised. Status,
	// conditions and requirements need a little of it.
	maxAnswer = 4<<20 - 64<<10
	// maxObject is etcd's limit for one object.
	maxObject = 3 << 19
)

// TooLarge refuses what would not arrive: an answer above Crossplane's limit,
// which would fail without a word to the user, and objects that no cluster can
// store.
func TooLarge(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, p *plan.Plan, objects []kube.Object) field.ErrorList {
	if errs := askTooLarge(p, objects); len(errs) > 0 {
		return errs
	}
	// Measuring costs as much as sending. An object holds the user's templates and
	// the platform's labels and annotations twice at most, plus a few KiB of ours.
	most := 2*bound(kube.Lookup(req.GetObserved().GetComposite().GetResource(), "spec")) + 8<<10
	for _, all := range []map[string]string{p.Labels, p.Annotations} {
		for k, v := range all {
			most += 2 * (len(k) + len(v) + 4*head)
		}
	}
	if most < maxObject && most*len(objects)+proto.Size(req.GetDesired()) < maxAnswer {
		return nil
	}
	// What functions before this one want, and the requirements.
	total := proto.Size(rsp)
	sizes := make(map[string]int, len(objects))
	for _, o := range objects {
		sizes[o.Key] = proto.Size(o.Resource)
		// The key, the map entry and the readiness.
		total += sizes[o.Key] + len(o.Key) + 24
	}
	var errs field.ErrorList
	for i, r := range p.Roles {
		if n := largest(p, r, sizes); n > maxObject {
			errs = append(errs, field.Invalid(p.Roles[i].Path().Child("template"), fmt.Sprintf("%d bytes", n),
				fmt.Sprintf("makes a LeaderWorkerSet that no cluster can store: at most %d bytes", maxObject)))
		}
	}
	for _, o := range objects {
		if len(errs) == 0 && sizes[o.Key] > maxObject {
			errs = append(errs, field.Invalid(field.NewPath("spec"), fmt.Sprintf("%d bytes", sizes[o.Key]),
				fmt.Sprintf("makes a %s that no cluster can store: at most %d bytes", o.Kind(), maxObject)))
		}
	}
	if total > maxAnswer && len(errs) == 0 {
		errs = append(errs, tooMany(p, sizes, total))
	}
	return errs
}

// maxAsk is what an API server takes of a ConfigMap's data, but for a little.
const maxAsk = 1<<20 - 16<<10

// askTooLarge refuses a service that asks for so much, of so many clusters, that nobody
// would read it.
func askTooLarge(p *plan.Plan, objects []kube.Object) field.ErrorList {
	if p.Fleet == nil {
		return nil
	}
	for _, o := range objects {
		if n := proto.Size(o.Resource); o.Key == plan.AskKey && n > maxAsk {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "placement"), fmt.Sprintf("%d bytes", n),
				fmt.Sprintf("is too much to ask clusters for: at most %d bytes, which is some %d replicas in all clusters: fewer replicas, or fewer clusters", maxAsk, maxAsk/64))}
		}
	}
	return nil
}

// head is the most that tag and length of a value, a key or an entry take.
const head = 6

// bound is at least the size of a value, and quicker to tell.
func bound(v *structpb.Value) int {
	n := 2 * head
	switch t := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		n += len(t.StringValue)
	case *structpb.Value_StructValue:
		for k, e := range t.StructValue.GetFields() {
			n += 2*head + len(k) + bound(e)
		}
	case *structpb.Value_ListValue:
		for _, e := range t.ListValue.GetValues() {
			n += bound(e)
		}
	}
	return n
}

func largest(p *plan.Plan, r *plan.Role, sizes map[string]int) int {
	n := 0
	eachReplica(p, func(rep *plan.Replica) {
		if rep.Role == r {
			n = max(n, sizes[rep.Key])
		}
	})
	return n
}

// tooMany says how many replicas of the role that takes most room would fit.
func tooMany(p *plan.Plan, sizes map[string]int, total int) *field.Error {
	bytes, count := map[*plan.Role]int{}, map[*plan.Role]int{}
	eachReplica(p, func(rep *plan.Replica) {
		bytes[rep.Role] += sizes[rep.Key]
		count[rep.Role]++
	})
	var most *plan.Role
	for _, r := range p.Roles {
		if most == nil || bytes[r] > bytes[most] {
			most = r
		}
	}
	if p.Service.Grouped {
		groups := 0
		for i := range p.Deployments {
			groups += len(p.Deployments[i].Groups)
		}
		fit := max(0, int(int64(groups)*maxAnswer/int64(total))) / len(p.Deployments)
		return field.Invalid(field.NewPath("spec", "replicas"), groups/len(p.Deployments),
			fmt.Sprintf("the answer would have %d bytes, Crossplane takes %d: at most %d groups fit", total, maxAnswer, fit))
	}
	each := max(1, bytes[most]/max(1, count[most])*len(p.Deployments))
	fit := int(most.Replicas) - (total-maxAnswer+each-1)/each
	if fit < 0 {
		return field.Invalid(field.NewPath("spec", "roles"), fmt.Sprintf("%d replicas", len(sizes)),
			fmt.Sprintf("the answer would have %d bytes, Crossplane takes %d: the roles need about %d times fewer replicas, or smaller templates", total, maxAnswer, total/maxAnswer+1))
	}
	return field.Invalid(most.Path().Child("replicas"), most.Replicas,
		fmt.Sprintf("the answer would have %d bytes, Crossplane takes %d: at most %d replicas of this role fit", total, maxAnswer, fit))
}

func eachReplica(p *plan.Plan, do func(*plan.Replica)) {
	for i := range p.Deployments {
		for j := range p.Deployments[i].Groups {
			for k := range p.Deployments[i].Groups[j].Replicas {
				do(&p.Deployments[i].Groups[j].Replicas[k])
			}
		}
	}
}
