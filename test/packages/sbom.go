package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"
	"sigs.k8s.io/yaml"
)

// sbomFile is the SBOM of the package in a file.
func sbomFile(file string) string {
	return strings.TrimSuffix(file, ".xpkg") + ".cdx.json"
}

// functionSBOM lists the Go modules in the function's binary, and Go's standard library. It reads
// them from the binary rather than from go.mod.
func (p *project) functionSBOM(binary, arch string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("cannot read what the binary was built from: %w", err)
	}
	hashes, err := hashesOf(binary)
	if err != nil {
		return nil, err
	}
	program := module(&debug.Module{Path: info.Main.Path, Version: p.version})
	program.Type, program.Hashes = cdx.ComponentTypeApplication, hashes
	parts := []cdx.Component{program, module(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(m))
	}
	subject := p.subject(function, map[string]string{"arch": arch})
	return bom(subject, parts, depends(subject, program), depends(program, parts[1:]...)), nil
}

// configurationSBOM lists the packages that a Configuration depends on. It has no code of its own.
func (p *project) configurationSBOM(stage, dir string) (*cdx.BOM, error) {
	b, err := os.ReadFile(filepath.Join(filepath.Clean(stage), dir, "crossplane.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the metadata: %w", err)
	}
	meta := struct {
		Spec struct {
			DependsOn []struct{ Package, Version string }
		}
	}{}
	if err := yaml.Unmarshal(b, &meta); err != nil {
		return nil, fmt.Errorf("cannot parse the metadata: %w", err)
	}
	parts := make([]cdx.Component, 0, len(meta.Spec.DependsOn))
	for _, d := range meta.Spec.DependsOn {
		c := oci(d.Package, nil)
		// The constraint is a range, but a component has a single version.
		c.Properties = &[]cdx.Property{{Name: "crossplane:dependsOn:version", Value: d.Version}}
		parts = append(parts, c)
	}
	subject := p.subject(configurations[dir], nil)
	return bom(subject, parts, depends(subject, parts...)), nil
}

// writeSBOM writes the SBOM of a package beside it. The same package and time give
// the same bytes: the serial number comes from all the rest.
func (p *project) writeSBOM(ctx context.Context, b *cdx.BOM, file string) error {
	var err error
	if b.Metadata.Component.Hashes, err = hashesOf(file); err != nil {
		return err
	}
	if b.Metadata.Timestamp, err = p.sourceTime(ctx); err != nil {
		return err
	}
	unnumbered, err := encode(b)
	if err != nil {
		return err
	}
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, unnumbered).URN()
	numbered, err := encode(b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(sbomFile(file), numbered, 0o644); err != nil {
		return fmt.Errorf("cannot write the SBOM of %s: %w", filepath.Base(file), err)
	}
	return nil
}

func encode(b *cdx.BOM) ([]byte, error) {
	buf := &bytes.Buffer{}
	if err := cdx.NewBOMEncoder(buf, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(b, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("cannot encode the SBOM: %w", err)
	}
	return buf.Bytes(), nil
}

// sourceTime returns the time in SOURCE_DATE_EPOCH, or else that of the commit. An archive of
// the source has neither, so the result is empty.
func (p *project) sourceTime(ctx context.Context) (string, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		cmd.Dir = p.root
		out, err := cmd.Output()
		if err != nil {
			return "", nil //nolint:nilerr // It is no clone, or there is no git.
		}
		seconds = strings.TrimSpace(string(out))
	}
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH must be a number of seconds: %w", err)
	}
	return time.Unix(s, 0).UTC().Format(time.RFC3339), nil
}

// bom is about a subject, and says of each component what it depends on.
func bom(subject cdx.Component, parts []cdx.Component, dependencies ...cdx.Dependency) *cdx.BOM {
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{
		Lifecycles: &[]cdx.Lifecycle{{Phase: cdx.LifecyclePhaseBuild}},
		Tools:      &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "test/packages of " + source}}},
		Supplier:   subject.Supplier,
		Component:  &subject,
	}
	b.Components, b.Dependencies = &parts, &dependencies
	return b
}

func depends(from cdx.Component, on ...cdx.Component) cdx.Dependency {
	refs := make([]string, 0, len(on))
	for _, c := range on {
		refs = append(refs, c.BOMRef)
	}
	return cdx.Dependency{Ref: from.BOMRef, Dependencies: &refs}
}

// subject is a package of the project. Its digest in a registry depends on the
// push, so the attestation names that, and the SBOM the file's.
func (p *project) subject(repository string, qualifiers map[string]string) cdx.Component {
	all := map[string]string{"tag": p.version}
	for k, v := range qualifiers {
		all[k] = v
	}
	c := oci(home+"/"+repository, all)
	c.Version = p.version
	c.Supplier = &cdx.OrganizationalEntity{Name: "FusionInfer maintainers", URL: &[]string{source}}
	c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	return c
}

// oci is a package in a registry.
func oci(repository string, qualifiers map[string]string) cdx.Component {
	all := map[string]string{"repository_url": repository}
	for k, v := range qualifiers {
		if v != "" {
			all[k] = v
		}
	}
	name := path.Base(repository)
	purl := packageurl.NewPackageURL(packageurl.TypeOCI, "", name, "", packageurl.QualifiersFromMap(all), "").ToString()
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeContainer, Name: name, PackageURL: purl}
}

// module is a Go module. What go.sum has of it is no hash of a file, so it is a property.
func module(m *debug.Module) cdx.Component {
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.Trim(path.Dir(m.Path), "."), path.Base(m.Path), m.Version, nil, "").ToString()
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	return c
}

func hashesOf(file string) (*[]cdx.Hash, error) {
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("cannot compute a digest: %w", err)
	}
	sum := sha256.Sum256(b)
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}, nil
}
