package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// passing are the resources that Kubernetes itself creates and deletes at any time.
var passing = sets.New("events", "leases")

// Inventory names every object of the cluster, of whatever kind, as
// "RESOURCE NAMESPACE/NAME".
func (c *Kubernetes) Inventory(ctx context.Context) (sets.Set[string], error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := sets.New[string]()
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if !slices.Contains([]string(r.Verbs), "list") || passing.Has(r.Name) {
				continue
			}
			objects, err := client.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil && !apierrors.IsNotFound(err) { // Its definition may just have been deleted.
				return nil, fmt.Errorf("cannot list %s: %w", r.Name, err)
			}
			insert(all, gv.WithResource(r.Name).GroupResource(), objects)
		}
	}
	return all, nil
}

// insert adds the names of objects, if there are any.
func insert(all sets.Set[string], of schema.GroupResource, objects *metav1.PartialObjectMetadataList) {
	if objects == nil {
		return
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		all.Insert(of.String() + " " + o.GetNamespace() + "/" + o.GetName())
	}
}

// OnlyHas waits until nothing is there besides what was there before.
func (c *Kubernetes) OnlyHas(ctx context.Context, before sets.Set[string]) error {
	return c.Until(ctx, "nothing is left", func(ctx context.Context) (bool, error) {
		// It is much to ask for.
		time.Sleep(time.Second)
		now, err := c.Inventory(ctx)
		if err != nil {
			return false, err
		}
		if left := now.Difference(before); left.Len() > 0 {
			return false, fmt.Errorf("still there: %s", strings.Join(sets.List(left), ", "))
		}
		if lost := before.Difference(now); lost.Len() > 0 {
			return false, fmt.Errorf("gone, although it existed before: %s", strings.Join(sets.List(lost), ", "))
		}
		return true, nil
	})
}
