/*
Package workload renders the LeaderWorkerSets, one for each replica.

The replicas of a role differ only in names, labels and annotations. Everything else is
rendered and encoded once per role, and shared by its replicas.
*/
package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	apply "sigs.k8s.io/lws/client-go/applyconfiguration/leaderworkerset/v1"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A Renderer renders the LeaderWorkerSets of one plan.
type Renderer struct {
	grouped   bool
	templates map[string]templates
	shared    map[roleInCluster]roleParts
	revisions map[string]string
	// pins has what replicas with the same pin have in common.
	pins map[pinKey]roleParts
}

// A roleInCluster is a role in one cluster plan.
type roleInCluster struct {
	cluster *plan.ClusterPlan
	role    *plan.Role
}

// roleParts are what the replicas of a role in one cluster have in common.
type roleParts struct {
	// object has no name, index and templates yet.
	object *structpb.Struct
	// leader is nil for a replica on one node, whose only pod is made from worker.
	leader, worker *template
}

// A template is a pod template without what differs between replicas.
type template struct {
	spec     *structpb.Value
	metadata *structpb.Struct
}

// New renders what the replicas of each role have in common in all clusters.
func New(p *plan.Plan) (*Renderer, error) {
	r := &Renderer{
		grouped: p.Service.Grouped, templates: make(map[string]templates, len(p.Roles)), shared: map[roleInCluster]roleParts{},
		revisions: make(map[string]string, len(p.Roles)), pins: map[pinKey]roleParts{},
	}
	all, hashes := make([]templates, len(p.Roles)), make([]string, 0, len(p.Roles))
	for i, role := range p.Roles {
		var err error
		if all[i], err = overlayRole(role, p.HasGang()); err != nil {
			return nil, fmt.Errorf("cannot render role %q: %w", role.Name, err)
		}
		if p.InPair(role) {
			hashes = append(hashes, role.Name+" "+all[i].hash)
		}
	}
	// The order of the roles does not count.
	slices.Sort(hashes)
	for i, role := range p.Roles {
		t := all[i]
		if p.InPair(role) {
			t.hash = p.PairRevision(naming.Hash(hashes...))
		}
		r.templates[role.Name], r.revisions[role.Name] = t, t.hash
	}
	return r, nil
}

// Revisions returns the hash of what the pods of each role are made from, by the role's name. Roles
// that change in pairs have one, so that a replica counts as updated together with the others.
func (r *Renderer) Revisions() map[string]string { return r.revisions }

// templates of a role, the same in all clusters. The leader is nil for a replica on one node.
type templates struct {
	leader, worker *structpb.Struct
	hash           string
}

func overlayRole(r *plan.Role, gang bool) (t templates, err error) {
	if t.worker, err = overlay(r, &r.Leader, true); err != nil {
		return t, fmt.Errorf("cannot overlay the leader's template: %w", err)
	}
	if r.Nodes > 1 {
		t.leader = t.worker
		if t.worker, err = overlay(r, &r.Worker, false); err != nil {
			return t, fmt.Errorf("cannot overlay the workers' template: %w", err)
		}
	}
	t.hash, err = hash(r, gang, t.leader, t.worker)
	return t, err
}

// hash changes whenever the pods of a replica change. All replicas of a role have the same
// hash, and their number does not change it.
func hash(r *plan.Role, gang bool, leader, worker *structpb.Struct) (string, error) {
	labels, err := kube.Encode(r.PodLabels)
	if err != nil {
		return "", fmt.Errorf("cannot hash the labels: %w", err)
	}
	of := []string{strconv.Itoa(int(r.Nodes)), string(r.Type), strconv.FormatBool(gang), kube.Canonical(labels, leader, worker)}
	if p := restartPolicy(r); p != lws.RecreateGroupOnPodRestart {
		of = append(of, string(p))
	}
	return naming.Hash(of...), nil
}

