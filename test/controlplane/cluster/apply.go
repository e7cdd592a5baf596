package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// Warnings collects what an API server warns of.
type Warnings []string

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

// WithWarnings returns a client of the cluster that collects warnings. It can do
// nothing but read and write.
func (c *Kubernetes) WithWarnings(w *Warnings) (*Kubernetes, error) {
	cfg := rest.CopyConfig(c.Config)
	cfg.WarningHandler = w
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Kubernetes{Config: cfg, Client: client, mapper: c.mapper}, nil
}

// Resource is where objects of a kind are.
func (c *Kubernetes) Resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		// Packages bring kinds with them.
		c.mapper.Reset()
		m, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster has no %s: %w", gvk, err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.Client.Resource(m.Resource).Namespace(o.GetNamespace()), nil
	}
	return c.Client.Resource(m.Resource), nil
}

// Create creates an object, and refuses unknown fields.
func (c *Kubernetes) Create(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := c.Resource(o)
	if err != nil {
		return nil, err
	}
	return r.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// Apply applies an object on the server's side, as Crossplane does, and refuses
// unknown fields, as Crossplane does not.
func (c *Kubernetes) Apply(ctx context.Context, o *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	return c.apply(ctx, o, manager)
}

// ApplyStatus applies the status of an object in the same way.
func (c *Kubernetes) ApplyStatus(ctx context.Context, o *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	return c.apply(ctx, o, manager, "status")
}

func (c *Kubernetes) apply(ctx context.Context, o *unstructured.Unstructured, manager string, subresource ...string) (*unstructured.Unstructured, error) {
	r, err := c.Resource(o)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	force := true
	var applied *unstructured.Unstructured
	// On a busy machine the API server gives up writes. To apply the same again changes nothing.
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsTimeout, func() error {
		applied, err = r.Patch(ctx, o.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{
			FieldManager:    manager,
			FieldValidation: metav1.FieldValidationStrict,
			Force:           &force,
		}, subresource...)
		return err
	})
	return applied, err
}

// Get reads an object anew.
func (c *Kubernetes) Get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := c.Resource(o)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, o.GetName(), metav1.GetOptions{})
}

// Delete deletes an object at once, if it is there.
func (c *Kubernetes) Delete(ctx context.Context, o *unstructured.Unstructured) error {
	r, err := c.Resource(o)
	if err != nil {
		return err
	}
	now := int64(0)
	err = r.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Namespace makes a namespace.
func (c *Kubernetes) Namespace(ctx context.Context, name string) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	_, err := c.Apply(ctx, o, fieldManager)
	return err
}

// Gone waits until an object is no more.
func (c *Kubernetes) Gone(ctx context.Context, o *unstructured.Unstructured) error {
	return c.Until(ctx, o.GetName()+" is gone", func(ctx context.Context) (bool, error) {
		_, err := c.Get(ctx, o)
		return apierrors.IsNotFound(err), err
	})
}

// Table returns what kubectl get shows of a path.
func (c *Kubernetes) Table(ctx context.Context, path string) ([]byte, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	return d.RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
}
