package remote

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// ObserverSize is about how many bytes of an answer an Object takes that only observes.
const ObserverSize = 1 << 10

// JobPods tells which pods of a Job there may be: that changes with the number of those that have failed.
type JobPods struct {
	Job    string
	Failed int32
}

// LoaderPods returns an ObservedObjectCollection that finds the pods of loading Jobs in the namespace
// of a target, by the value of their label. It looks again when the Jobs with pods change. Its deletion
// deletes the Objects that it has made, and none of the pods, whether or not the cluster answers.
func LoaderPods(k key.Key, loader string, jobs []JobPods, s naming.Identity, t scheduling.Target) (kube.Object, error) {
	seen := make([]string, 0, 2*len(jobs))
	for _, j := range jobs {
		seen = append(seen, j.Job, strconv.Itoa(int(j.Failed)))
	}
	name := objectName(s, t, "", kindPod+"s", loader, MaxCollectionName)
	c := builderOf(s, t).collection(name, map[string]string{s.Label(): s.Name}, observeObjects{
		APIVersion: "v1", Kind: kindPod, Namespace: t.Namespace,
		Selector: selector{MatchLabels: map[string]string{naming.LabelModelLoader: loader}},
	})
	c.Metadata.Annotations = map[string]string{naming.AnnotationLoadingJobs: naming.Hash(seen...)}
	return kube.Render(k, c)
}

// MembersOf selects the Objects that an observed collection of s made. It returns nil as long as the
// collection does not say which these are.
func MembersOf(observed incoming.Object, s naming.Identity) *fnv1.ResourceSelector {
	return builderOf(s, scheduling.Target{}).Members(observed)
}

// A member is the part of a manifest of a collection's Object that is read.
type member struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// A memberPod is the part of a pod that says whether it has ended.
type memberPod struct {
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

var (
	memberView    = incoming.NewView[carrier[member]]()
	memberPodView = incoming.NewView[memberPod]()
)

// PodNames returns the names of at most limit pods that a collection has found. Those that have not
// ended come first, and otherwise names go by the alphabet. The provider looks at its Objects
// every 10 minutes (--poll), so a pod may have ended since.
func PodNames(members []incoming.Object, limit int) []string {
	type found struct {
		name  string
		ended bool
	}
	var all []found
	for _, o := range members {
		m := memberView.In(o).Spec.ForProvider.Manifest
		// The controller of Jobs gives pods no other names.
		name := m.Metadata.Name
		if m.Kind != kindPod || len(validation.IsDNS1123Label(name)) > 0 {
			continue
		}
		there, _ := Unwrap(o)
		p := memberPodView.In(there)
		all = append(all, found{name, p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded})
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(sorting.First(!a.ended, !b.ended), cmp.Compare(a.name, b.name)) })
	names := make([]string, 0, limit)
	for _, f := range all {
		if len(names) < limit && !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}
