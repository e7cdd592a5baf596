package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// output runs a command and returns what it writes.
func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...) //nolint:gosec,noctx // Commands of this package; a build takes as long as it takes.
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run %s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, errs)
	}
	return out, nil
}

// outputs are what commands have written that need to run only once in this process.
var outputs sync.Map

// outputOnce returns what a command writes, and runs it only until it succeeds. It is for what cannot change while this process
// runs: programs that are built, and modules that are downloaded.
func outputOnce(name string, args ...string) ([]byte, error) {
	key := strings.Join(append([]string{name}, args...), "\x00")
	once, _ := outputs.LoadOrStore(key, sync.OnceValues(func() ([]byte, error) { return output(name, args...) }))
	out, err := once.(func() ([]byte, error))() //nolint:forcetypeassert // Nothing else is stored.
	if err != nil {
		outputs.Delete(key)
	}
	return out, err
}

// module returns the directory of a module at the version that the go.mod in a
// directory of test/ requires. It is the version that is built where it is built.
func module(in, path string) (string, error) {
	m, err := download(in, path)
	return m.Dir, err
}

// A downloaded module, and where it is.
type downloaded struct{ Dir, Version string }

func download(in, path string) (downloaded, error) {
	m := downloaded{}
	root, err := Root()
	if err != nil {
		return m, err
	}
	out, err := outputOnce("go", "-C", filepath.Join(root, "test", filepath.FromSlash(in)), "mod", "download", "-json", path)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("cannot find module %s: %w", path, err)
	}
	return m, nil
}
