package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	// entrypoint is the binary, which is the only file in the image.
	entrypoint = "/function"
	// user is not root. It is a number, because runAsNonRoot cannot check a name.
	user = "65532:65532"
	// source of the image.
	source = "https://github.com/fusioninfer/" + function
)

// writeImage writes the image of a binary as docker save would.
func (p *project) writeImage(file, binary, arch string) error {
	b, err := os.ReadFile(filepath.Clean(binary))
	if err != nil {
		return fmt.Errorf("cannot read the binary: %w", err)
	}
	img, err := image(b, arch, p.version)
	if err != nil {
		return fmt.Errorf("cannot make the image: %w", err)
	}
	tag, err := name.NewTag(function + ":" + arch)
	if err != nil {
		return fmt.Errorf("cannot name the image: %w", err)
	}
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		return fmt.Errorf("cannot write the image: %w", err)
	}
	return nil
}

// image returns an image with the binary and its metadata.
func image(binary []byte, arch, version string) (v1.Image, error) {
	layer, err := layer(binary)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("cannot add the layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		Entrypoint:   []string{entrypoint},
		User:         user,
		ExposedPorts: map[string]struct{}{"9443/tcp": {}, "8080/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    function,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if version != "" {
		config.Config.Labels["org.opencontainers.image.version"] = version
	}
	return mutate.ConfigFile(img, config)
}

// layer returns a layer with one file, which root owns and which has no time.
func layer(binary []byte) (v1.Layer, error) {
	buf := &bytes.Buffer{}
	w := tar.NewWriter(buf)
	header := &tar.Header{Name: entrypoint[1:], Mode: 0o755, Size: int64(len(binary)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("cannot start the layer: %w", err)
	}
	if _, err := w.Write(binary); err != nil {
		return nil, fmt.Errorf("cannot fill the layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot end the layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	})
}
