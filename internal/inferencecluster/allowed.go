package inferencecluster

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// bar marks the asks of services that the cluster does not allow: they are granted nothing
// new, and keep what they have until they leave, which they do by themselves. A service
// that is not allowed does not ask. But an ask is a ConfigMap that others may write, so
// the cluster decides for itself, by the namespace that the ask is in.
//
// While the labels of namespaces are not known, nothing is decided at all: that they have
// not been read does not mean that nobody is allowed.
func (r *reality) bar(req *fnv1.RunFunctionRequest, c *cluster) {
	allowed := c.Spec.AllowedNamespaces
	labels := map[string]map[string]string{}
	if allowed.ReadsLabels() {
		found, answered := req.GetRequiredResources()[tenants]
		r.answered = r.answered && answered
		for _, i := range found.GetItems() {
			n := struct {
				Metadata struct {
					Name   string            `json:"name"`
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
			}{}
			_ = kube.Decode(i.GetResource(), nil, &n) // Labels that cannot be read select nothing.
			labels[n.Metadata.Name] = n.Metadata.Labels
		}
	}
	if !r.answered {
		return
	}
	for i := range r.asks {
		a := &r.asks[i]
		if _, asks := a.Clusters[c.Name]; !asks || allowed.Allows(a.Namespace, labels[a.Namespace]) {
			continue
		}
		a.Barred = "the cluster does not allow namespace " + a.Namespace
		r.barred = append(r.barred, a.Namespace+"/"+a.Name)
	}
}
