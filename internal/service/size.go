package service

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render"
)

// maxObject is the most bytes of one object: etcd's limit, 1.5 MiB.
const maxObject = 3 << 19

// checkSize refuses a response above Crossplane's limit, which would fail without a message to the user. It also refuses
// objects that no cluster can store, and capacity requests that no cluster reads. spec is the one with its profile. A role
// with scaling always counts with the most replicas that it may have, so no scaling makes a response too large.
func checkSize(c *composite.Call, spec *structpb.Value, p *plan.Plan, renderer *render.Renderer, objects []kube.Object) field.ErrorList {
	if errs := checkRequestSize(p, objects); len(errs) > 0 {
		return errs
	}
	// Measuring costs as much as sending, so an upper bound comes first.
	most, later := boundOfObject(spec, p), laterObjects(p)
	n := len(objects) + len(p.LaterAutoscalers())
	for _, r := range p.ScaledRoles() {
		n += p.MostReplicas(r)
	}
	if most < maxObject && most*n+later+proto.Size(c.Request.Desired()) < composite.MaxResponse {
		return nil
	}
	// By now the response has the desired state of earlier functions, and the requirements.
	total := proto.Size(c.Response) + later
	sizes := make(map[key.Key]int, len(objects))
	for _, o := range objects {
		sizes[o.Key] = proto.Size(o.Resource)
		total += sizes[o.Key] + composite.EntrySize(o.Key)
	}
	for _, r := range p.LaterAutoscalers() {
		// Its triggers and metrics are those of the spec. The rest is small.
		total += autoscalerSize(r) + most - 2*bound(spec)
	}
	roles, err := sizesOfRoles(p, renderer, sizes)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	var errs field.ErrorList
	for i, r := range p.Roles {
		total += roles[i].later
		if n := largest(p, r, sizes); n > maxObject {
			errs = append(errs, field.Invalid(r.Path().Child("template"), fmt.Sprintf("%d bytes", n),
				fmt.Sprintf("makes a LeaderWorkerSet that no cluster can store: at most %d bytes", maxObject)))
		}
	}
	for _, o := range objects {
		if len(errs) == 0 && sizes[o.Key] > maxObject {
			errs = append(errs, field.Invalid(field.NewPath("spec"), fmt.Sprintf("%d bytes", sizes[o.Key]),
				fmt.Sprintf("makes a %s that no cluster can store: at most %d bytes", o.Kind(), maxObject)))
		}
	}
	if total > composite.MaxResponse && len(errs) == 0 {
		errs = append(errs, responseTooLarge(p, roles, total))
	}
	return errs
}

// boundOfObject is more than the bytes of any object of a service. An object has the templates, and the labels and
// annotations of the Input, at most twice. A few KiB are for the rest.
func boundOfObject(spec *structpb.Value, p *plan.Plan) int {
	most := 2*bound(spec) + 8<<10
	for _, all := range []map[string]string{p.Labels, p.Annotations} {
		for k, v := range all {
			most += 2 * (len(k) + len(v) + 4*head)
		}
	}
	return most
}

// A roleSize is how much of a response the replicas of a role take.
type roleSize struct {
	// bytes and replicas of the LeaderWorkerSets, with those that scaling may add.
	bytes, replicas int
	// later are the bytes of those that scaling may add.
	later int
}

// How many bytes the response has of a replica that is not there yet, besides its LeaderWorkerSet: key, map entry, readiness
// and a requirement. In the fleet, there is also its Object, and its part of the capacity request.
const (
	bytesBesideReplica      = 256
	bytesBesideFleetReplica = 2 << 10
)

// roomForReplicas is how many bytes of a response the replicas may take while a service moves. The rest is for routers and
// the request, for pods that are read, and for what scaling may add.
const roomForReplicas = composite.MaxResponse / 4 * 3

// sizeOf returns a function that measures how many bytes of a response a replica of a role takes in the fleet. A role that
// cannot be rendered has none, and rendering says why.
func sizeOf(renderer *render.Renderer) func(*plan.Role) int {
	return func(r *plan.Role) int {
		o, err := renderer.Example(r)
		if err != nil {
			return 0
		}
		return proto.Size(o.Resource) + bytesBesideReplica + bytesBesideFleetReplica
	}
}

