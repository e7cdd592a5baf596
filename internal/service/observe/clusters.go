package observe

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// A cluster is the part of an InferenceCluster that is read, or of one in a profile.
type cluster struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations struct {
			Paused string `json:"crossplane.io/paused"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec   v1alpha1.InferenceClusterSpec   `json:"spec"`
	Status v1alpha1.InferenceClusterStatus `json:"status"`
}

var clusterView = incoming.NewView[cluster]()

// readFleet reads the profiles of the clusters, and their answers where these are required.
func readFleet(snapshot *scheduling.Snapshot, req incoming.Request) {
	profiles, resolved := req.Required(require.Fleet)
	snapshot.Resolved = resolved
	pools := readEstimates(req)
	for _, i := range profiles {
		c := clusterView.In(profile.Cluster(i))
		if c.Metadata.Name == "" {
			continue
		}
		ic := &v1alpha1.InferenceCluster{Spec: c.Spec, Status: c.Status}
		ic.Name, ic.Labels = c.Metadata.Name, c.Metadata.Labels
		// A profile of an older version has its own estimates.
		for i := range ic.Status.Pools {
			if p, known := pools[ic.Name][ic.Status.Pools[i].Name]; known {
				is := &ic.Status.Pools[i]
				is.NodeCount, is.Capacity, is.Free = p.NodeCount, p.Capacity, p.Free
			}
		}
		snapshot.Clusters[ic.Name] = ic
		snapshot.Unanswered[ic.Name] = !readAnswers(ic, req)
		readSilent(ic, req)
	}
}

// readEstimates returns the pools with the estimates of what is free in them, by the names of the clusters and their own.
func readEstimates(req incoming.Request) map[string]map[string]v1alpha1.PoolStatus {
	all := map[string]map[string]v1alpha1.PoolStatus{}
	estimates, _ := req.Required(require.Estimates)
	for _, o := range estimates {
		c := clusterView.In(profile.Estimated(o))
		pools := map[string]v1alpha1.PoolStatus{}
		for _, p := range c.Status.Pools {
			pools[p.Name] = p
		}
		all[c.Metadata.Name] = pools
	}
	return all
}

// readAnswers adds the answers of a cluster, and tells whether they could be read. A part that
// does not exist has no answers.
func readAnswers(ic *v1alpha1.InferenceCluster, req incoming.Request) bool {
	parts, resolved := req.Required(require.Answers(ic.Name))
	for _, i := range parts {
		a, err := profile.ReadAnswers(i)
		if err != nil {
			return false
		}
		ic.Status.Reservations, ic.Status.Pending = append(ic.Status.Reservations, a.Reservations...), append(ic.Status.Pending, a.Pending...)
	}
	return resolved
}

// readSilent reads why a cluster does not answer: Crossplane does not reconcile it, or cannot. Its
// profile is then as old as its last reconcile.
func readSilent(ic *v1alpha1.InferenceCluster, req incoming.Request) {
	found, _ := req.Required(require.Cluster(ic.Name))
	for _, i := range found {
		c := clusterView.In(i)
		if paused := c.Metadata.Annotations.Paused; paused != "" {
			ic.Annotations = map[string]string{xpmeta.AnnotationKeyReconciliationPaused: paused}
		}
		if is := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionSchedulable); is != nil {
			apimeta.SetStatusCondition(&ic.Status.Conditions, *is)
		}
	}
}
