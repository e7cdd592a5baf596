/*
Package workload renders the LeaderWorkerSets. Each replica has its own.

The replicas of a role differ in names, labels and annotations only. All the
rest is built and encoded once for a role, and shared by its replicas.
*/
package workload

import (
	"fmt"
	"maps"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	apply "sigs.k8s.io/lws/client-go/applyconfiguration/leaderworkerset/v1"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A Renderer renders the LeaderWorkerSets of one plan.
type Renderer struct {
	grouped bool
	shared  map[place]shared
}

// A place is a role in one of the plan's deployments.
type place struct {
	deployment *plan.Deployment
	role       *plan.Role
}

// A shared is what the replicas of a role have in common in one place.
type shared struct {
	// object without its name, index and templates.
	object *structpb.Struct
	// leader is nil on one node, where the only pod is made from worker.
	leader, worker *template
}

// A template is a pod template without what differs from replica to replica.
type template struct {
	spec     *structpb.Value
	metadata *structpb.Struct
}

// New prepares what the replicas of each role have in common.
func New(p *plan.Plan) (*Renderer, error) {
	r := &Renderer{grouped: p.Service.Grouped, shared: make(map[place]shared, len(p.Roles)*len(p.Deployments))}
	for _, role := range p.Roles {
		t, err := overlayRole(role)
		if err != nil {
			return nil, fmt.Errorf("cannot render role %q: %w", role.Name, err)
		}
		for i := range p.Deployments {
			d := &p.Deployments[i]
			if r.shared[place{d, role}], err = t.in(d, role); err != nil {
				return nil, fmt.Errorf("cannot render role %q: %w", role.Name, err)
			}
		}
	}
	return r, nil
}

// templates of a role, the same in all places. There is no leader on one node.
type templates struct {
	leader, worker *structpb.Struct
	hash           string
}

func overlayRole(r *plan.Role) (t templates, err error) {
	if t.worker, err = overlay(r, &r.Leader, true); err != nil {
		return t, fmt.Errorf("cannot complete the leader's template: %w", err)
	}
	if r.Nodes > 1 {
		t.leader = t.worker
		if t.worker, err = overlay(r, &r.Worker, false); err != nil {
			return t, fmt.Errorf("cannot complete the workers' template: %w", err)
		}
	}
	t.hash, err = hash(r, t.leader, t.worker)
	return t, err
}

// hash changes with what the pods of a replica are. It is the same for all
// replicas, however many there are.
func hash(r *plan.Role, leader, worker *structpb.Struct) (string, error) {
	labels, err := kube.Encode(r.PodLabels)
	if err != nil {
		return "", fmt.Errorf("cannot hash the labels: %w", err)
	}
	return plan.Hash(strconv.Itoa(int(r.Nodes)), kube.Text(labels, leader, worker)), nil
}

// in completes the templates for one place.
func (t templates) in(d *plan.Deployment, r *plan.Role) (shared, error) {
	labels := map[string]string{
		plan.LabelService:       d.Base,
		plan.LabelComponentType: string(r.Type),
		plan.LabelRoleName:      r.Name,
	}
	// The hash is on the LeaderWorkerSet alone: on the pods it would restart
	// them. The name is set for each replica.
	object, err := kube.Encode(apply.LeaderWorkerSet("", d.Target.Namespace).
		WithLabels(labels).
		WithLabels(map[string]string{plan.LabelSpecHash: t.hash}).
		WithSpec(apply.LeaderWorkerSetSpec().
			WithReplicas(1).
			WithLeaderWorkerTemplate(apply.LeaderWorkerTemplate().
				WithSize(r.Nodes).
				WithRestartPolicy(lws.RecreateGroupOnPodRestart))))
	if err != nil {
		return shared{}, err
	}
	maps.Copy(labels, r.PodLabels)
	s := shared{object: object, worker: newTemplate(t.worker, labels)}
	switch {
	case t.leader == nil:
	case r.Leader.Document == r.Worker.Document:
		s.leader = &template{spec: t.leader.GetFields()["spec"], metadata: s.worker.metadata}
	default:
		s.leader = newTemplate(t.leader, labels)
	}
	return s, nil
}

// newTemplate is a template with labels. Those of the user's stay, those of the
// function win.
func newTemplate(doc *structpb.Struct, labels map[string]string) *template {
	metadata := kube.Copy(doc.GetFields()["metadata"].GetStructValue())
	all := child(metadata, "labels")
	// These are the function's own, also where it sets none.
	for _, k := range []string{plan.LabelGroupIndex, plan.LabelReplicaIndex, plan.LabelSpecHash} {
		delete(all.GetFields(), k)
	}
	for k, v := range labels {
		all.Fields[k] = structpb.NewStringValue(v)
	}
	return &template{spec: doc.GetFields()["spec"], metadata: metadata}
}

// LeaderWorkerSet renders the replica's.
func (r *Renderer) LeaderWorkerSet(d *plan.Deployment, rep *plan.Replica) (kube.Object, error) {
	s, ok := r.shared[place{d, rep.Role}]
	if !ok {
		return kube.Object{}, fmt.Errorf("cannot render LeaderWorkerSet %q: its role is not in the plan", rep.Name)
	}
	o := kube.Copy(s.object)
	metadata := r.identify(s.object.GetFields()["metadata"].GetStructValue(), rep)
	// The name is set because the pods are named after it, and people look for it.
	metadata.Fields["name"] = structpb.NewStringValue(rep.Name)
	o.Fields["metadata"] = structpb.NewStructValue(metadata)

	template := child(child(o, "spec"), "leaderWorkerTemplate")
	pods := r.pods(s.worker.metadata, rep)
	template.Fields["workerTemplate"] = s.worker.with(pods)
	if s.leader != nil {
		if s.leader.metadata != s.worker.metadata {
			pods = r.pods(s.leader.metadata, rep)
		}
		template.Fields["leaderTemplate"] = s.leader.with(pods)
	}
	return kube.Object{Key: rep.Key, Resource: o}, nil
}

// pods is the metadata of a replica's pods. Annotations make them members of
// their gang.
func (r *Renderer) pods(metadata *structpb.Struct, rep *plan.Replica) *structpb.Struct {
	metadata = r.identify(metadata, rep)
	if rep.PodGroup != "" {
		annotations := child(metadata, "annotations").GetFields()
		annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] = structpb.NewStringValue(rep.PodGroup)
		annotations[batchv1alpha1.TaskSpecKey] = structpb.NewStringValue(rep.Task)
	}
	return metadata
}

// identify returns metadata, to be changed further, with the labels that tell one
// replica from another.
func (r *Renderer) identify(metadata *structpb.Struct, rep *plan.Replica) *structpb.Struct {
	metadata = kube.Copy(metadata)
	labels := child(metadata, "labels").GetFields()
	labels[plan.LabelReplicaIndex] = index(rep.Index)
	if r.grouped {
		labels[plan.LabelGroupIndex] = index(rep.Group)
	}
	return metadata
}

func index(i int32) *structpb.Value { return structpb.NewStringValue(strconv.Itoa(int(i))) }

func (t *template) with(metadata *structpb.Struct) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"metadata": structpb.NewStructValue(metadata),
		"spec":     t.spec,
	}})
}
