package placement

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// Wrap returns the Object that carries o to its target, under o's key. The remote
// object is created, kept and deleted with the Object; one in a cluster that is
// abandoned stays behind when the Object goes.
func Wrap(o kube.Object, s plan.Service, t plan.Target, abandoned bool) (kube.Object, error) {
	group := groupOf(o.APIVersion())
	w := object{
		APIVersion: apiVersionNamespaced,
		Kind:       kindObject,
		Metadata: metadata{
			// Named for what it carries, so that two services that want one remote
			// object meet.
			Name:      plan.ObjectName(s, t, group, o.Kind(), o.Name()),
			Namespace: s.Namespace,
			Labels:    map[string]string{plan.LabelService: s.Name},
		},
		Spec: objectSpec{
			ForProvider:       forProvider{Manifest: o.Resource},
			ProviderConfigRef: providerConfigRef{Kind: t.ProviderConfig.Kind, Name: t.ProviderConfig.Name},
			Readiness:         readinessOf(o.Kind() + "." + group),
		},
	}
	if abandoned {
		w.Spec.ManagementPolicies = withoutDelete
	}
	// What has a status is watched by a provider with --enable-watches. Others poll it.
	w.Spec.Watch = w.Spec.Readiness.CelQuery != ""
	if s.Claimed {
		w.APIVersion = apiVersionCluster
		w.Metadata.Namespace = ""
		w.Spec.ProviderConfigRef.Kind = ""
	}
	r, err := kube.Encode(w)
	if err != nil {
		return kube.Object{}, fmt.Errorf("cannot wrap %s %q for cluster %q: %w", o.Kind(), o.Name(), t.Cluster, err)
	}
	return kube.Object{Key: o.Key, Resource: r}, nil
}

// provider-kubernetes looks at a remote object that it does not watch every 30 seconds
// while its Object is not ready, and every 10 minutes (--poll) afterwards. So an Object is ready when the
// remote object has nothing more to say that a status here would wait for.
var queries = map[string]string{
	"LeaderWorkerSet.leaderworkerset.x-k8s.io":  condition("Available"),
	"Deployment.apps":                           condition("Available"),
	"Gateway.gateway.networking.k8s.io":         condition("Programmed"),
	"HTTPRoute.gateway.networking.k8s.io":       accepted,
	"InferencePool.inference.networking.k8s.io": accepted,
	"PodGroup.scheduling.volcano.sh":            `has(object.status) && has(object.status.phase) && object.status.phase in ["Running", "Completed"]`,
}

const accepted = `has(object.status) && has(object.status.parents) && object.status.parents.exists(p, ` +
	`has(p.conditions) && p.conditions.exists(c, c.type == "Accepted" && c.status == "True"))`

func condition(name string) string {
	return fmt.Sprintf(`has(object.status) && has(object.status.conditions) && `+
		`object.status.conditions.exists(c, c.type == %q && c.status == "True")`, name)
}

// readinessOf says when the Object of a kind is ready. Most kinds are as soon as
// they exist.
func readinessOf(groupKind string) readiness {
	if q, ok := queries[groupKind]; ok {
		return readiness{Policy: "DeriveFromCelQuery", CelQuery: q}
	}
	return readiness{Policy: "SuccessfulCreate"}
}

// withoutDelete are all management policies but one.
var withoutDelete = []string{"Observe", "Create", "Update", "LateInitialize"}

// Orphaned tells whether an observed Object leaves alone what it stands for when it is
// deleted.
func Orphaned(observed *structpb.Struct) bool {
	policies := kube.Lookup(observed, "spec", "managementPolicies").GetListValue().GetValues()
	return len(policies) > 0 && !slices.ContainsFunc(policies, func(v *structpb.Value) bool {
		return v.GetStringValue() == "Delete" || v.GetStringValue() == "*"
	})
}
