package cluster

import (
	"cmp"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A mark says which control plane uses a real cluster: a ConfigMap there, which the first
// control plane makes, and which none changes or deletes. Two control planes would each keep
// a ledger of the same nodes.
type mark struct {
	// own identifies this control plane. It is empty where that is not known, and then there
	// is no mark.
	own string
	// other says that the mark names another control plane.
	other string
	// unknown says why the mark cannot be read.
	unknown string
	// awaited tells that the mark was not read so far.
	awaited bool
}

const (
	systemNamespace = "kube-system"
	markName        = "fusioninfer-control-plane"
	markField       = "controlPlane"
)

// controlPlane is the name of the requirement for the object that identifies the control
// plane.
const controlPlane = "control-plane"

// requireControlPlane selects the object whose UID identifies the control plane. Each API
// server makes this ConfigMap, and it survives all composite resources: an InferenceCluster
// that is created again recognizes its own mark. The namespace kube-system would do as well,
// but Crossplane's own role does not let it read namespaces. Without the permission, no
// InferenceCluster would be reconciled any more.
func requireControlPlane() *fnv1.ResourceSelector {
	return incoming.ByName("v1", "ConfigMap", systemNamespace, "extension-apiserver-authentication")
}

// Fields of the mark: in the cluster, and in the Object that makes it.
var (
	markData = incoming.NewPath("data", markField)
	madeData = incoming.NewPath("spec", "forProvider", "manifest", "data", markField)
)

// readMark reads the mark. A mark that cannot be read any more is as it was.
func readMark(req incoming.Request, r *observedState, c *parsed) mark {
	object := req.Observed(c.keys().ControlPlane())
	m := mark{own: madeData.Text(object)}
	if found, _ := req.Required(controlPlane); len(found) > 0 {
		m.own = cmp.Or(uid.Text(found[0]), m.own)
	}
	if m.own == "" {
		return m
	}
	where := "ConfigMap " + markName + " in namespace " + systemNamespace + " there"
	there, state := r.unwrap(c.keys().ControlPlane())
	names := markData.Text(there)
	switch {
	case names != "" && names != m.own:
		m.other = fmt.Sprintf("another control plane uses the cluster: %s names %s, and this control plane is %s. Nothing new is reserved, because both would count the same nodes. If the other one no longer uses the cluster, delete that ConfigMap", where, text.Value(names), text.Value(m.own))
	case names != "":
	case state.Reason == remote.NotCreated:
		m.awaited = true
	default:
		m.unknown = fmt.Sprintf("whether another control plane uses the cluster is not known: %s cannot be read or created, and Object %s says why", where, object.Name())
	}
	return m
}

// mark adds the Object that makes the mark.
func (r *rendering) mark(own string) {
	if own == "" {
		return
	}
	m := named("v1", "ConfigMap", systemNamespace, markName)
	m.Metadata.Labels = r.labels()
	m.Data = map[string]string{markField: own}
	r.object(r.keys().ControlPlane(), m, remote.CreateOnly)
}