// inCluster completes the templates of a role for one cluster.
func (t templates) inCluster(cluster *plan.ClusterPlan, r *plan.Role) (roleParts, error) {
	labels := map[string]string{
		naming.LabelService:       cluster.Base,
		naming.LabelComponentType: string(r.Type),
		naming.LabelRoleName:      r.Name,
	}
	// The name is set for each replica.
	object, err := kube.Encode(apply.LeaderWorkerSet("", cluster.Target.Namespace).
		WithLabels(labels).
		WithLabels(map[string]string{naming.LabelSpecHash: t.hash}).
		WithLabels(queueOf(cluster, r)).
		WithSpec(apply.LeaderWorkerSetSpec().
			WithReplicas(1).
			WithLeaderWorkerTemplate(apply.LeaderWorkerTemplate().
				WithSize(r.Nodes).
				WithRestartPolicy(restartPolicy(r)))))
	if err != nil {
		return roleParts{}, err
	}
	maps.Copy(labels, r.PodLabels)
	// It keeps a request to one revision (epp.Screen). Pods of workers have it, too: their service may
	// have prefill and decode one day, and a pod without the label gets no requests then.
	labels[naming.LabelSpecHash] = t.hash
	s := roleParts{object: object, worker: newTemplate(t.worker, labels)}
	switch {
	case t.leader == nil:
	case r.Leader.Document == r.Worker.Document:
		s.leader = &template{spec: t.leader.GetFields()["spec"], metadata: s.worker.metadata}
	default:
		s.leader = newTemplate(t.leader, labels)
	}
	return s, nil
}

// queueOf returns the labels by which Kueue admits a LeaderWorkerSet. Kueue reads none of its
// pods' labels.
func queueOf(cluster *plan.ClusterPlan, r *plan.Role) map[string]string {
	if cluster.LocalQueue == "" {
		return nil
	}
	labels := map[string]string{naming.LabelKueueQueue: cluster.LocalQueue}
	if class := r.PriorityClass(); class != "" {
		labels[naming.LabelKueuePriorityClass] = class
	}
	return labels
}

// keepPriorityClass gives a LeaderWorkerSet the priority class of Kueue that it has, or none.
func keepPriorityClass(metadata *structpb.Struct, class string) {
	labels := kube.CopyChild(metadata, "labels").GetFields()
	if delete(labels, naming.LabelKueuePriorityClass); class != "" {
		labels[naming.LabelKueuePriorityClass] = structpb.NewStringValue(class)
	}
}

// newTemplate adds labels to a template. Labels of the user stay, unless the function sets the
// same.
func newTemplate(doc *structpb.Struct, labels map[string]string) *template {
	metadata := kube.Copy(doc.GetFields()["metadata"].GetStructValue())
	all := kube.CopyChild(metadata, "labels")
	// These labels belong to the function even where it sets none.
	for _, k := range []string{naming.LabelGroupIndex, naming.LabelReplicaIndex, naming.LabelSpecHash} {
		delete(all.GetFields(), k)
	}
	for k, v := range labels {
		// The user may know better which metrics the engine has.
		if _, own := all.GetFields()[k]; !own || k != plan.LabelEngineType {
			all.Fields[k] = structpb.NewStringValue(v)
		}
	}
	return &template{spec: doc.GetFields()["spec"], metadata: metadata}
}

// sharedIn returns what the replicas of a role in one cluster have in common. It is made once.
func (r *Renderer) sharedIn(cluster *plan.ClusterPlan, role *plan.Role) (roleParts, error) {
	at := roleInCluster{cluster, role}
	if s, made := r.shared[at]; made {
		return s, nil
	}
	t, known := r.templates[role.Name]
	if !known {
		return roleParts{}, errors.New("the plan does not have its role")
	}
	s, err := t.inCluster(cluster, role)
	if err != nil {
		return roleParts{}, err
	}
	r.shared[at] = s
	return s, nil
}

