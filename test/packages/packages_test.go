package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"
)

const version = "v0.0.1-test"

// built are the packages that all tests look at.
var built project

func TestMain(m *testing.M) {
	os.Exit(withPackages(m))
}

func withPackages(m *testing.M) int {
	dist, err := os.MkdirTemp("", "dist")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dist) //nolint:errcheck // Nothing is lost.
	built = project{root: filepath.Join("..", ".."), dist: dist, arch: architectures, version: version}
	if err := errors.Join(built.locate(), built.build(context.Background())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// An object has the fields of a package's object that the tests check.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Crossplane   struct{ Version string }
		Capabilities []string
		DependsOn    []struct{ APIVersion, Kind, Package, Version string }
	} `json:"spec"`
}

func TestContents(t *testing.T) {
	type want struct {
		kinds        []string
		meta         string
		capabilities []string
		dependency   string
		examples     []string
	}
	functionContents := want{
		kinds:        []string{"Function meta.pkg.crossplane.io/v1", "CustomResourceDefinition apiextensions.k8s.io/v1", "CustomResourceDefinition apiextensions.k8s.io/v1", "CustomResourceDefinition apiextensions.k8s.io/v1"},
		meta:         function,
		capabilities: []string{"composition"},
	}
	cases := map[string]struct {
		reason string
		file   string
		want   want
	}{
		"FunctionAMD64": {
			reason: "A function has its metadata and the CRDs of its inputs.",
			file:   built.functionFile("amd64"),
			want:   functionContents,
		},
		"FunctionARM64": {
			reason: "Crossplane reads the package of any architecture, so all have the same contents.",
			file:   built.functionFile("arm64"),
			want:   functionContents,
		},
		"XR": {
			reason: "The namespaced API has a v2 XRD and its Composition, and depends on this version of the function.",
			file:   built.configurationFile("xr"),
			want: want{
				kinds: []string{
					"Configuration meta.pkg.crossplane.io/v1",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
					// Those of InferenceClusters and InferenceRoles.
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
				},
				meta:       "configuration-inferenceservice",
				dependency: "Function ghcr.io/fusioninfer/function-inferenceservice >=" + version,
				examples:   shown,
			},
		},
		"Claim": {
			reason: "Claims need a v1 XRD.",
			file:   built.configurationFile("claim"),
			want: want{
				kinds: []string{
					"Configuration meta.pkg.crossplane.io/v1",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v1",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v1",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v1",
					// Those of InferenceClusters and InferenceRoles, which nobody claims.
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
					"Composition apiextensions.crossplane.io/v1",
					"CompositeResourceDefinition apiextensions.crossplane.io/v2",
				},
				meta:       "configuration-inferenceservice-claims",
				dependency: "Function ghcr.io/fusioninfer/function-inferenceservice >=" + version,
				examples:   shown,
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			layers := contents(t, open(t, tc.file))
			got := want{}
			for _, doc := range documents(layers["package.yaml"]) {
				o := decode(t, doc)
				got.kinds = append(got.kinds, o.Kind+" "+o.APIVersion)
				if strings.HasPrefix(o.APIVersion, "meta.pkg.crossplane.io/") {
					got.meta, got.capabilities = o.Metadata.Name, o.Spec.Capabilities
					for _, d := range o.Spec.DependsOn {
						got.dependency = d.Kind + " " + d.Package + " " + d.Version
					}
					for _, a := range []string{"maintainer", "source", "license", "description", "readme", "iconURI"} {
						if o.Metadata.Annotations["meta.crossplane.io/"+a] == "" {
							t.Errorf("the package has no annotation meta.crossplane.io/%s", a)
						}
					}
				}
			}
			for _, doc := range documents(layers[".up/examples.yaml"]) {
				if o := decode(t, doc); o.Kind != "InferenceService" {
					t.Errorf("an example is of kind %q: want InferenceService, which users of both Configurations write", o.Kind)
				}
				got.examples = append(got.examples, exampleOf(t, doc))
			}
			slices.Sort(got.kinds)
			slices.Sort(tc.want.kinds)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\ncontents: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestImage runs what is in the image, where the machine can.
func TestImage(t *testing.T) {
	for _, arch := range architectures {
		t.Run(arch, func(t *testing.T) {
			img := open(t, built.functionFile(arch))
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			type facts struct {
				OS, Architecture, User, Version string
				Entrypoint                      []string
				Created                         time.Time
			}
			want := facts{OS: "linux", Architecture: arch, User: "65532:65532", Version: version, Entrypoint: []string{"/function"}, Created: time.Unix(0, 0).UTC()}
			got := facts{
				OS: config.OS, Architecture: config.Architecture, User: config.Config.User,
				Version:    config.Config.Labels["org.opencontainers.image.version"],
				Entrypoint: config.Config.Entrypoint, Created: config.Created.UTC(),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("image: -want, +got:\n%s", diff)
			}

			layers := contents(t, img)
			files := make([]string, 0, len(layers))
			for f := range layers {
				files = append(files, f)
			}
			slices.Sort(files)
			// A shell, or anything else that could be run, would be one more.
			if diff := cmp.Diff([]string{"function", "package.yaml"}, files); diff != "" {
				t.Errorf("files: -want, +got:\n%s", diff)
			}
			checkBinary(t, layers["function"], arch)
		})
	}
}

func checkBinary(t *testing.T, binary []byte, arch string) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
		t.Errorf("the binary is for %s, want %s", f.Machine, want)
	}
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
		t.Errorf("the binary needs libraries (%v), and the image has none (%v)", libs, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a loader, and the image has none")
		}
	}
	if arch != runtime.GOARCH || runtime.GOOS != "linux" {
		return
	}
	path := filepath.Join(t.TempDir(), "function")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	if out := output(t, path, "--version"); out != version+"\n" {
		t.Errorf("--version says %q, want %q", out, version)
	}
	xr := filepath.Join(built.root, "example", "quickstart", "xr.yaml")
	if out := output(t, path, "render", xr); !strings.Contains(out, "kind: LeaderWorkerSet") {
		t.Errorf("render of the quickstart has no LeaderWorkerSet:\n%s", out)
	}
}

// TestPush goes through a registry, as Crossplane gets packages.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	p := built
	p.registry = strings.TrimPrefix(server.URL, "http://") + "/fusioninfer"
	out := &strings.Builder{}
	if err := p.push(t.Context(), out); err != nil {
		t.Fatal(err)
	}

	pushed, sboms := map[string]string{}, map[string]string{}
	for line := range strings.Lines(out.String()) {
		reference, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		ref, err := name.NewDigest(reference)
		if err != nil {
			t.Fatalf("a line of push does not start with a reference: %v", err)
		}
		repository := strings.TrimPrefix(ref.RepositoryStr(), "fusioninfer/")
		if pushed[repository] == "" {
			pushed[repository] = ref.DigestStr()
		}
		sboms[ref.DigestStr()] = of
	}
	want, about := map[string]string{}, map[string]string{}
	for repository, of := range map[string]string{
		function:                function + "-amd64.cdx.json " + function + "-arm64.cdx.json",
		configurations["xr"]:    configurations["xr"] + ".cdx.json",
		configurations["claim"]: configurations["claim"] + ".cdx.json",
	} {
		head, err := remote.Head(tag(t, p.registry, repository))
		if err != nil {
			t.Fatal(err)
		}
		want[repository], about[head.Digest.String()] = head.Digest.String(), of
	}
	for _, arch := range architectures {
		img, err := remote.Image(tag(t, p.registry, function), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatalf("cannot pull the function for %s: %v", arch, err)
		}
		digest, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		about[digest.String()] = function + "-" + arch + ".cdx.json"
	}
	if diff := cmp.Diff(want, pushed); diff != "" {
		t.Errorf("the first digest of each repository is the tag's: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(about, sboms); diff != "" {
		t.Errorf("SBOMs by digest: -want, +got:\n%s", diff)
	}

	for dir, repository := range configurations {
		img, err := remote.Image(tag(t, p.registry, repository))
		if err != nil {
			t.Fatal(err)
		}
		checkPulled(t, p.configurationFile(dir), img)
	}
	for _, arch := range architectures {
		img, err := remote.Image(tag(t, p.registry, function), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatalf("cannot pull the function for %s: %v", arch, err)
		}
		checkPulled(t, p.functionFile(arch), img)
	}
}

// checkPulled compares all layers, and checks that the one with package.yaml has the annotation
// by which Crossplane finds it.
func checkPulled(t *testing.T, file string, pulled v1.Image) {
	t.Helper()
	// Digests are compared, because a diff of binaries would take minutes.
	if diff := cmp.Diff(contents(t, open(t, file)), contents(t, pulled), cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("%s: -built, +pulled:\n%s", filepath.Base(file), diff)
	}
	m, err := pulled.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	marked := slices.ContainsFunc(m.Layers, func(d v1.Descriptor) bool { return d.Annotations["io.crossplane.xpkg"] == "base" })
	if !marked {
		t.Errorf("%s: no layer has the annotation of the package", filepath.Base(file))
	}
}

// TestReproducible builds the packages again into another directory. The files must be equal.
func TestReproducible(t *testing.T) {
	again := built
	again.dist = t.TempDir()
	if err := again.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(built.dist)
	if err != nil {
		t.Fatal(err)
	}
	// Each has its SBOM.
	if want := 2 * (len(architectures) + len(configurations)); len(files) != want {
		t.Errorf("%d files were built, want %d", len(files), want)
	}
	for _, f := range files {
		if first, second := read(t, built.dist, f.Name()), read(t, again.dist, f.Name()); !bytes.Equal(first, second) {
			t.Errorf("%s: two builds differ", f.Name())
		}
	}
}

// TestLint shows that the build refuses packages with objects that they may not contain.
func TestLint(t *testing.T) {
	cli, err := built.tool(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		dirs   []string
		add    string
		want   string
	}{
		"CompositionInFunction": {
			reason: "The package of a Function may contain only CRDs.",
			dirs:   []string{".", "input"},
			add:    filepath.Join("xr", "composition.yaml"),
			want:   "object is not a CRD",
		},
		"RBACInConfiguration": {
			reason: "A Configuration may not contain permissions.",
			dirs:   []string{"xr"},
			add:    filepath.Join("install", "rbac.yaml"),
			want:   "rbac.authorization.k8s.io",
		},
		"CRDInConfiguration": {
			reason: "A Configuration may not contain CRDs.",
			dirs:   []string{"claim"},
			add:    filepath.Join("input", "fn.fusioninfer.io_inputs.yaml"),
			want:   "object is not a",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			stage := t.TempDir()
			if err := built.stage(stage, tc.dirs...); err != nil {
				t.Fatal(err)
			}
			if err := built.copy(filepath.Join(built.root, "package", tc.add), filepath.Join(stage, "added.yaml")); err != nil {
				t.Fatal(err)
			}
			err := built.xpkg(t.Context(), cli, stage, filepath.Join(stage, "none"), filepath.Join(stage, "out.xpkg"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func tag(t *testing.T, registry, repository string) name.Tag {
	t.Helper()
	ref, err := name.NewTag(registry + "/" + repository + ":" + version)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func open(t *testing.T, file string) v1.Image {
	t.Helper()
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatalf("cannot open %s: %v", file, err)
	}
	return img
}

// contents are the files of all layers. None may hide another.
func contents(t *testing.T, img v1.Image) map[string][]byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if files[h.Name] != nil {
				t.Errorf("%s is in two layers", h.Name)
			}
			if files[h.Name], err = io.ReadAll(tr); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// documents of a YAML stream. None of them has the separator inside.
func documents(stream []byte) []string {
	var docs []string
	for doc := range strings.SplitSeq(string(stream), "---\n") {
		if strings.TrimSpace(doc) != "" {
			docs = append(docs, doc)
		}
	}
	return docs
}

func decode(t *testing.T, doc string) object {
	t.Helper()
	o := object{}
	if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
		t.Fatalf("cannot parse a document of the package: %v\n%s", err, doc)
	}
	return o
}

// exampleOf finds the example that a document is.
func exampleOf(t *testing.T, doc string) string {
	t.Helper()
	var got any
	if err := yaml.Unmarshal([]byte(doc), &got); err != nil {
		t.Fatal(err)
	}
	for _, n := range shown {
		var want any
		if err := yaml.Unmarshal(read(t, built.root, "example", n, "xr.yaml"), &want); err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(want, got) {
			return n
		}
	}
	return doc
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("cannot run %s %s: %v", filepath.Base(name), strings.Join(args, " "), err)
	}
	return string(out)
}