// sizesOfRoles measures the replicas of the roles, in the order of the plan.
func sizesOfRoles(p *plan.Plan, renderer *render.Renderer, sizes map[key.Key]int) ([]roleSize, error) {
	all, at := make([]roleSize, len(p.Roles)), map[*plan.Role]*roleSize{}
	for i, r := range p.Roles {
		at[r] = &all[i]
	}
	for _, r := range p.Replicas() {
		at[r.Role].bytes += sizes[r.Key]
		at[r.Role].replicas++
	}
	for _, r := range p.ScaledRoles() {
		o, err := renderer.Example(r)
		if err != nil {
			return nil, err
		}
		beside := bytesBesideReplica
		if p.Schedule != nil {
			beside += bytesBesideFleetReplica
		}
		each, s := proto.Size(o.Resource)+beside, at[r]
		// What is there counts as what is not: scaling up and down then changes nothing.
		n, there := p.MostReplicas(r), s.bytes+s.replicas*beside
		if n*each > there {
			s.later, s.bytes = n*each-there, n*each
			s.replicas = max(s.replicas, n)
		}
	}
	return all, nil
}

const (
	// maxRequest is the most bytes of a capacity request of which nothing exists. Each cluster reads the requests of all services in
	// one call, and takes no more than 64 MiB. The 1,500 replicas that fit into a response of 4 MiB request some 300 KiB.
	maxRequest = 384 << 10
	// bytesOfExisting is how many bytes more a request may have for each replica that exists: a service that moves requests
	// it in two clusters.
	bytesOfExisting = 256
	// maxConfigMap is the most bytes of any request. An API server takes 1 MiB of data in a ConfigMap.
	maxConfigMap = 1<<20 - 16<<10
)

// maxRequestOf is the most bytes of the capacity request of a service, by how many of its replicas exist.
func maxRequestOf(existing int) int { return min(maxRequest+existing*bytesOfExisting, maxConfigMap) }

// bytesOfRequested is more than the bytes that a replica takes in a capacity request that has its shape already.
const bytesOfRequested = 192

// checkRequested refuses a service that would request millions of replicas, before anything is planned for each of them. That takes more memory than
// the function has.
func checkRequested(p *plan.Plan) field.ErrorList {
	if p.Schedule == nil || p.Schedule.TooMany == 0 {
		return nil
	}
	return tooManyRequested(p.Schedule.TooMany)
}

func tooManyRequested(n int) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("spec", "placement"), fmt.Sprintf("%d replicas", n),
		fmt.Sprintf("makes a capacity request that is too large: at most %d replicas in all clusters. Use fewer replicas or fewer clusters", reservation.MaxRequested))}
}

// checkRequestSize refuses a service whose capacity request no ConfigMap can hold, or no cluster
// reads.
func checkRequestSize(p *plan.Plan, objects []kube.Object) field.ErrorList {
	if p.Schedule == nil {
		return nil
	}
	requested := 0
	for _, c := range p.Schedule.Request.Clusters {
		requested += len(reservation.Replicas(c.Groups))
	}
	n := requested
	for _, r := range p.ScaledRoles() {
		n += max(0, p.MostReplicas(r)-p.RunningReplicas(r))
	}
	if n > reservation.MaxRequested {
		return tooManyRequested(n)
	}
	existing := 0
	for i := range p.Schedule.Assignments {
		if at := p.Schedule.Assignments[i].Existing; at != nil {
			existing += len(at.Present)
		}
	}
	for _, o := range objects {
		if o.Key != key.CapacityRequest {
			continue
		}
		if size, most := proto.Size(o.Resource)+(n-requested)*bytesOfRequested, maxRequestOf(existing); size > most {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "placement"), fmt.Sprintf("%d bytes", size),
				fmt.Sprintf("makes a capacity request that is too large: at most %d bytes. Use fewer replicas or fewer clusters", most))}
		}
		text := o.Resource.GetFields()["data"].GetStructValue().GetFields()[reservation.RequestKey].GetStringValue()
		if _, err := reservation.DecodeRequest(text); err != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "placement"), fmt.Sprintf("%d replicas in %d clusters", requested, len(p.Schedule.Request.Clusters)),
				fmt.Sprintf("makes a capacity request that no cluster would read: %v. Use fewer replicas or fewer clusters, or simpler pods", err))}
		}
	}
	return nil
}

