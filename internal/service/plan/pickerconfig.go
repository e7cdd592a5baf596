package plan

import (
	"github.com/fusioninfer/function-inferenceservice/internal/epp"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// ConfigIn is the configuration of the endpoint picker in a cluster.
func (r *Router) ConfigIn(c *ClusterPlan) string {
	if r.ScreensRevisions {
		return epp.Screen(r.Config, c.Base, r.ScreensBoth)
	}
	return r.Config
}

// ConfigHash changes with the configuration of the endpoint picker in a cluster.
func (r *Router) ConfigHash(c *ClusterPlan) string { return naming.Hash(r.ConfigIn(c)) }

// ConfigKey is the key of the ConfigMap with the endpoint picker's configuration.
func (c *ClusterPlan) ConfigKey() key.Key { return c.Key(key.ConfigMap, "epp") }

// DeploymentKey is the key of the Deployment of the endpoint picker.
func (c *ClusterPlan) DeploymentKey() key.Key { return c.Key(key.Deployment, "epp") }

// pausePickers pauses the Deployments of endpoint pickers whose new configuration is not in its ConfigMap yet.
// Crossplane applies objects in random order (a map's, in composition_functions.go of v2.4), and Objects are applied one by
// one. A picker that started before would read the old configuration, and keep it.
func (p *Plan) pausePickers(running *RunningView) {
	if p.Router == nil {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		hash := running.PickerConfig(c.ConfigKey())
		c.PickerPaused = hash != "" && hash != p.Router.ConfigHash(c)
	}
}
