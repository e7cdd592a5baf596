/*
Package workload renders the LeaderWorkerSets. Each replica has its own.

The replicas of a role differ in names, labels and annotations only. All the
rest is built and encoded once for a role, and shared by its replicas.
*/
package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"google.golang.org/protobuf/proto"
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

// templates of a role, the same in all places.
type templates struct {
	leader, worker kube.Document
	// Their specs, encoded.
	leaderSpec, workerSpec *structpb.Value
	hash                   string
}

func overlayRole(r *plan.Role) (t templates, err error) {
	t.worker = overlay(r, &r.Leader, true)
	if r.Nodes > 1 {
		t.leader, t.worker = t.worker, overlay(r, &r.Worker, false)
		if t.leaderSpec, err = kube.EncodeValue(t.leader["spec"]); err != nil {
			return t, fmt.Errorf("cannot encode the leader's template: %w", err)
		}
	}
	if t.workerSpec, err = kube.EncodeValue(t.worker["spec"]); err != nil {
		return t, fmt.Errorf("cannot encode the template: %w", err)
	}
	// The hash changes with what the pods of a replica are. It is the same for
	// all replicas, however many there are. JSON sorts the keys.
	text, err := json.Marshal([]any{r.Nodes, r.PodLabels, t.leader, t.worker})
	if err != nil {
		return t, fmt.Errorf("cannot hash the templates: %w", err)
	}
	t.hash = plan.Hash(string(text))
	return t, nil
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
	s := shared{object: object}
	if s.worker, err = newTemplate(t.worker, t.workerSpec, labels); err != nil || t.leader == nil {
		return s, err
	}
	if s.leader, err = newTemplate(t.leader, t.leaderSpec, labels); err != nil {
		return s, err
	}
	if proto.Equal(s.leader.metadata, s.worker.metadata) {
		s.leader.metadata = s.worker.metadata
	}
	return s, nil
}

// newTemplate is a template with labels. Those of the user's stay, those of the
// function win.
func newTemplate(doc kube.Document, spec *structpb.Value, labels map[string]string) (*template, error) {
	metadata, _ := doc["metadata"].(kube.Document)
	metadata = clone(metadata)
	theirs := child(metadata, "labels")
	// These are the function's own, also where it sets none.
	for _, k := range []string{plan.LabelGroupIndex, plan.LabelReplicaIndex, plan.LabelSpecHash} {
		delete(theirs, k)
	}
	for k, v := range labels {
		theirs[k] = v
	}
	s, err := kube.Encode(metadata)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the template's metadata: %w", err)
	}
	return &template{spec: spec, metadata: s}, nil
}

// LeaderWorkerSet renders the replica's.
func (r *Renderer) LeaderWorkerSet(d *plan.Deployment, rep *plan.Replica) (kube.Object, error) {
	s, ok := r.shared[place{d, rep.Role}]
	if !ok {
		return kube.Object{}, fmt.Errorf("cannot render LeaderWorkerSet %q: its role is not in the plan", rep.Name)
	}
	// The name is set because the pods are named after it, and people look for it.
	metadata := kube.With(s.object.GetFields()["metadata"].GetStructValue(), structpb.NewStringValue(rep.Name), "name")
	o := kube.With(s.object, structpb.NewStructValue(r.identify(metadata, rep)), "metadata")

	metadata = joinGang(r.identify(s.worker.metadata, rep), rep)
	o = kube.With(o, s.worker.with(metadata), "spec", "leaderWorkerTemplate", "workerTemplate")
	if s.leader != nil {
		if s.leader.metadata != s.worker.metadata {
			metadata = joinGang(r.identify(s.leader.metadata, rep), rep)
		}
		o = kube.With(o, s.leader.with(metadata), "spec", "leaderWorkerTemplate", "leaderTemplate")
	}
	return kube.Object{Key: rep.Key, Resource: o}, nil
}

// identify adds the labels that tell one replica from another.
func (r *Renderer) identify(metadata *structpb.Struct, rep *plan.Replica) *structpb.Struct {
	labels := kube.With(metadata.GetFields()["labels"].GetStructValue(), index(rep.Index), plan.LabelReplicaIndex)
	if r.grouped {
		labels = kube.With(labels, index(rep.Group), plan.LabelGroupIndex)
	}
	return kube.With(metadata, structpb.NewStructValue(labels), "labels")
}

func index(i int32) *structpb.Value { return structpb.NewStringValue(strconv.Itoa(int(i))) }

// joinGang adds the annotations that make the replica's pods members of their gang.
func joinGang(metadata *structpb.Struct, rep *plan.Replica) *structpb.Struct {
	if rep.PodGroup == "" {
		return metadata
	}
	annotations := metadata.GetFields()["annotations"].GetStructValue()
	annotations = kube.With(annotations, structpb.NewStringValue(rep.PodGroup), schedulingv1beta1.KubeGroupNameAnnotationKey)
	annotations = kube.With(annotations, structpb.NewStringValue(rep.Task), batchv1alpha1.TaskSpecKey)
	return kube.With(metadata, structpb.NewStructValue(annotations), "annotations")
}

func (t *template) with(metadata *structpb.Struct) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"metadata": structpb.NewStructValue(metadata),
		"spec":     t.spec,
	}})
}
