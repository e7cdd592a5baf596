package function

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
)

// Render renders a directory with the files of an example, in a format. It returns the output of the command and its exit code.
func (c *Client) Render(tb testing.TB, dir, format string) (out, errs string, code int) {
	tb.Helper()
	r := cli.Render{XR: filepath.Join(dir, "xr.yaml"), Format: format}
	if f := filepath.Join(dir, "input.yaml"); Exists(tb, f) {
		r.Input = cli.OneFile(f)
	}
	if f := filepath.Join(dir, "observed.yaml"); Exists(tb, f) {
		r.Observed = []string{f}
	}
	if f := filepath.Join(dir, "required.yaml"); Exists(tb, f) {
		r.Required = []string{f}
	}
	o, e := &bytes.Buffer{}, &bytes.Buffer{}
	err := r.Run(tb.Context(), c, cli.Streams{Out: o, Err: e})
	code = cli.Exit(e, err)
	return o.String(), e.String(), code
}

// RenderFleet renders an XR with --simulate, among required objects. All are YAML.
func (c *Client) RenderFleet(tb testing.TB, xr, required, format string) (string, error) {
	tb.Helper()
	dir := tb.TempDir()
	r := cli.Render{XR: filepath.Join(dir, "xr.yaml"), Required: []string{filepath.Join(dir, "required.yaml")}, Simulate: true, Format: format}
	for file, text := range map[string]string{r.XR: xr, r.Required[0]: required} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	err := r.Run(tb.Context(), c, cli.Streams{Out: out, Err: errs})
	if err != nil && errs.Len() > 0 {
		err = fmt.Errorf("%w\n%s", err, errs)
	}
	return out.String(), err
}

// Exists reports whether a file exists.
func Exists(tb testing.TB, path string) bool {
	tb.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	return err == nil
}