// laterObjects is how many bytes the Objects take that are rendered in later calls: for loading pods, for Kueue's Workloads once
// their LeaderWorkerSets exist, and for pods that may have failed. They count now, so that a service that is accepted without
// them stays accepted.
func laterObjects(p *plan.Plan) int {
	const each = remote.ObserverSize
	n := p.LaterLoaderObjects() * each
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Target.Remote() {
			n += plan.MaxObservedPods * each
		}
		for r := range c.Replicas() {
			if c.LocalQueue != "" && r.Workload == "" {
				n += each
			}
			if c.Target.Remote() {
				n -= int(r.PodsRead) * each
			}
		}
	}
	return n
}

// autoscalerSize is the most bytes of what an autoscaler has of the spec of its role.
func autoscalerSize(r *plan.Role) int {
	n := 0
	for _, m := range r.Autoscaler.Metrics {
		n += bound(structpb.NewStructValue(m))
	}
	v, err := kube.EncodeValue(r.Autoscaler.Triggers)
	if err != nil {
		return maxObject // Rendering says why.
	}
	n += bound(v)
	if v, err = kube.EncodeValue(r.Autoscaler.Behavior); err != nil {
		return maxObject
	}
	return n + bound(v)
}

// head is the most bytes that the tag and the length of a value, a key or an entry take.
const head = 6

// bound returns an upper bound of the encoded size of a value, and is faster than proto.Size.
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

// largest is how many bytes the largest replica of a role has.
func largest(p *plan.Plan, r *plan.Role, sizes map[key.Key]int) int {
	n := 0
	for _, replica := range p.Replicas() {
		if replica.Role == r {
			n = max(n, sizes[replica.Key])
		}
	}
	return n
}

// responseTooLarge says how many groups, or replicas of the largest role, would fit. Where none would, it is about all roles.
func responseTooLarge(p *plan.Plan, roles []roleSize, total int) *field.Error {
	at := 0
	for i := range roles {
		if roles[i].bytes > roles[at].bytes {
			at = i
		}
	}
	most, size := p.Roles[at], roles[at]
	if p.Service.Grouped {
		groups, clusters := 0, max(1, len(p.Clusters))
		for i := range p.Clusters {
			groups += len(p.Clusters[i].Groups)
		}
		if fit := int(int64(groups)*composite.MaxResponse/int64(total)) / clusters; fit > 0 || groups == 0 {
			return field.Invalid(field.NewPath("spec", "replicas"), groups/clusters,
				fmt.Sprintf("the answer would have %d bytes, Crossplane takes %d: at most %d groups fit", total, composite.MaxResponse, fit))
		}
	} else {
		// A replica is in as many clusters as there are of each.
		each := max(1, size.bytes/max(1, int(most.Most())))
		if fit := int(most.Most()) - (total-composite.MaxResponse+each-1)/each; fit > 0 {
			return field.Invalid(most.ReplicasPath(), most.Most(),
				fmt.Sprintf("the answer would have %d bytes, Crossplane takes %d: at most %d replicas of this role fit", total, composite.MaxResponse, fit))
		}
	}
	wanted := 0
	for _, r := range p.Roles {
		wanted += int(r.Most())
	}
	return field.Invalid(field.NewPath("spec", "roles"), fmt.Sprintf("%d replicas", max(size.replicas, wanted)),
		fmt.Sprintf("the answer would have %d bytes, Crossplane takes %d: the roles need about %d times fewer replicas, or smaller templates", total, composite.MaxResponse, total/composite.MaxResponse+1))
}
