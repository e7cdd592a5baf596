package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A settledFleet is what a plan shows of a fleet once nothing changes any more.
type settledFleet struct {
	services, clusters map[identity]object
	refused            map[identity]string
	lost               map[config]bool
	// pods has what the replicas of each service run.
	pods map[identity]map[string]runningPods
	// pending is what waits for capacity in the clusters.
	pending []pendingRequest
	// deleting are the Objects that wait for a cluster that does not answer.
	deleting []object
}

// settledFleet reads the fleet as it is now.
func (s *simulation) settledFleet() settledFleet {
	p := settledFleet{services: map[identity]object{}, clusters: map[identity]object{}, refused: s.refusals(), lost: s.lost, pods: map[identity]map[string]runningPods{}}
	for _, o := range s.all() {
		id := identityOf(o)
		if !ofCluster(o) {
			p.services[id], p.pods[id] = o, s.pods(id)
			continue
		}
		p.clusters[id] = o
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "pending")
		for _, i := range list {
			m, _ := i.(map[string]any)
			field := func(f string) string { t, _ := m[f].(string); return t }
			p.pending = append(p.pending, pendingRequest{field("namespace"), field("name"), id.name, field("message")})
		}
	}
	for _, at := range s.store.objects {
		if at.object.GetDeletionTimestamp() != nil {
			p.deleting = append(p.deleting, at.object)
		}
	}
	return p
}

// What a change does to a service.
const (
	changeStays     = "Stays"
	changeMoves     = "Moves"
	changeChanges   = "Changes"
	changeNew       = "New"
	changeDeleted   = "Deleted"
	changeRefused   = "Refused"
	changeNotPlaced = "NotPlaced"
)

// A comparison is a fleet before and after a change. Its YAML is the format of the command.
type comparison struct {
	Services []serviceChange  `json:"services"`
	Clusters []clusterChange  `json:"clusters"`
	Pending  []pendingRequest `json:"pending,omitempty"`
}

// A serviceChange is a service before and after a change.
type serviceChange struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Change is Stays, Changes, Moves, New, Deleted, Refused or NotPlaced. Changes is a service that
	// stays where it is, with other pods. NotPlaced is one of which something runs nowhere, or only
	// where it has to leave or cannot be reached, or whose changed pods do not fit.
	Change string      `json:"change"`
	Before []placement `json:"before,omitempty"`
	After  []placement `json:"after,omitempty"`
	// Scaled are the roles with scaling. Those of a service that is refused are left out.
	Scaled []scaledRole `json:"scaled,omitempty"`
	// Why has the reasons of clusters that the service leaves, or is not placed in, and what becomes of its pods. Of a deleted
	// service, it has the clusters that nothing can be deleted from.
	Why []string `json:"why,omitempty"`
}

// A placement is what of a service runs in a cluster.
type placement struct {
	Cluster string                  `json:"cluster"`
	State   v1alpha1.PlacementState `json:"state"`
	// Assigned says which replicas, where it is not the whole service.
	Assigned string `json:"assigned,omitempty"`
	// OutOfReach tells that nobody knows whether it still runs there.
	OutOfReach bool `json:"outOfReach,omitempty"`
}

// A pendingRequest is what a service waits for in a cluster, and why.
type pendingRequest struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster"`
	Message   string `json:"message"`
}

// idsOfEither returns the identities that either of two maps has, sorted.
func idsOfEither(a, b map[identity]object) []identity {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.SortedFunc(maps.Keys(all), func(a, b identity) int { return strings.Compare(a.nice(), b.nice()) })
}

func compare(before, after settledFleet) comparison {
	c := comparison{Services: []serviceChange{}, Clusters: []clusterChange{}}
	for _, id := range idsOfEither(before.services, after.services) {
		if s := compareService(id, before, after); s != nil {
			c.Services = append(c.Services, *s)
		}
	}
	for _, id := range idsOfEither(before.clusters, after.clusters) {
		c.Clusters = append(c.Clusters, compareCluster(id, before, after))
	}
	c.Pending = slices.SortedStableFunc(slices.Values(after.pending), func(a, b pendingRequest) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Cluster, b.Cluster))
	})
	return c
}

