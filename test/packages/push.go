package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes all packages, and writes the reference of each with its digest,
// which is what can be signed.
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
	head, err := remote.Head(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("cannot read back %s: %w", ref, err)
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", ref.Context().Name(), head.Digest)
	return err
}
