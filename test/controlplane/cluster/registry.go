package cluster

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// organization of the packages, as they are published.
const organization = "ghcr.io/fusioninfer"

// A Registry is an OCI registry in this process.
type Registry struct {
	// Organization is where the packages are, in place of ghcr.io/fusioninfer.
	Organization string
}

// Registry of the cluster.
func (c *Cluster) Registry() *Registry { return c.registry }

func (c *Cluster) runRegistry() error {
	dir := filepath.Join(c.dir, "registry")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	at, err := c.serveHTTP(registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)),
		registry.Logger(log.New(io.Discard, "", 0))))
	if err != nil {
		return err
	}
	c.registry = &Registry{Organization: at + "/" + path.Base(organization)}
	return nil
}

// Install pushes the packages of a version, installs them as the README says, with the
// namespaced API, and waits until it is served.
func (c *Cluster) Install(ctx context.Context, version string) error {
	if err := c.PushPackages(version); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "-f", "package/install/rbac.yaml", "-f", "package/install/admission.yaml", "-f", "package/install/function.yaml", "-f", "package/install/configuration.yaml"},
		{"wait", "--for=condition=Healthy", "--timeout=10m", "functions.pkg.crossplane.io,configurations.pkg.crossplane.io", "--all"},
		{"wait", "--for=condition=Established", "--timeout=10m", "xrd/inferenceservices.fusioninfer.io"},
	} {
		if _, err := c.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// redirectImages makes Crossplane take packages from the registry here when they
// are asked for by the name under which they are published.
func (c *Cluster) redirectImages(ctx context.Context) error {
	return c.applyAll(ctx, `
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: packages-of-this-machine
spec:
  matchImages:
  - type: Prefix
    prefix: `+organization+`/
  rewriteImage:
    prefix: `+c.registry.Organization+`/
`)
}

// PushPackages pushes the project's packages as a version to the registry. It builds them
// unless they are among the cluster's.
func (c *Cluster) PushPackages(version string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	dist := filepath.Join(c.options.Packages, version)
	built := c.options.Packages != "" && exists(dist)
	if !built {
		dist = filepath.Join(c.dir, "packages", version)
	}
	bin, err := programs("packager")
	if err != nil {
		return err
	}
	packager := filepath.Join(bin, "packager")
	same := []string{"--root=" + root, "--version=" + version, "--dist=" + dist, "--arch=" + runtime.GOARCH}
	if !built {
		if _, err := output(packager, append([]string{"build"}, same...)...); err != nil {
			return err
		}
	}
	_, err = output(packager, append(append([]string{"push"}, same...), "--registry="+c.registry.Organization)...)
	return err
}

// pullProgram writes the program of an image to a directory, and returns it.
func pullProgram(ctx context.Context, image, dir string) (string, error) {
	img, err := pulled(ctx, image)
	if err != nil {
		return "", err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	if len(config.Config.Entrypoint) != 1 {
		return "", fmt.Errorf("image %s has entrypoint %q, want one program", image, config.Config.Entrypoint)
	}
	file := filepath.Join(dir, digest.Hex)
	if exists(file) {
		return file, nil
	}
	return file, extract(img, strings.TrimPrefix(config.Config.Entrypoint[0], "/"), file)
}

// pulled is an image of a registry here.
func pulled(ctx context.Context, image string) (v1.Image, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(ref.Context().RegistryStr()); err != nil || host != loopback {
		return nil, fmt.Errorf("image %s is not in a registry here, and nothing else is pulled", image)
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return nil, fmt.Errorf("cannot pull %s: %w", image, err)
	}
	return img, nil
}

// pullFiles writes the files of an image to a directory.
func pullFiles(ctx context.Context, image, dir string) error {
	img, err := pulled(ctx, image)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // It is only a place.
	files := mutate.Extract(img)
	defer files.Close() //nolint:errcheck // It is only read.
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := path.Join(".", path.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(file, 0o700)
		case tar.TypeReg:
			err = writeFile(root, file, r)
		}
		if err != nil {
			return err
		}
	}
}

// writeFile writes a file with the directories that it is in.
func writeFile(root *os.Root, file string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(file), 0o700); err != nil {
		return err
	}
	w, err := root.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return errors.Join(err, w.Close())
}

// extract writes one file of an image.
func extract(img v1.Image, from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	files := mutate.Extract(img)
	defer files.Close() //nolint:errcheck // It is only read.
	r := tar.NewReader(files)
	for {
		h, err := r.Next()
		if err != nil {
			return fmt.Errorf("cannot find /%s in the image: %w", from, err)
		}
		if strings.TrimPrefix(path.Clean(h.Name), "/") != from {
			continue
		}
		// Beside its place first: half of it is not to be taken for all of it.
		w, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700) //nolint:gosec // It is a program.
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r) //nolint:gosec // An image that was built here.
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		return os.Rename(to+".new", to)
	}
}
