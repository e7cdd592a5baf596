package cluster

import (
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// markNotAllowed marks the capacity requests from namespaces that the cluster does not
// allow. Nothing new is reserved for them. They keep their reservations until their
// services leave, which those do by themselves.
//
// A service does not request capacity of a cluster that does not allow it. But other users
// may write such a ConfigMap too, so the cluster checks the namespace of each request.
//
// Until Crossplane has resolved the namespaces, no request is decided on: labels that are
// not known do not mean that a namespace is not allowed.
func (r *observedState) markNotAllowed(req incoming.Request, c *parsed) {
	allowed := c.Spec.AllowedNamespaces
	labels := map[string]map[string]string{}
	if allowed.ReadsLabels() {
		found, resolved := req.Required(tenants)
		r.resolved = r.resolved && resolved
		for _, i := range found {
			labels[i.Name()] = i.Labels() // Labels that cannot be read select nothing.
		}
	}
	if !r.resolved {
		return
	}
	for i := range r.requests {
		request := &r.requests[i]
		if _, requested := request.Clusters[c.Name]; !requested || allowed.Allows(request.Namespace, labels[request.Namespace]) {
			continue
		}
		request.NotAllowed = "the cluster does not allow namespace " + request.Namespace
		r.notAllowed = append(r.notAllowed, request.Namespace+"/"+request.Name)
	}
}
