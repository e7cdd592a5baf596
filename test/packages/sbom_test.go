package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/package-url/packageurl-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestSBOM looks at what every SBOM has to have.
func TestSBOM(t *testing.T) {
	valid := schema(t)
	cases := map[string]struct {
		reason  string
		file    string
		subject string
	}{
		"FunctionAMD64": {
			reason:  "The function has modules, which may differ between architectures.",
			file:    built.functionFile("amd64"),
			subject: function,
		},
		"FunctionARM64": {
			reason:  "Each architecture has an SBOM of its own.",
			file:    built.functionFile("arm64"),
			subject: function,
		},
		"XR": {
			reason:  "A Configuration has packages that it depends on.",
			file:    built.configurationFile("xr"),
			subject: "configuration-inferenceservice",
		},
		"Claim": {
			reason:  "A Configuration has packages that it depends on.",
			file:    built.configurationFile("claim"),
			subject: "configuration-inferenceservice-claims",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			raw := read(t, sbomFile(tc.file))
			if err := valid.Validate(anything(t, raw)); err != nil {
				t.Errorf("\n%s\nthe SBOM breaks the schema of CycloneDX 1.6: %v", tc.reason, err)
			}
			b := parseSBOM(t, raw)
			type about struct{ Spec, Name, Version, SHA256 string }
			digest := sha256.Sum256(read(t, tc.file))
			want := about{Spec: "1.6", Name: tc.subject, Version: version, SHA256: hex.EncodeToString(digest[:])}
			s := b.Metadata.Component
			got := about{Spec: b.SpecVersion.String(), Name: s.Name, Version: s.Version, SHA256: (*s.Hashes)[0].Value}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\nsubject: -want, +got:\n%s", tc.reason, diff)
			}
			if b.SerialNumber == "" {
				t.Errorf("\n%s\nthe SBOM has no serial number", tc.reason)
			}
			checkReferences(t, b)
		})
	}
}

// checkReferences checks that every component has a unique reference, and that another one
// depends on it.
func checkReferences(t *testing.T, b *cdx.BOM) {
	t.Helper()
	known, reached := map[string]bool{b.Metadata.Component.BOMRef: true}, map[string]bool{}
	for _, c := range *b.Components {
		if known[c.BOMRef] {
			t.Errorf("two components are %s", c.BOMRef)
		}
		known[c.BOMRef] = true
	}
	for _, d := range *b.Dependencies {
		for _, ref := range *d.Dependencies {
			if !known[d.Ref] || !known[ref] {
				t.Errorf("%s depends on %s, but one of them is not a component", d.Ref, ref)
			}
			reached[ref] = true
		}
	}
	for _, c := range *b.Components {
		if !reached[c.BOMRef] {
			t.Errorf("nothing depends on %s", c.BOMRef)
		}
	}
}

// TestSBOMModules compares with what Go's own tool says of the packaged binary.
func TestSBOMModules(t *testing.T) {
	for _, arch := range architectures {
		t.Run(arch, func(t *testing.T) {
			binary := contents(t, open(t, built.functionFile(arch)))["function"]
			file := filepath.Join(t.TempDir(), "function")
			if err := os.WriteFile(file, binary, 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range *parseSBOM(t, read(t, sbomFile(built.functionFile(arch)))).Components {
				checkModulePURL(t, c)
				if c.Type == cdx.ComponentTypeApplication {
					digest := sha256.Sum256(binary)
					if diff := cmp.Diff([]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}, *c.Hashes); diff != "" {
						t.Errorf("the binary's digest: -want, +got:\n%s", diff)
					}
				}
				got = append(got, strings.TrimSpace(c.Name+" "+c.Version+" "+sumOf(c)))
			}
			slices.Sort(got)
			if diff := cmp.Diff(linked(t, file), got); diff != "" {
				t.Errorf("modules: -go version -m, +SBOM:\n%s", diff)
			}
		})
	}
}

