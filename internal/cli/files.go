package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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
}

// objects reads all documents of a file, or of the YAML files in a directory.
func (f *files) objects(path string) ([]object, error) {
	if i, err := os.Stat(path); err == nil && i.IsDir() {
		return f.directory(path)
	}
	b, err := f.read(path)
	if err != nil {
		return nil, err
	}
	all, err := documents(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot read %q: it has no documents", path)
	}
	return all, nil
}

// one reads a file that has exactly one document.
func (f *files) one(path string) (object, error) {
	all, err := f.objects(path)
	if err != nil {
		return object{}, err
	}
	if len(all) > 1 {
		return object{}, fmt.Errorf("cannot read %q: it has %d documents, and must have one", path, len(all))
	}
	return all[0], nil
}

func (f *files) directory(dir string) ([]object, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	var all []object
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || (ext != ".yaml" && ext != ".yml") {
			continue
		}
		more, err := f.objects(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot read %q: the directory has no .yaml file", dir)
	}
	return all, nil
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

// documents reads a stream of YAML. It skips empty documents, and replaces a List by its
// items.
func documents(b []byte) ([]object, error) {
	r := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	var all []object
	for n := 1; ; n++ {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		o, err := document(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		switch {
		case o.Object == nil:
		case o.IsList():
			items, err := o.ToList()
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", n, err)
			}
			all = append(all, items.Items...)
		default:
			all = append(all, o)
		}
	}
}

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
		return object{}, errors.New("not a Kubernetes object")
	}
	if o.GetAPIVersion() == "" || o.GetKind() == "" {
		return object{}, errors.New("not a Kubernetes object: it has no apiVersion or no kind")
	}
	return o, nil
}
