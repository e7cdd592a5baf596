package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// A download is a call of hf download: a model of the hub, or one revision of it, into a directory.
type download struct {
	repo, revision, dir string
	endpoint, token     string
}

// hf downloads a model as huggingface_hub's command does: it asks for the files of a revision, and
// fetches each that it does not have whole. A file gets its name once all of it has come.
func hf(args []string, env func(string) string) (int, error) {
	if len(args) < 2 || args[0] != "download" {
		return 2, errors.New("hf: the stand-in knows download only")
	}
	f := read(args[2:])
	d := download{
		repo: args[1], revision: f.text("main", "--revision"), dir: f.text("", "--local-dir"),
		endpoint: or(env("HF_ENDPOINT"), "https://huggingface.co"), token: env("HF_TOKEN"),
	}
	if d.dir == "" {
		return 2, errors.New("hf: the stand-in needs --local-dir")
	}
	if err := d.run(); err != nil {
		return 1, err
	}
	return 0, nil
}

func (d *download) run() error {
	rsp, err := d.get("/api/models/" + d.repo + "/revision/" + d.revision)
	if err != nil {
		return err
	}
	defer rsp.Body.Close() //nolint:errcheck // It is read to its end.
	var model struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	if err := json.NewDecoder(rsp.Body).Decode(&model); err != nil {
		return err
	}
	for _, s := range model.Siblings {
		if err := d.file(model.SHA, s.Name); err != nil {
			return err
		}
	}
	return nil
}

// file fetches one file, unless it is there already. The hub redirects to where large ones are.
func (d *download) file(sha, name string) error {
	notes := filepath.Join(d.dir, ".cache", "huggingface", "download", name)
	if b, err := os.ReadFile(notes + ".metadata"); err == nil && strings.HasPrefix(string(b), sha+"\n") { //nolint:gosec // Its own file.
		fmt.Println("has", name)
		return nil
	}
	rsp, err := d.get("/" + d.repo + "/resolve/" + sha + "/" + name)
	if err != nil {
		return err
	}
	defer rsp.Body.Close() //nolint:errcheck // It is read to its end.
	if err := os.MkdirAll(filepath.Dir(notes), 0o750); err != nil {
		return err
	}
	part, err := os.Create(notes + ".incomplete") //nolint:gosec // Its own file.
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, rsp.Body); err != nil {
		return errors.Join(err, part.Close())
	}
	if err := part.Close(); err != nil {
		return err
	}
	if err := os.Rename(notes+".incomplete", filepath.Join(d.dir, name)); err != nil {
		return err
	}
	fmt.Println("fetched", name)
	return os.WriteFile(notes+".metadata", []byte(sha+"\n"+rsp.Header.Get("ETag")+"\n"), 0o600)
}

func (d *download) get(path string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodGet, d.endpoint+path, http.NoBody) //nolint:noctx // It ends with its process.
	if err != nil {
		return nil, err
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if rsp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the hub answers %s: %s", path, rsp.Status), rsp.Body.Close())
	}
	return rsp, nil
}

// loads tells why a model that is in a volume cannot be loaded, or nothing.
func loads(model, mounts string) error {
	if inside(model, mounts) == model {
		return nil // It is the name of one in a hub.
	}
	if _, err := os.Stat(filepath.Join(model, "config.json")); err != nil {
		return fmt.Errorf("cannot load %s: %w", inside(model, mounts), err)
	}
	return nil
}
