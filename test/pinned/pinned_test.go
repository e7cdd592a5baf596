// Package pinned checks that workflows and Dockerfiles pin actions and images by commit or digest.
package pinned

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestPinned checks all workflows and Dockerfiles. The owner of a tag, or whoever stole it, can move
// it. A commit and a digest cannot be moved.
func TestPinned(t *testing.T) {
	t.Chdir("../..")
	var workflows, dockerfiles int
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var problems []string
		switch {
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "dist"}, path):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case strings.HasPrefix(path, ".github/") && slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(path)):
			workflows++
			problems = unpinnedActions(readFile(t, path))
		case strings.Contains(d.Name(), "Dockerfile") || strings.Contains(d.Name(), "Containerfile"):
			dockerfiles++
			problems = unpinnedImages(readFile(t, path))
		}
		for _, p := range problems {
			t.Errorf("%s: %s", path, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if workflows < 2 || dockerfiles < 1 {
		t.Errorf("found %d workflows and %d Dockerfiles: looked in the wrong place", workflows, dockerfiles)
	}
}

func TestUnpinnedActions(t *testing.T) {
	const sha = "0123456789abcdef0123456789abcdef01234567"
	cases := map[string]struct {
		reason   string
		workflow string
		want     []string
	}{
		"Pinned": {
			reason:   "A commit with its version is pinned, and so are actions in the repository.",
			workflow: "jobs: {}\nsteps:\n- uses: actions/checkout@" + sha + " # v5.0.0\n- uses: ./.github/actions/here\n",
		},
		"Tag": {
			reason:   "A tag is not pinned.",
			workflow: "steps:\n- uses: actions/checkout@v5.0.0\n",
			want:     []string{"actions/checkout@v5.0.0 must be pinned: owner/name@COMMIT # vX.Y.Z"},
		},
		"Short": {
			reason:   "A short commit is not pinned: another commit may have the same prefix.",
			workflow: "steps:\n- uses: actions/checkout@0123456 # v5.0.0\n",
			want:     []string{"actions/checkout@0123456 must be pinned: owner/name@COMMIT # vX.Y.Z"},
		},
		"NoVersion": {
			reason:   "A commit needs its version as a comment, for readers and for tools that update it.",
			workflow: "steps:\n- uses: actions/checkout@" + sha + "\n",
			want:     []string{"actions/checkout@" + sha + " must be pinned: owner/name@COMMIT # vX.Y.Z"},
		},
		"Flow": {
			reason:   "Other forms of YAML are checked, too.",
			workflow: "steps: [{uses: actions/checkout@v5}]\n",
			want:     []string{"actions/checkout@v5 must be pinned: owner/name@COMMIT # vX.Y.Z"},
		},
		"Image": {
			reason:   "An image of a step must be pinned.",
			workflow: "steps:\n- uses: docker://alpine:3\n",
			want:     []string{"docker://alpine:3 must be pinned: owner/name@COMMIT # vX.Y.Z"},
		},
		"Container": {
			reason:   "Images of a job and of its services must be pinned.",
			workflow: "jobs:\n  a:\n    container: node:22\n    services:\n      db:\n        image: postgres:18\n",
			want:     []string{"the image node:22 must have its digest", "the image postgres:18 must have its digest"},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unpinnedActions(tc.workflow)); diff != "" {
				t.Errorf("\n%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnpinnedImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	cases := map[string]struct {
		reason     string
		dockerfile string
		want       []string
	}{
		"Pinned": {
			reason:     "A digest, an earlier stage and scratch are pinned.",
			dockerfile: "FROM --platform=$BUILDPLATFORM golang:1.26" + digest + " AS build\nfrom build AS test\nFROM scratch\nCOPY --from=build /a /a\nCOPY --from=0 /b /b\n",
		},
		"Tag": {
			reason:     "A tag is not pinned.",
			dockerfile: "FROM golang:1.26 AS build\n",
			want:       []string{"the image golang:1.26 must have its digest"},
		},
		"Alike": {
			reason:     "A stage cannot be its own image: only earlier stages are pinned.",
			dockerfile: "FROM golang AS golang\n",
			want:       []string{"the image golang must have its digest"},
		},
		"Argument": {
			reason:     "An image from an argument is not pinned.",
			dockerfile: "ARG BASE=golang:1.26" + digest + "\nFROM ${BASE}\n",
			want:       []string{"the image ${BASE} must have its digest"},
		},
		"Copied": {
			reason:     "Images of COPY and mounts must be pinned.",
			dockerfile: "FROM scratch\nCOPY --from=alpine:3 /a /a\nRUN --mount=type=bind,from=busybox,target=/b true\n",
			want:       []string{"the image alpine:3 must have its digest", "the image busybox must have its digest"},
		},
		"Frontend": {
			reason:     "The frontend must be pinned: it runs the whole build.",
			dockerfile: "# syntax=docker/dockerfile:1\nFROM scratch\n",
			want:       []string{"the image docker/dockerfile:1 must have its digest"},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unpinnedImages(tc.dockerfile)); diff != "" {
				t.Errorf("\n%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

var (
	pinnedAction = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`)
	pinnedImage  = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	frontend     = regexp.MustCompile(`(?i)^#\s*syntax\s*=\s*(\S+)`)
	stage        = regexp.MustCompile(`(?i)^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?`)
	copied       = regexp.MustCompile(`(?:--|,)from=([^\s,]+)`)
)

// unpinnedActions returns the problems of a workflow.
func unpinnedActions(workflow string) []string {
	var doc any
	if err := yaml.Unmarshal([]byte(workflow), &doc); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, uses := range values(doc, "uses") {
		// Actions in the repository are pinned by it.
		if strings.HasPrefix(uses, "./") {
			continue
		}
		// YAML decoding drops comments, so the version is searched in the text.
		commented := regexp.MustCompile(`(?m)uses:\s+` + regexp.QuoteMeta(uses) + ` # v\d+\.\d+\.\d+$`)
		if !pinnedAction.MatchString(uses) || !commented.MatchString(workflow) {
			problems = append(problems, uses+" must be pinned: owner/name@COMMIT # vX.Y.Z")
		}
	}
	for _, image := range append(values(doc, "container"), values(doc, "image")...) {
		problems = append(problems, unpinnedImage(image)...)
	}
	return problems
}

// values returns the strings of a key, at any depth of a document.
func values(doc any, key string) []string {
	var found []string
	switch d := doc.(type) {
	case map[string]any:
		for k, v := range d {
			if s, ok := v.(string); ok && k == key {
				found = append(found, s)
			}
			found = append(found, values(v, key)...)
		}
	case []any:
		for _, v := range d {
			found = append(found, values(v, key)...)
		}
	}
	slices.Sort(found)
	return found
}

// unpinnedImages returns the problems of a Dockerfile.
func unpinnedImages(dockerfile string) []string {
	var problems []string
	// A stage can be named by its name or its number after its FROM.
	known := map[string]bool{"scratch": true}
	check := func(image string) {
		if !known[image] {
			problems = append(problems, unpinnedImage(image)...)
		}
	}
	stages := 0
	for line := range strings.Lines(dockerfile) {
		if m := frontend.FindStringSubmatch(line); m != nil {
			check(m[1])
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, m := range copied.FindAllStringSubmatch(line, -1) {
			check(m[1])
		}
		if m := stage.FindStringSubmatch(line); m != nil {
			check(m[1])
			known[strconv.Itoa(stages)], known[m[2]] = true, true
			stages++
		}
	}
	return problems
}

func unpinnedImage(image string) []string {
	if pinnedImage.MatchString(image) {
		return nil
	}
	return []string{"the image " + image + " must have its digest"}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