// compareService returns nil for a service outside of the fleet.
func compareService(id identity, before, after settledFleet) *serviceChange {
	was, existed := before.services[id]
	is, exists := after.services[id]
	s := &serviceChange{Namespace: id.namespace, Name: id.name, Before: before.placements(was), After: after.placements(is)}
	if !inFleet(was) && !inFleet(is) {
		return nil
	}
	same := slices.Equal(s.Before, s.After)
	incomplete := exists && (after.refused[id] != "" || after.lacks(is, s.After))
	wasIncomplete := existed && (before.refused[id] != "" || before.lacks(was, s.Before))
	pods := changedPods(is, before.pods[id], after.pods[id])
	if same {
		pods = append(changedRoles(was, is), pods...)
	}
	if after.refused[id] == "" {
		s.Scaled = scaledRolesOf(was, is)
	}
	switch {
	case !exists:
		s.Change, s.Why = changeDeleted, after.stays(was)
		return s
	case after.refused[id] != "":
		s.Change = changeRefused // What runs of it stays as it is, and nobody knows where it would run.
	case incomplete && !(wasIncomplete && same && sameSpec(was, is) && len(pods) == 0):
		s.Change = changeNotPlaced
	case !existed:
		s.Change = changeNew
	case same && len(pods) > 0:
		s.Change = changeChanges
	case same:
		s.Change = changeStays
	default:
		s.Change = changeMoves
	}
	s.Why = append(after.why(s, is, after.refused[id], incomplete), pods...)
	return s
}

// lacks tells whether something of a service is in no cluster that answers, or where it has to
// leave, or waits for capacity where the service is. The latter are pods that have grown.
func (p settledFleet) lacks(o object, in []placement) bool {
	return conditionOf(o, observe.IsPlaced) != "True" || slices.ContainsFunc(in, func(at placement) bool { return at.OutOfReach || p.waits(o, at.Cluster) != "" })
}

// waits returns what a service waits for in a cluster of its placement.
func (p settledFleet) waits(o object, cluster string) string {
	name, namespace := serviceOf(o)
	i := slices.IndexFunc(p.pending, func(w pendingRequest) bool {
		return w.Namespace == namespace && w.Name == name && w.Cluster == nameOf(o, cluster)
	})
	if i < 0 {
		return ""
	}
	return p.pending[i].Message
}

func inFleet(o object) bool {
	_, placed, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "placement")
	return placed
}

// why returns the reasons of the clusters that the service has left. If something of it is not
// placed, it returns those of all clusters.
func (p settledFleet) why(s *serviceChange, is object, refused string, incomplete bool) []string {
	if refused != "" {
		return problems("refused: " + refused)
	}
	left := map[string]bool{}
	for _, at := range s.Before {
		left[at.Cluster] = true
	}
	for _, at := range s.After {
		delete(left, at.Cluster)
	}
	var all []string
	for _, c := range clustersOf(is) {
		name := text.Cluster(c.Name)
		switch waits := p.waits(is, c.Name); {
		case (left[name] || incomplete) && c.Reason != "":
			all = append(all, name+": "+cmp.Or(c.Message, c.Reason))
		case incomplete && waits != "":
			all = append(all, name+": "+waits)
		}
		delete(left, name)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		reason := "the placement does not name or select it"
		if _, exists := p.clusters[identity{v1alpha1.Group, v1alpha1.KindInferenceCluster, "", nameOf(is, name)}]; !exists && name != text.Cluster("") {
			reason = "the cluster is deleted"
		}
		all = append(all, name+": "+reason)
	}
	return all
}

// stays names the clusters out of reach in which a deleted service stays until they answer.
func (p settledFleet) stays(was object) []string {
	in := map[config]bool{}
	for _, o := range p.deleting {
		if ref, _ := configOfObject(o); controlledBy(o, was) {
			in[ref] = true
		}
	}
	var all []string
	for id, c := range p.clusters {
		if in[configOfCluster(c)] {
			all = append(all, id.name+": out of reach, so its objects wait there until the cluster answers")
		}
	}
	slices.Sort(all)
	return all
}

