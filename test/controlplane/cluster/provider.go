package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// provider-kubernetes, which makes objects in remote clusters.
const (
	providerProgram = "provider-kubernetes"
	providerIn      = "tools/provider-kubernetes"
	providerModule  = "github.com/crossplane-contrib/provider-kubernetes"
	// providerOrganization is where its package is published.
	providerOrganization = "xpkg.crossplane.io/crossplane-contrib"
	// providerHealthPort is where it says that it is ready, at the address of its pod.
	providerHealthPort = "8081"
)

// installProvider pushes the package of provider-kubernetes to the registry, and installs
// it as docs/operations.md says. A remote cluster that changes or cannot be reached is
// noticed sooner than there, because tests wait for it.
func (c *Cluster) installProvider(ctx context.Context) error {
	file, version, err := providerPackage()
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(c.registry.Organization, "/")
	at := host + "/crossplane-contrib"
	if _, err := c.Crossplane(ctx, "xpkg", "push", "--package-files="+file, at+"/"+providerProgram+":"+version); err != nil {
		return err
	}
	return c.applyAll(ctx, `
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: providers-of-this-machine
spec:
  matchImages:
  - type: Prefix
    prefix: `+providerOrganization+`/
  rewriteImage:
    prefix: `+at+`/
---
apiVersion: pkg.crossplane.io/v1beta1
kind: DeploymentRuntimeConfig
metadata:
  name: provider-kubernetes
spec:
  deploymentTemplate:
    spec:
      selector: {}
      template:
        spec:
          containers:
          - name: package-runtime
            args: [--poll=5s, --enable-watches]
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-kubernetes
spec:
  package: `+providerOrganization+`/provider-kubernetes:`+version+`
  runtimeConfigRef:
    name: provider-kubernetes
`)
}

// connectRemotes waits for the provider, and tells it of the remote clusters.
func (c *Cluster) connectRemotes(ctx context.Context) error {
	if len(c.remotes) == 0 {
		return nil
	}
	provider := &unstructured.Unstructured{}
	provider.SetAPIVersion("pkg.crossplane.io/v1")
	provider.SetKind("Provider")
	provider.SetName("provider-kubernetes")
	if err := c.Until(ctx, "provider-kubernetes is healthy", func(ctx context.Context) (bool, error) {
		o, err := c.Get(ctx, provider)
		if err != nil {
			return false, err
		}
		for _, of := range []string{"Installed", "Healthy"} {
			if condition(o, of) != "True" {
				all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
				return false, fmt.Errorf("its condition %s is not True: %v", of, all)
			}
		}
		return true, nil
	}); err != nil {
		return err
	}
	if err := c.providerServes(ctx); err != nil {
		return err
	}
	for _, r := range c.remotes {
		if err := c.connectRemote(ctx, r); err != nil {
			return fmt.Errorf("cannot tell provider-kubernetes of %s: %w", r.name, err)
		}
	}
	return c.addContexts()
}

// providerServes waits until the process of the provider is ready: that its pod is, KWOK
// says of any pod.
func (c *Cluster) providerServes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	return c.Until(ctx, "the process of provider-kubernetes is ready", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(crossplaneNamespace).List(ctx, metav1.ListOptions{LabelSelector: providerPods})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			if err = healthy(ctx, "http://"+net.JoinHostPort(pods.Items[i].Status.PodIP, providerHealthPort)+"/readyz"); err != nil {
				return false, fmt.Errorf("see %s.log: %w", pods.Items[i].Name, err)
			}
		}
		return len(pods.Items) > 0, nil
	})
}

// connectRemote lets provider-kubernetes do in a remote cluster what package/install says,
// and no more.
func (c *Cluster) connectRemote(ctx context.Context, r *Remote) error {
	if _, err := r.Kubectl(ctx, "apply", "-f", "package/install/rbac.yaml", "-f", "package/install/rbac-remote.yaml"); err != nil {
		return err
	}
	token, err := r.token(ctx, "kube-system", "inferenceservices")
	if err != nil {
		return err
	}
	kubeconfig, err := clientcmd.Write(r.kubeconfig("https://"+r.door, token))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Secrets(crossplaneNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: r.name + "-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, name := range []string{r.Name(), r.Direct()} {
		spec := `
metadata:
  name: ` + name + `
spec:
  credentials:
    source: Secret
    secretRef:
      namespace: ` + crossplaneNamespace + `
      name: ` + r.name + `-kubeconfig
      key: kubeconfig
`
		// One for the Objects of a namespaced XR, and one for those of the XR behind a claim. The API server may not serve
		// all kinds of a provider whose process is ready.
		if err := c.Until(ctx, "provider-kubernetes can be told of "+name, func(ctx context.Context) (bool, error) {
			err := c.applyAll(ctx, `
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: ClusterProviderConfig`+spec+`---
apiVersion: kubernetes.crossplane.io/v1alpha1
kind: ProviderConfig`+spec)
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// applyAll applies the objects of a stream of YAML.
func (c *Kubernetes) applyAll(ctx context.Context, stream string) error {
	all, err := Documents([]byte(stream))
	if err != nil {
		return err
	}
	for _, o := range all {
		if _, err := c.Apply(ctx, o, fieldManager); err != nil {
			return fmt.Errorf("cannot apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// applyFiles applies the objects of files in a directory.
func (c *Kubernetes) applyFiles(ctx context.Context, dir string, names ...string) error {
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) //nolint:gosec // A file of a module or of the repository.
		if err != nil {
			return err
		}
		if err := c.applyAll(ctx, string(b)); err != nil {
			return err
		}
	}
	return nil
}

// providerPackage returns the file of the package of provider-kubernetes, and its version.
// It is made anew only when the program was.
func providerPackage() (file, version string, err error) {
	m, err := download(providerIn, providerModule)
	if err != nil {
		return "", "", err
	}
	bin, err := programs(providerProgram, "crossplane")
	if err != nil {
		return "", "", err
	}
	program := filepath.Join(bin, providerProgram)
	stamp, err := os.ReadFile(program + ".stamp") //nolint:gosec // A file of what was built for this.
	if err != nil {
		return "", "", err
	}
	file = fmt.Sprintf("%s-%s.xpkg", program, strings.TrimSpace(string(stamp)))
	if exists(file) {
		return file, m.Version, nil
	}
	tmp, err := os.MkdirTemp(bin, providerProgram+"-package-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // Nothing is lost.
	image, made := filepath.Join(tmp, "image.tar"), filepath.Join(tmp, "made.xpkg")
	if err := writeImage(program, image); err != nil {
		return "", "", fmt.Errorf("cannot make the image of %s: %w", providerProgram, err)
	}
	if _, err := output(filepath.Join(bin, "crossplane"), "xpkg", "build", "--package-root="+filepath.Join(m.Dir, "package"),
		"--examples-root="+filepath.Join(tmp, "none"), "--package-file="+made, "--embed-runtime-image-tarball="+image); err != nil {
		return "", "", err
	}
	return file, m.Version, os.Rename(made, file) //nolint:gosec // Both are beside what was built.
}

// writeImage writes an image that has one program, as docker save would.
func writeImage(program, file string) error {
	b, err := os.ReadFile(program) //nolint:gosec // A program that was built for this.
	if err != nil {
		return err
	}
	img, err := crane.Image(map[string][]byte{"provider": b})
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", runtime.GOARCH, v1.Config{Entrypoint: []string{"/provider"}}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(providerProgram + ":" + runtime.GOARCH)
	return errors.Join(err, tarball.WriteToFile(file, tag, img))
}
