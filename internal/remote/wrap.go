package remote

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// Wrap returns an Object for o in its target, with the key of o. The remote object is created,
// updated and deleted with the Object. If the cluster is abandoned, the remote object is not
// deleted.
func Wrap(o kube.Object, s naming.Identity, t scheduling.Target, abandoned bool) (kube.Object, error) {
	w := wrap(o, s, t)
	if abandoned {
		w.Spec.ManagementPolicies = withoutDelete
	}
	return kube.Render(o.Key, w)
}

func wrap(o kube.Object, s naming.Identity, t scheduling.Target) object {
	group := incoming.KindOf(o).Group()
	w := builderOf(s, t).object(ObjectName(s, t, group, o.Kind(), o.Name()), map[string]string{s.Label(): s.Name}, o.Resource)
	w.Spec.Readiness = readyBy(queries[o.Kind()+"."+group])
	if o.Kind() == modelroute.KindPool {
		w.Metadata.Labels[naming.LabelInferencePool] = s.Name
	}
	// A provider with --enable-watches watches these. Others poll them.
	w.Spec.Watch = w.Spec.Readiness.CelQuery != ""
	return w
}

// WrapWorkload returns an Object that only observes Kueue's Workload for a LeaderWorkerSet. It is
// named after the LeaderWorkerSet, because the Workload of a new one has another name.
func WrapWorkload(k key.Key, leaderWorkerSet, workload string, s naming.Identity, t scheduling.Target) (kube.Object, error) {
	o, err := wrapObserved(k, groupKueue+"/v1beta2", kindWorkload, workload, s, t)
	if err != nil {
		return o, err
	}
	name := structpb.NewStringValue(ObjectName(s, t, groupKueue, kindWorkload, leaderWorkerSet))
	o.Resource = kube.With(o.Resource, name, "metadata", "name")
	return o, nil
}

// WrapPod returns an Object that only observes a pod.
func WrapPod(k key.Key, pod string, s naming.Identity, t scheduling.Target) (kube.Object, error) {
	return wrapObserved(k, "v1", kindPod, pod, s, t)
}

// WrapClaim returns an Object that only observes a claim.
func WrapClaim(k key.Key, claim string, s naming.Identity, t scheduling.Target) (kube.Object, error) {
	return wrapObserved(k, "v1", kindClaim, claim, s, t)
}

// wrapObserved returns an Object that only observes a remote object. It can always be deleted, whether
// or not the cluster answers, and the remote object stays.
func wrapObserved(k key.Key, apiVersion, kind, name string, s naming.Identity, t scheduling.Target) (kube.Object, error) {
	m, err := kube.Render(k, map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": t.Namespace}})
	if err != nil {
		return m, err
	}
	w := wrap(m, s, t)
	w.Spec.ManagementPolicies = Observe.policies()
	return kube.Render(k, w)
}

// Kueue's Workload has what Kueue decided about a LeaderWorkerSet.
const (
	groupKueue   = "kueue.x-k8s.io"
	kindWorkload = "Workload"
)

const (
	kindPod   = "Pod"
	kindClaim = "PersistentVolumeClaim"
)

// queries say when an Object is ready. While an Object is not ready, provider-kubernetes polls
// its remote object every 30 seconds. Afterwards it does so every 10 minutes (--poll), unless it
// watches it. So an Object becomes ready only when the status of the remote object has all that
// the function waits for. A pod is observed only while it may fail, so its Object is never ready. A claim
// may get its volume with its first pod, and nothing waits for its Object.
var queries = map[string]string{
	"LeaderWorkerSet.leaderworkerset.x-k8s.io":  condition("Available"),
	"Deployment.apps":                           condition("Available"),
	"Gateway.gateway.networking.k8s.io":         condition("Programmed"),
	"HTTPRoute.gateway.networking.k8s.io":       accepted,
	"InferencePool.inference.networking.k8s.io": accepted,
	kindWorkload + "." + groupKueue:             condition("Admitted"),
	kindPod + ".":                               neverReady,
	kindClaim + ".":                             `has(object.status) && has(object.status.phase) && object.status.phase == "Bound"`,
	"Job.batch":                                 condition("Complete"),
	"PodGroup.scheduling.volcano.sh":            `has(object.status) && has(object.status.phase) && object.status.phase in ["Running", "Completed"]`,
}

const accepted = `has(object.status) && has(object.status.parents) && object.status.parents.exists(p, ` +
	`has(p.conditions) && p.conditions.exists(c, c.type == "Accepted" && c.status == "True"))`

func condition(name string) string {
	return fmt.Sprintf(`has(object.status) && has(object.status.conditions) && `+
		`object.status.conditions.exists(c, c.type == %q && c.status == "True")`, name)
}

// readyBy says that an Object is ready by a query. Without one, as for most kinds, it is ready as soon as
// the remote object exists.
func readyBy(query string) readiness {
	if query == "" {
		return readiness{Policy: "SuccessfulCreate"}
	}
	return readiness{Policy: "DeriveFromCelQuery", CelQuery: query}
}

// withoutDelete are all management policies but Delete.
var withoutDelete = []string{"Observe", "Create", "Update", "LateInitialize"}

// Orphaned tells whether an observed Object keeps the remote object when it is deleted.
func Orphaned(observed incoming.Object) bool {
	policies := managementPolicies.In(observed).GetListValue().GetValues()
	return len(policies) > 0 && !slices.ContainsFunc(policies, func(v *structpb.Value) bool {
		return v.GetStringValue() == "Delete" || v.GetStringValue() == "*"
	})
}
