package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const (
	function = "function-inferenceservice"
	// home is where the packages are published by default.
	home = "ghcr.io/fusioninfer"
)

// architectures that the function is published for.
var architectures = []string{"amd64", "arm64"}

// configurations are the packages of the API, by the directory below package/.
var configurations = map[string]string{
	"xr":    "configuration-inferenceservice",
	"claim": "configuration-inferenceservice-claims",
}

// shown are the examples in the Configurations.
var shown = []string{
	"quickstart",
	"story-1-monolithic",
	"story-2-pd",
	"story-3-multinode",
	"story-4-pd-multinode",
}

// functionFile is the package of the function for an architecture.
func (p *project) functionFile(arch string) string {
	return filepath.Join(p.dist, fmt.Sprintf("%s-%s.xpkg", function, arch))
}

func (p *project) configurationFile(dir string) string {
	return filepath.Join(p.dist, configurations[dir]+".xpkg")
}

// build writes all packages, and an SBOM beside each.
func (p *project) build(ctx context.Context) error {
	cli, err := p.tool(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.dist, 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of the packages: %w", err)
	}
	for dir := range configurations {
		if err := p.buildConfiguration(ctx, cli, dir); err != nil {
			return fmt.Errorf("cannot build the package of package/%s: %w", dir, err)
		}
	}
	for _, arch := range p.arch {
		if err := p.buildFunction(ctx, cli, arch); err != nil {
			return fmt.Errorf("cannot build the function's package for %s: %w", arch, err)
		}
	}
	return nil
}

// buildFunction puts the metadata, the inputs' CRDs and the image together.
func (p *project) buildFunction(ctx context.Context, cli, arch string) error {
	tmp, err := os.MkdirTemp("", function)
	if err != nil {
		return fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // Nothing is lost.
	stage := filepath.Join(tmp, "package")
	if err := p.stage(stage, ".", "input"); err != nil {
		return err
	}
	binary, image := filepath.Join(tmp, "function"), filepath.Join(tmp, "image.tar")
	if err := p.compile(ctx, binary, arch); err != nil {
		return err
	}
	if err := p.writeImage(image, binary, arch); err != nil {
		return err
	}
	if err := p.xpkg(ctx, cli, stage, filepath.Join(tmp, "none"), p.functionFile(arch), "--embed-runtime-image-tarball="+image); err != nil {
		return err
	}
	sbom, err := p.functionSBOM(binary, arch)
	if err != nil {
		return err
	}
	return p.writeSBOM(ctx, sbom, p.functionFile(arch))
}

// buildConfiguration puts the metadata, the XRD, the Composition and examples
// together.
func (p *project) buildConfiguration(ctx context.Context, cli, dir string) error {
	tmp, err := os.MkdirTemp("", configurations[dir])
	if err != nil {
		return fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // Nothing is lost.
	stage, examples := filepath.Join(tmp, "package"), filepath.Join(tmp, "shown")
	if err := p.stage(stage, dir); err != nil {
		return err
	}
	if err := p.stageExamples(examples); err != nil {
		return err
	}
	if err := p.xpkg(ctx, cli, stage, examples, p.configurationFile(dir)); err != nil {
		return err
	}
	sbom, err := p.configurationSBOM(stage, dir)
	if err != nil {
		return err
	}
	return p.writeSBOM(ctx, sbom, p.configurationFile(dir))
}

// xpkg calls crossplane xpkg build, which parses and lints.
func (p *project) xpkg(ctx context.Context, cli, stage, examples, file string, more ...string) error {
	args := append([]string{"xpkg", "build", "--package-root=" + stage, "--examples-root=" + examples, "--package-file=" + file}, more...)
	return command(ctx, p.root, nil, cli, args...)
}