// linked are the modules in a binary, as go version -m prints them, and Go's own library.
func linked(t *testing.T, file string) []string {
	t.Helper()
	modules := []string{
		"github.com/fusioninfer/function-inferenceservice " + version,
		"stdlib " + strings.TrimPrefix(runtime.Version(), "go"),
	}
	for line := range strings.Lines(output(t, "go", "version", "-m", file)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "dep":
			modules = append(modules, strings.Join(f[1:], " "))
		case "=>":
			// It takes the place of the one before.
			modules[len(modules)-1] = strings.Join(f[1:], " ")
		}
	}
	if len(modules) < 10 {
		t.Fatalf("go version -m lists %d modules: cannot parse what it says", len(modules))
	}
	slices.Sort(modules)
	return modules
}

func sumOf(c cdx.Component) string {
	if c.Properties == nil {
		return ""
	}
	return (*c.Properties)[0].Value
}

func checkModulePURL(t *testing.T, c cdx.Component) {
	t.Helper()
	got, err := packageurl.FromString(c.PackageURL)
	if err != nil {
		t.Errorf("%s has a package URL that cannot be parsed: %v", c.Name, err)
		return
	}
	namespace, name, found := cutLast(c.Name)
	if !found {
		namespace, name = "", c.Name
	}
	want := packageurl.PackageURL{Type: "golang", Namespace: strings.ToLower(namespace), Name: strings.ToLower(name), Version: c.Version}
	got.Qualifiers = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("package URL %s: -want, +got:\n%s", c.PackageURL, diff)
	}
}

func cutLast(path string) (before, after string, found bool) {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// TestSBOMDependencies compares with the metadata in the package.
func TestSBOMDependencies(t *testing.T) {
	for dir := range configurations {
		t.Run(dir, func(t *testing.T) {
			file := built.configurationFile(dir)
			var want, got []string
			for _, doc := range documents(contents(t, open(t, file))["package.yaml"]) {
				for _, d := range decode(t, doc).Spec.DependsOn {
					want = append(want, d.Package+" "+d.Version)
				}
			}
			for _, c := range *parseSBOM(t, read(t, sbomFile(file))).Components {
				purl, err := packageurl.FromString(c.PackageURL)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, purl.Qualifiers.Map()["repository_url"]+" "+sumOf(c))
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("dependencies: -package, +SBOM:\n%s", diff)
			}
		})
	}
}

// TestSchema makes sure that the schema refuses something.
func TestSchema(t *testing.T) {
	raw := read(t, sbomFile(built.configurationFile("xr")))
	broken := bytes.Replace(raw, []byte(`"type": "container"`), []byte(`"type": "crate"`), 1)
	if bytes.Equal(raw, broken) {
		t.Fatal("the SBOM was not made invalid")
	}
	if err := schema(t).Validate(anything(t, broken)); err == nil {
		t.Error("the schema takes a component of a type that there is not")
	}
}

func TestSourceTime(t *testing.T) {
	type want struct {
		time string
		err  bool
	}
	cases := map[string]struct {
		reason string
		epoch  string
		want   want
	}{
		"Epoch": {
			reason: "A build from an archive sets the time of the source.",
			epoch:  "1700000000",
			want:   want{time: "2023-11-14T22:13:20Z"},
		},
		"NoClone": {
			reason: "Without a clone there is no time, because another one would differ between builds.",
		},
		"Garbage": {
			reason: "An invalid time is an error.",
			epoch:  "yesterday",
			want:   want{err: true},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", tc.epoch)
			p := project{root: t.TempDir()}
			got, err := p.sourceTime(t.Context())
			if diff := cmp.Diff(tc.want, want{time: got, err: err != nil}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\ntime: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// schema is that of CycloneDX 1.6, which its library carries.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go"))
	c := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		doc := anything(t, read(t, dir, "schema", name))
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func anything(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func parseSBOM(t *testing.T, b []byte) *cdx.BOM {
	t.Helper()
	sbom := &cdx.BOM{}
	if err := json.Unmarshal(b, sbom); err != nil {
		t.Fatal(err)
	}
	return sbom
}
