package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes all packages. It writes a line for each: the reference with its
// digest, which is what can be signed, and the SBOMs that can be attested of it.
// The lines of an index come first, and then those of its images.
func (p *project) push(ctx context.Context, out io.Writer) error {
	if p.version == "" {
		return errors.New("--version is needed: it is the tag")
	}
	cli, err := p.tool(ctx)
	if err != nil {
		return err
	}
	var files []string
	for _, arch := range p.arch {
		files = append(files, p.functionFile(arch))
	}
	// The Configurations depend on the function.
	if err := p.pushOne(ctx, cli, out, function, files...); err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(configurations)) {
		if err := p.pushOne(ctx, cli, out, configurations[dir], p.configurationFile(dir)); err != nil {
			return err
		}
	}
	return nil
}

// pushOne pushes the files of a package, as one image or as one for each
// architecture.
func (p *project) pushOne(ctx context.Context, cli string, out io.Writer, repository string, files ...string) error {
	ref, err := name.NewTag(fmt.Sprintf("%s/%s:%s", p.registry, repository, p.version))
	if err != nil {
		return fmt.Errorf("cannot push %s: %w", repository, err)
	}
	if err := command(ctx, p.root, nil, cli, "xpkg", "push", "--package-files="+strings.Join(files, ","), ref.Name()); err != nil {
		return err
	}
	pushed, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("cannot read back %s: %w", ref, err)
	}
	if err := list(out, ref, pushed.Digest, files...); err != nil {
		return err
	}
	if !pushed.MediaType.IsIndex() {
		return nil
	}
	return p.listArchitectures(out, ref, pushed)
}

// listArchitectures lists the images in an index. Only the function has several.
func (p *project) listArchitectures(out io.Writer, ref name.Tag, pushed *remote.Descriptor) error {
	index, err := pushed.ImageIndex()
	if err != nil {
		return fmt.Errorf("cannot read the index of %s: %w", ref, err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("cannot read the index of %s: %w", ref, err)
	}
	for _, image := range m.Manifests {
		if image.Platform == nil {
			return fmt.Errorf("the index of %s does not say which architecture %s is for", ref, image.Digest)
		}
		if err := list(out, ref, image.Digest, p.functionFile(image.Platform.Architecture)); err != nil {
			return err
		}
	}
	return nil
}

// list writes one line: the reference, and the names of the SBOMs that are about it.
func list(out io.Writer, ref name.Tag, digest v1.Hash, files ...string) error {
	line := []string{ref.Context().Digest(digest.String()).Name()}
	for _, f := range files {
		line = append(line, filepath.Base(sbomFile(f)))
	}
	_, err := fmt.Fprintln(out, strings.Join(line, " "))
	return err
}
