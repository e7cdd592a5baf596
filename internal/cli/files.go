package cli

import (
	"bufio"
	"bytes"
	encodingjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// An object is a document that was read, or that will be written.
type object = unstructured.Unstructured

// files reads files. A path - is standard input, which can be read once.
type files struct {
	stdin io.Reader
	used  bool
	// err gets warnings of what is not read.
	err io.Writer
}

// extensions are those of the files of a directory that are read. Other files are something else.
var extensions = []string{".yaml", ".yml", ".json"}

// A fileObject is an object, and the file that has it.
type fileObject struct {
	object

	file string
}

// objects reads all documents of a file, or of the YAML and JSON files in a directory.
func (f *files) objects(path string) ([]fileObject, error) {
	if i, err := os.Stat(path); err == nil && i.IsDir() {
		return f.directory(path)
	}
	b, err := f.read(path)
	if err != nil {
		return nil, err
	}
	docs, err := documents(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	all := make([]fileObject, 0, len(docs))
	for _, o := range docs {
		withoutNamespace(o)
		all = append(all, fileObject{o, path})
	}
	return all, nil
}

// one reads a file that has exactly one document.
func (f *files) one(path string) (object, error) {
	all, err := f.objects(path)
	if err != nil {
		return object{}, err
	}
	if len(all) != 1 {
		return object{}, fmt.Errorf("cannot read %q: it has %d documents, and must have one", path, len(all))
	}
	return all[0].object, nil
}

func (f *files) directory(dir string) ([]fileObject, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	var all []fileObject
	none := true
	for _, e := range entries {
		if e.IsDir() {
			f.skips(filepath.Join(dir, e.Name()), "a directory in a directory: pass it by itself")
			continue
		}
		if !slices.Contains(extensions, filepath.Ext(e.Name())) {
			continue
		}
		more, err := f.objects(filepath.Join(dir, e.Name()))
		if filepath.Ext(e.Name()) == ".json" && errors.Is(err, errNoObject) {
			f.skips(filepath.Join(dir, e.Name()), "no Kubernetes object")
			continue
		}
		if errors.Is(err, errNoDocuments) {
			f.skips(filepath.Join(dir, e.Name()), "a file without documents")
			continue
		}
		if err != nil {
			return nil, err
		}
		none, all = false, append(all, more...)
	}
	if none {
		return nil, fmt.Errorf("cannot read %q: the directory has no file with documents that ends with %s", dir, strings.Join(extensions, ", "))
	}
	return all, nil
}

// skips warns of what is not read in a directory: it would be missing without a word. Hidden files are no manifests.
func (f *files) skips(path, what string) {
	if !strings.HasPrefix(filepath.Base(path), ".") {
		_, _ = fmt.Fprintf(f.err, "warning: %q is not read, because it is %s\n", path, what)
	}
}

func (f *files) read(path string) ([]byte, error) {
	if path != "-" {
		b, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return nil, unreadable(path, err)
		}
		return b, nil
	}
	if f.used {
		return nil, errors.New("cannot read standard input (-) twice")
	}
	f.used = true
	b, err := io.ReadAll(f.stdin)
	if err != nil {
		return nil, fmt.Errorf("cannot read standard input: %w", err)
	}
	return b, nil
}

// unreadable wraps an error without repeating the path that a PathError has.
func unreadable(path string, err error) error {
	if p := (&fs.PathError{}); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("cannot read %q: %w", path, err)
}

// endOfDocument is a line that ends a document. What follows it is another one, and the decoder would not read that.
var endOfDocument = regexp.MustCompile(`(?m)^\.\.\.(?:[ \t].*)?\r?$`)

// errNoDocuments is what a text is that has only comments, or nothing. A List without items is a document: kubectl get writes
// it where there are none.
var errNoDocuments = errors.New("it has no documents")

// documents reads a stream of YAML. It skips empty documents, and replaces a List by its
// items.
func documents(b []byte) ([]object, error) {
	b = endOfDocument.ReplaceAll(b, []byte("---"))
	r := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	var all []object
	none := true
	for n := 1; ; n++ {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			if none {
				return nil, errNoDocuments
			}
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		o, err := document(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		items, err := itemsOf(o)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		none, all = none && o.Object == nil, append(all, items...)
	}
}

// itemsOf returns the items of a List, or the object itself.
func itemsOf(o object) ([]object, error) {
	if o.Object == nil {
		return nil, nil
	}
	all := []object{o}
	if o.IsList() {
		list, err := o.ToList()
		if err != nil {
			return nil, err
		}
		all = list.Items
		for i := range all {
			if all[i].GetAPIVersion() == "" || all[i].GetKind() == "" {
				return nil, fmt.Errorf("item %d has no apiVersion or no kind", i+1)
			}
		}
	}
	for _, o := range all {
		if err := onlyStrings(o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), identityOf(o).nice(), err)
		}
	}
	return all, nil
}

// onlyStrings refuses labels and annotations that are no strings, as an API server does. Whoever reads the others here would
// find none of them.
func onlyStrings(o object) error {
	for _, field := range []string{"labels", "annotations"} {
		value, exists, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", field)
		texts, is := value.(map[string]any)
		if exists && !is && value != nil {
			return fmt.Errorf("metadata.%s: %v must be a map of strings", field, value)
		}
		for _, k := range slices.Sorted(maps.Keys(texts)) {
			if texts[k] == nil { // So it is for an API server.
				texts[k] = ""
			}
			if _, is := texts[k].(string); !is {
				return fmt.Errorf("metadata.%s: the value of %q is %s, and all values must be strings: put it in quotes", field, k, jsonOf(texts[k]))
			}
		}
	}
	return nil
}

// errNoObject is what a document is that is no object. Files of other tools are JSON, too.
var errNoObject = errors.New("not a Kubernetes object")

func document(y []byte) (object, error) {
	b, err := yaml.YAMLToJSONStrict(y)
	if err != nil {
		return object{}, err
	}
	if string(b) == "null" {
		return object{}, nil
	}
	o := object{}
	if err := json.Unmarshal(b, &o.Object); err != nil {
		return object{}, errNoObject
	}
	if o.GetAPIVersion() == "" || o.GetKind() == "" {
		return object{}, fmt.Errorf("%w: it has no apiVersion or no kind", errNoObject)
	}
	return o, onlyDocument(y)
}

// onlyDocument refuses what follows the last bracket of a document that begins with one. The decoder would not read it.
func onlyDocument(y []byte) error {
	if !begins.Match(y) || encodingjson.Valid(y) {
		return nil
	}
	d, n := goyaml.NewDecoder(bytes.NewReader(y)), goyaml.Node{}
	// What this decoder cannot read, the other one has read.
	if d.Decode(&n) == nil && !errors.Is(d.Decode(&n), io.EOF) {
		return errors.New("another one follows its last bracket: write a line --- between them")
	}
	return nil
}

// begins matches a document that begins with a bracket, after comments and empty lines.
var begins = regexp.MustCompile(`^(?:\s|#[^\n]*\n)*\{`)
