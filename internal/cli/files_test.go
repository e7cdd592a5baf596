package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocuments reads all of a file, or says what it does not read.
func TestDocuments(t *testing.T) {
	const (
		a = "{apiVersion: v1, kind: A, metadata: {name: a}}"
		b = "apiVersion: v1\nkind: B\nmetadata: {name: b}\n"
	)
	cases := map[string]struct {
		reason string
		text   string
		want   string
		err    string
	}{
		"Separators":  {reason: "Empty documents are skipped.", text: "---\n" + a + "\n---\n# nothing\n---\n" + b, want: "A B"},
		"End":         {reason: "What follows the end of a document is another one.", text: a + "\n...\n" + b + "... # end\n---\n" + a, want: "A B A"},
		"EndOfFile":   {reason: "Nothing may follow.", text: b + "...", want: "B"},
		"Windows":     {reason: "Lines may end with a carriage return.", text: strings.ReplaceAll(b+"...\n"+b, "\n", "\r\n"), want: "B B"},
		"NotTheEnd":   {reason: "Points in a text end nothing.", text: b + "data:\n  a: |\n    ...\n    more\n  b: ...\n", want: "B"},
		"Comment":     {reason: "A comment may follow the last bracket.", text: "# first\n\n" + a + " # last\n# more\n", want: "A"},
		"JSON":        {reason: "JSON is YAML, with tabs as well.", text: "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"A\"\n}\n", want: "A"},
		"TwoOfJSON":   {reason: "The second one would not be read.", text: "# first\n" + a + "\n" + a, err: "document 1: another one follows its last bracket: write a line --- between them"},
		"AfterTheEnd": {reason: "Nor would what is no document.", text: a + "}", err: "document 1: another one follows its last bracket: write a line --- between them"},
		"Labels": {
			reason: "A label is a string, and YAML makes something else of it without quotes.",
			text:   a + "\n---\napiVersion: v1\nkind: B\nmetadata: {name: b, namespace: team, labels: {tier: one, gpu: yes}}\n",
			err:    `document 2: B team/b: metadata.labels: the value of "gpu" is true, and all values must be strings: put it in quotes`,
		},
		"Annotations": {
			reason: "So is an annotation, also of an item.",
			text:   "apiVersion: v1\nkind: List\nitems:\n- " + a + "\n- {apiVersion: v1, kind: B, metadata: {name: b, annotations: {weight: 10}}}\n",
			err:    `document 1: B b: metadata.annotations: the value of "weight" is 10, and all values must be strings: put it in quotes`,
		},
		"ListOfLabels": {
			reason: "Labels are a map.",
			text:   "apiVersion: v1\nkind: B\nmetadata: {name: b, labels: [a]}\n",
			err:    `document 1: B b: metadata.labels: [a] must be a map of strings`,
		},
		"ItemWithoutKind": {
			reason: "An item that says not what it is would count for nothing.",
			text:   a + "\n---\napiVersion: v1\nkind: List\nitems:\n- " + a + "\n- {apiVersion: v1, metadata: {name: b}}\n",
			err:    "document 2: item 2 has no apiVersion or no kind",
		},
		"ItemWithoutVersion": {
			reason: "So would one of an unknown version.",
			text:   "apiVersion: v1\nkind: List\nitems:\n- {kind: A, metadata: {name: b}}\n",
			err:    "document 1: item 1 has no apiVersion or no kind",
		},
		"EmptyItem": {
			reason: "Nothing is no item.",
			text:   "apiVersion: v1\nkind: List\nitems:\n- {}\n",
			err:    "document 1: item 1 has no apiVersion or no kind",
		},
		"EmptyList": {reason: "kubectl get finds nothing, and says so.", text: "apiVersion: v1\nkind: List\nitems: []\n"},
		"Nothing":   {reason: "A text without documents may be a mistake.", text: "# nothing\n---\n", err: "it has no documents"},
		"NoValue":   {reason: "An API server takes it for an empty one.", text: "apiVersion: v1\nkind: B\nmetadata: {name: b, labels: {a: }}\n", want: "B"},
		"NoLabels":  {reason: "Without any, there is nothing to read.", text: "apiVersion: v1\nkind: B\nmetadata: {name: b, labels: , annotations: {}}\n", want: "B"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all, err := documents([]byte(tc.text))
			var kinds []string
			for _, o := range all {
				kinds = append(kinds, o.GetKind())
			}
			got := ""
			if err != nil {
				kinds, got = nil, err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.err}, []string{strings.Join(kinds, " "), got}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDirectory reads the manifests of a directory, and says what else may be meant.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"a.yaml": "{apiVersion: v1, kind: A, metadata: {name: a}}", "b.json": `{"apiVersion": "v1", "kind": "B", "metadata": {"name": "b"}}`,
		"d.yaml": "# nothing\n", "e.yaml": "{apiVersion: v1, kind: List, items: []}", "package.json": `{"name": "x"}`, "README.md": "text", "more/c.yaml": "{apiVersion: v1, kind: C, metadata: {name: c}}",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	warnings := strings.Builder{}
	f := &files{err: &warnings}
	all, err := f.objects(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(all))
	for i, o := range all {
		got[i] = o.GetKind()
	}
	if diff := cmp.Diff([]string{"A", "B"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	want := "warning: \"d.yaml\" is not read, because it is a file without documents\nwarning: \"more\" is not read, because it is a directory in a directory: pass it by itself\nwarning: \"package.json\" is not read, because it is no Kubernetes object\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(warnings.String(), dir+"/", "")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestClusterScoped reads objects of cluster-scoped kinds without the namespace that an API server drops.
func TestClusterScoped(t *testing.T) {
	of := func(apiVersion, kind string) string {
		return "---\n{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: a, namespace: team}}\n"
	}
	cases := map[string]struct {
		reason, apiVersion, kind string
		want                     string
	}{
		"Cluster": {"A cluster belongs to no namespace.", "fusioninfer.io/v1alpha1", "InferenceCluster", ""},
		"Claimed": {"Nor does the composite resource behind a claim.", "fusioninfer.io/v1alpha1", "XInferenceService", ""},
		"Model":   {"That of a model is one, too.", "fusioninfer.io/v1alpha1", "XInferenceModel", ""},
		"Cache":   {"So is that of a cache.", "fusioninfer.io/v1alpha1", "XModelCache", ""},
		"Service": {"A service belongs to a namespace.", "fusioninfer.io/v1alpha1", "InferenceService", "team"},
		"Other":   {"Of a kind of others, nobody knows it.", "example.org/v1", "InferenceCluster", "team"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inDirectory(t, map[string]string{"d/a.yaml": of(tc.apiVersion, tc.kind)})
			for _, path := range []string{"d", "d/a.yaml"} {
				all, err := (&files{}).objects(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, all[0].GetNamespace()); diff != "" {
					t.Errorf("%s: %s\n-want, +got:\n%s", path, tc.reason, diff)
				}
			}
		})
	}
}