// LeaderWorkerSet renders the LeaderWorkerSet of a replica.
func (r *Renderer) LeaderWorkerSet(cluster *plan.ClusterPlan, replica *plan.Replica) (kube.Object, error) {
	s, err := r.sharedIn(cluster, replica.Role)
	if err != nil {
		return kube.Object{}, fmt.Errorf("cannot render LeaderWorkerSet %q: %w", replica.Name, err)
	}
	o := kube.Copy(s.object)
	metadata := r.identify(s.object.GetFields()["metadata"].GetStructValue(), replica)
	// The name is set because pods are named after it, and users look for it.
	metadata.Fields["name"] = structpb.NewStringValue(replica.Name)
	o.Fields["metadata"] = structpb.NewStructValue(metadata)

	if replica.Pin != nil {
		s = r.pinned(s, replica.Pin)
	}
	notePin(metadata, replica)
	noteScheduling(metadata, replica.Note)
	if replica.Extra {
		annotate(metadata, naming.AnnotationExtra, "true")
	}
	annotate(metadata, naming.AnnotationRunningSpecHash, replica.RunningRevision)
	annotate(metadata, naming.AnnotationFormerSpecHash, replica.FormerRevision)
	annotate(metadata, naming.AnnotationRunningPodGroup, replica.RunningPodGroup)
	if class := replica.KeptPriorityClass; class != nil {
		keepPriorityClass(metadata, *class)
	}
	noteRecovery(metadata, replica.Recovery)
	annotate(metadata, naming.AnnotationLastFailure, replica.LastFailure.Note())
	template := kube.CopyChild(kube.CopyChild(o, "spec"), "leaderWorkerTemplate")
	pods := r.pods(s.worker.metadata, replica)
	template.Fields["workerTemplate"] = s.worker.with(pods)
	if s.leader != nil {
		if s.leader.metadata != s.worker.metadata {
			pods = r.pods(s.leader.metadata, replica)
		}
		template.Fields["leaderTemplate"] = s.leader.with(pods)
	}
	if replica.Generation > 0 {
		kube.CopyChild(metadata, "annotations").Fields[naming.AnnotationGeneration] = structpb.NewStringValue(strconv.FormatInt(replica.Generation, 10))
	}
	if replica.Held {
		o.Fields["spec"] = hold(o.Fields["spec"].GetStructValue(), replica.Size)
	}
	if replica.Template != nil {
		// A LeaderWorkerSet that is recreated meanwhile has the same pods.
		kube.CopyChild(o, "spec").Fields["leaderWorkerTemplate"] = structpb.NewStructValue(replica.Template)
		kube.CopyChild(metadata, "labels").Fields[naming.LabelSpecHash] = structpb.NewStringValue(replica.Revision)
	}
	return kube.Object{Key: replica.Key, Resource: o}, nil
}

// hold returns a spec that changes no pods. A LeaderWorkerSet applies a changed template or size
// to the groups from the partition on (pkg/controllers/leaderworkerset_controller.go of v0.9.0).
// It has one group, which is group 0. But whether that group is ready, and whether it gets workers, depends
// on the newest size even behind the partition (updateConditions there, pkg/controllers/pod_controller.go).
// So the size stays. 0 means that it is not known.
func hold(spec *structpb.Struct, size int32) *structpb.Value {
	spec = kube.Copy(spec)
	if size > 0 {
		kube.CopyChild(spec, "leaderWorkerTemplate").Fields["size"] = structpb.NewNumberValue(float64(size))
	}
	kube.CopyChild(kube.CopyChild(spec, "rolloutStrategy"), "rollingUpdateConfiguration").Fields["partition"] = structpb.NewNumberValue(1)
	return structpb.NewStructValue(spec)
}

// pods returns the metadata of a replica's pods. The annotations make them members of their
// gang.
func (r *Renderer) pods(metadata *structpb.Struct, replica *plan.Replica) *structpb.Struct {
	metadata = r.identify(metadata, replica)
	if replica.PodGroup != "" {
		annotations := kube.CopyChild(metadata, "annotations").GetFields()
		annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] = structpb.NewStringValue(replica.PodGroup)
		annotations[batchv1alpha1.TaskSpecKey] = structpb.NewStringValue(replica.Task)
	}
	annotate(metadata, naming.AnnotationRestartedFor, numberText(replica.Recovery.Restart))
	return metadata
}

// identify returns a copy of metadata with the labels that tell replicas apart. The caller may
// change it.
func (r *Renderer) identify(metadata *structpb.Struct, replica *plan.Replica) *structpb.Struct {
	metadata = kube.Copy(metadata)
	labels := kube.CopyChild(metadata, "labels").GetFields()
	labels[naming.LabelReplicaIndex] = index(replica.Index)
	if r.grouped {
		labels[naming.LabelGroupIndex] = index(replica.Group)
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
