package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An identity says which real cluster an InferenceCluster reaches, and who else uses it. The
// UID of the namespace kube-system tells real clusters apart. Two InferenceClusters of one
// real cluster would each count its nodes, and reserve them twice.
type identity struct {
	// observed is the UID of the cluster that answers. It is empty while none does.
	observed string
	// known is the UID of the cluster that the reservations are for.
	known string
	// recorded tells that the profile had the known UID already. Others can read it then.
	recorded bool
	// unexpected says why the cluster that answers is not the one that was meant.
	unexpected string
	// duplicate says why another InferenceCluster of the same real cluster keeps this one
	// from reserving anything new. later are those that this one keeps from it.
	duplicate string
	later     []string
	mark      mark
	// shared tells that others may use other nodes of the cluster.
	shared bool
}

// Reasons why a cluster reserves nothing new, and of the condition Exclusive.
const (
	reasonUnexpected        = "UnexpectedCluster"
	reasonDuplicate         = "DuplicateCluster"
	reasonOtherControlPlane = "OtherControlPlane"
	reasonNotRecorded       = "IdentityNotRecorded"
	reasonExclusive         = "NoOtherKnown"
	reasonShared            = "SharedByPool"
)

// uid is the UID of an object.
var uid = incoming.NewPath("metadata", "uid")

// readIdentity reads the identity of a cluster. The reservations and reach are known.
func (r *observedState) readIdentity(req incoming.Request, c *parsed) {
	if namespace, state := r.unwrap(c.keys().Reachable()); state.Readable() {
		r.identity.observed = uid.Text(namespace)
	}
	r.identity.shared = c.Spec.Sharing == v1alpha1.SharingByPool
	r.identity.recognize(c, len(r.ledger.Services) > 0)
	r.identity.recorded = told(req, r.identity.known)
	r.identity.compare(c, others(req, c.Name))
	r.identity.mark = readMark(req, r, c)
}

// recognize compares the cluster that answers with the one that the reservations are for. If
// they differ, the cluster was created anew, or the credentials lead to another one. Services
// keep their reservations: provider-kubernetes makes their objects again wherever the
// credentials lead, so their pods need the capacity there. But their old pods may still run
// in the old cluster, and nobody would count what the credentials lead to by mistake. So
// nothing new is reserved until spec.clusterUID names the new cluster, or nothing is reserved
// any more.
func (i *identity) recognize(c *parsed, reserved bool) {
	was, expected := c.Status.ClusterUID, c.Spec.ClusterUID
	i.known = was
	switch seen := i.observed; {
	case seen == "":
	case expected != "" && seen != expected:
		i.unexpected = fmt.Sprintf("the cluster that answers has UID %s, and spec.clusterUID is %s. Nothing new is reserved", text.Value(seen), text.Value(expected))
	case expected == "" && was != "" && seen != was && reserved:
		i.unexpected = fmt.Sprintf("the cluster that answers has UID %s, and what is reserved is for the cluster with UID %s. Nothing new is reserved. If %[1]s is the right one, because the cluster was created anew, set spec.clusterUID to it", text.Value(seen), text.Value(was))
	default:
		i.known = seen
	}
}

// compare looks for other InferenceClusters of the same real cluster. The one that was created
// first goes on, and every other one reserves nothing new. While one of these has reservations
// nevertheless, the first cannot count what is free, so it waits.
func (i *identity) compare(c *parsed, all []peer) {
	actual := cmp.Or(i.observed, i.known)
	if actual == "" {
		return
	}
	first := peer{}
	first.Metadata.Name, first.Metadata.CreationTimestamp = c.Name, c.created
	var reserves []string
	for _, o := range all {
		if o.Status.ClusterUID != actual {
			continue
		}
		if o.before(&first) {
			first = o
		}
		i.later = append(i.later, "InferenceCluster "+o.Metadata.Name)
		if o.Status.ServiceCount > 0 {
			reserves = append(reserves, "InferenceCluster "+o.Metadata.Name)
		}
	}
	switch {
	case first.Metadata.Name != c.Name:
		i.later = nil
		i.duplicate = fmt.Sprintf("it is the same cluster as InferenceCluster %s, which was created earlier: the namespace kube-system has UID %s in both. Nothing new is reserved. Set stopPolicy here to Drain or Abandon, and delete this InferenceCluster when status.serviceCount is 0.", first.Metadata.Name, text.Value(actual)) + bothDiffer
	case len(reserves) > 0:
		i.duplicate = text.Names(reserves, maxNamed) + " is the same cluster, and its reservations are on nodes that are counted here as free. Nothing new is reserved while it has any. Set its stopPolicy to Drain or Abandon, and delete it when its status.serviceCount is 0." + bothDiffer
	}
}