// placements returns the clusters in which something of a service runs. One without a placement runs beside the control
// plane, and its status lists no clusters.
func (p settledFleet) placements(o object) []placement {
	if isService(o) && !inFleet(o) && p.refused[identityOf(o)] == "" {
		return []placement{{Cluster: text.Cluster(""), State: v1alpha1.StatePlaced}}
	}
	var all []placement
	lost := map[string]bool{}
	for id, c := range p.clusters {
		lost[id.name] = p.lost[configOfCluster(c)]
	}
	for _, c := range clustersOf(o) {
		if c.State != v1alpha1.StatePlaced && c.State != v1alpha1.StateLeaving {
			continue
		}
		at := placement{Cluster: text.Cluster(c.Name), State: c.State, Assigned: replicaText(c.Assigned), OutOfReach: lost[nameOf(o, c.Name)]}
		if len(c.Assigned) == 1 && len(c.Assigned[0].Indexes) == 0 && c.Assigned[0].Role == "" && !grouped(o) {
			at.Assigned = "" // It is the whole service.
		}
		all = append(all, at)
	}
	return all
}

// nameOf returns the name of the InferenceCluster that a placement gives another name.
func nameOf(o object, cluster string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "placement", "clusters")
	for _, i := range list {
		m, _ := i.(map[string]any)
		if m["name"] == cluster {
			ref, _, _ := unstructured.NestedString(m, "inferenceClusterRef", "name")
			return ref
		}
	}
	return cluster
}

// grouped tells whether a service has groups, by spec.replicas.
func grouped(o object) bool {
	_, set, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	return set
}

// exit returns the exit code that tells what changes.
func (c comparison) exit() error {
	if slices.ContainsFunc(c.Clusters, func(c clusterChange) bool { return c.refused }) {
		return errRefused // Nobody knows what becomes of the services in it.
	}
	code := exitCodeError(0)
	if c.shortClusters() > 0 {
		code = errNotPlaced
	}
	for _, s := range c.Services {
		switch s.Change {
		case changeRefused:
			return errRefused
		case changeNotPlaced:
			code = errNotPlaced
		case changeStays:
		default:
			code = max(code, errMoves)
		}
	}
	if code == 0 {
		return nil
	}
	return code
}

// count returns how many services a change does this to.
func (c comparison) count(change string) int {
	n := 0
	for _, s := range c.Services {
		if s.Change == change {
			n++
		}
	}
	return n
}

// headline counts the services by what the change does to them.
func (c comparison) headline() string {
	var parts []string
	for _, p := range []struct{ change, one, more string }{
		{changeMoves, "moves", "move"},
		{changeChanges, "changes its pods", "change their pods"},
		{changeNew, "is new", "are new"},
		{changeDeleted, "is deleted", "are deleted"},
		{changeRefused, "is refused", "are refused"},
		{changeNotPlaced, "cannot be placed completely", "cannot be placed completely"},
		{changeStays, "stays as it is", "stay as they are"},
	} {
		n := c.count(p.change)
		if n == 0 {
			continue
		}
		service, does := "services ", p.more
		if n == 1 {
			service, does = "service ", p.one
		}
		if len(parts) > 0 {
			service = "" // The first part has said it.
		}
		parts = append(parts, fmt.Sprintf("%d %s%s", n, service, does))
	}
	if len(parts) == 0 {
		return "Plan: no service has a placement."
	}
	return "Plan: " + strings.Join(parts, ", ") + "." + c.shortage()
}

// shortClusters is the number of clusters in which the change leaves less than what is reserved.
func (c comparison) shortClusters() int {
	n := 0
	for _, o := range c.Clusters {
		if o.short {
			n++
		}
	}
	return n
}

// shortage is the sentence of the headline about these clusters, or empty.
func (c comparison) shortage() string {
	switch n := c.shortClusters(); n {
	case 0:
		return ""
	case 1:
		return " More is reserved in 1 cluster than it has then."
	default:
		return fmt.Sprintf(" More is reserved in %d clusters than they have then.", n)
	}
}