// bothDiffer is what a message adds for clusters that are shared on purpose.
const bothDiffer = " If the pools of both have different nodes, set spec.sharing to ByPool in both instead"

// maxNamed is the most other InferenceClusters that a message names.
const maxNamed = 4

// notSchedulable says why a cluster that is not the only user of its nodes reserves nothing
// new.
func (i *identity) notSchedulable() (reason, message string) {
	switch {
	case i.unexpected != "":
		return reasonUnexpected, i.unexpected
	case i.shared:
		return "", ""
	case i.duplicate != "":
		return reasonDuplicate, i.duplicate
	case i.mark.other != "":
		return reasonOtherControlPlane, i.mark.other
	}
	return "", ""
}

// unsettled says why nothing is reserved for the first time. Of two InferenceClusters that
// reach one real cluster at the same moment, at least one reads the UID that the other
// recorded, because each of them records its own first. A cluster with reservations does not
// wait: they are older than this rule, or than the last change of the identity.
func (r *observedState) unsettled() string {
	switch i := &r.identity; {
	case len(r.ledger.Services) > 0 || i.observed == "":
		return ""
	case !i.recorded:
		return "the UID of the cluster is recorded first"
	case i.mark.awaited:
		return "it is not known yet whether another control plane uses the cluster"
	}
	return ""
}

// exclusive is False while somebody else is known to use the cluster, or another cluster
// answers.
func (i *identity) exclusive() composite.Condition {
	if reason, message := i.notSchedulable(); reason != "" {
		return composite.Condition{Type: Exclusive, Status: composite.False, Reason: reason, Message: message}
	}
	if i.shared {
		return composite.Condition{Type: Exclusive, Status: composite.True, Reason: reasonShared, Message: "spec.sharing is ByPool, so nobody checks who else uses the same nodes"}
	}
	known := composite.Condition{Type: Exclusive, Status: composite.True, Reason: reasonExclusive, Message: i.mark.unknown}
	if len(i.later) > 0 {
		known.Message = text.WithReason(text.Names(i.later, maxNamed), "the same cluster, created later, and therefore refused")
	}
	return known
}

// othersRequirement is the name of the requirement for the profiles of all InferenceClusters.
const othersRequirement = "profiles"

// unprofiledRequirement is the name of the requirement for all InferenceClusters. Their status
// changes often, so only a cluster without reservations requires them: it must not reserve what
// another one of the same real cluster has reserved.
const unprofiledRequirement = "inference-clusters"

// A peer is the part of another InferenceCluster's profile that is read.
type peer struct {
	Metadata struct {
		Name string `json:"name"`
		// CreationTimestamp is as the API server writes it. Offline it may be empty, which is later
		// than any time.
		CreationTimestamp string `json:"creationTimestamp"`
	} `json:"metadata"`
	Status struct {
		// ClusterUID is the UID that it has recorded, or empty.
		ClusterUID string `json:"clusterUID"`
		// ServiceCount is 0 if it has no reservations.
		ServiceCount int32 `json:"serviceCount"`
	} `json:"status"`
}

// before tells whether one InferenceCluster takes precedence over another.
func (p *peer) before(than *peer) bool {
	const last = "~"
	order := cmp.Compare(cmp.Or(p.Metadata.CreationTimestamp, last), cmp.Or(than.Metadata.CreationTimestamp, last))
	return cmp.Or(order, cmp.Compare(p.Metadata.Name, than.Metadata.Name)) < 0
}

var peerView = incoming.NewView[peer]()

// others reads the profiles of the other InferenceClusters, in the order of their names. One that
// has no profile yet, such as after an upgrade, is known by its InferenceCluster.
func others(req incoming.Request, self string) []peer {
	var found []incoming.Object
	profiles, _ := req.Required(othersRequirement)
	for _, o := range profiles {
		found = append(found, profile.Cluster(o))
	}
	clusters, _ := req.Required(unprofiledRequirement)
	known := map[string]bool{self: true, "": true}
	var all []peer
	for _, o := range append(found, clusters...) {
		p := peerView.In(o)
		if known[p.Metadata.Name] {
			continue
		}
		known[p.Metadata.Name] = true
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b peer) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return all
}
