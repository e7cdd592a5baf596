package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A download is a call of hf download: a model of the hub, or one revision of it, into a directory.
type download struct {
	repo, revision, dir string
	endpoint, token     string
}

// hf downloads a model as huggingface_hub's command does: it asks for the files of a revision, and
// fetches each that it does not have whole. A file gets its name once all of it has come. What a call that
// was killed has left behind is where the next one goes on (huggingface_hub's file_download.py).
func hf(args []string, env func(string) string) (int, error) {
	if len(args) < 2 || args[0] != "download" {
		return 2, errors.New("hf: the stand-in knows download only")
	}
	f := read(args[2:])
	d := download{
		repo: args[1], revision: f.text("main", "--revision"), dir: f.text("", "--local-dir"),
		endpoint: or(env("HF_ENDPOINT"), hubAddress), token: env("HF_TOKEN"),
	}
	if d.dir == "" {
		return 2, errors.New("hf: the stand-in needs --local-dir")
	}
	if err := d.run(); err != nil {
		return 1, err
	}
	return 0, nil
}

// ofLibrary is a part of a script that asks huggingface_hub for a model, as the loader's does.
const ofLibrary = "HfApi().model_info("

// hubSize does what the loader's script does with huggingface_hub: it prints the size of a model. The arguments are
// the model and perhaps a revision. With files_metadata the library asks for blobs (huggingface_hub's hf_api.py).
func hubSize(args []string, env func(string) string) (int, error) {
	if len(args) == 0 {
		return 1, errors.New("IndexError: list index out of range")
	}
	revision := "main"
	if len(args) > 1 {
		revision = args[1]
	}
	d := download{repo: args[0], revision: revision, endpoint: or(env("HF_ENDPOINT"), hubAddress), token: env("HF_TOKEN")}
	model, err := d.model("?blobs=true")
	if err != nil {
		return 1, err
	}
	sum := int64(0)
	for _, s := range model.Siblings {
		sum += s.Size
	}
	fmt.Println(sum)
	return 0, nil
}

const hubAddress = "https://huggingface.co"

// A hubModel is what the hub says of a revision of a model.
type hubModel struct {
	SHA      string `json:"sha"`
	Siblings []struct {
		Name string `json:"rfilename"`
		Size int64  `json:"size"`
	} `json:"siblings"`
}

func (d *download) model(query string) (*hubModel, error) {
	rsp, err := d.send(http.MethodGet, d.endpoint+"/api/models/"+d.repo+"/revision/"+d.revision+query, 0, true)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close() //nolint:errcheck // It is read to its end.
	m := &hubModel{}
	return m, json.NewDecoder(rsp.Body).Decode(m)
}

func (d *download) run() error {
	model, err := d.model("")
	if err != nil {
		return err
	}
	for _, s := range model.Siblings {
		if err := d.file(model.SHA, s.Name); err != nil {
			return err
		}
	}
	return nil
}

// file fetches one file, unless it is there already.
func (d *download) file(sha, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the file %q leads elsewhere", name)
	}
	notes := filepath.Join(d.dir, ".cache", "huggingface", "download", name)
	if b, err := os.ReadFile(notes + ".metadata"); err == nil && strings.HasPrefix(string(b), sha+"\n") { //nolint:gosec // Its own file.
		fmt.Println("has", name)
		return nil
	}
	of, err := d.head("/" + d.repo + "/resolve/" + sha + "/" + name)
	if err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(notes), filepath.Dir(filepath.Join(d.dir, name))} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	// The name has the ETag, so that what there is of one version is never the beginning of another.
	part := notes + "." + of.etag + ".incomplete"
	if err := d.fetch(of, part); err != nil {
		return err
	}
	if err := os.Rename(part, filepath.Join(d.dir, name)); err != nil {
		return err
	}
	fmt.Println("fetched", name)
	return os.WriteFile(notes+".metadata", []byte(of.commit+"\n"+of.etag+"\n"), 0o600)
}

// A remoteFile is what the hub says of a file: where it is, in which version, and how large.
type remoteFile struct {
	at           *url.URL
	commit, etag string
	size         int64
	// elsewhere tells that another host has it, which does not get the token.
	elsewhere bool
}

// head asks the hub for a file. It follows redirects on the hub itself. One to another host says where the
// content is, and the headers that begin with X-Linked are about that.
func (d *download) head(path string) (remoteFile, error) {
	at := d.endpoint + path
	for range 5 {
		rsp, err := d.send(http.MethodHead, at, 0, true)
		if err != nil {
			return remoteFile{}, err
		}
		if err := rsp.Body.Close(); err != nil {
			return remoteFile{}, err
		}
		f := remoteFile{at: rsp.Request.URL, commit: rsp.Header.Get("X-Repo-Commit"), etag: strings.Trim(or(rsp.Header.Get("X-Linked-Etag"), rsp.Header.Get("ETag")), `"`)}
		if to, err := rsp.Location(); err == nil {
			if to.Host == rsp.Request.URL.Host {
				at = to.String()
				continue
			}
			f.at, f.elsewhere = to, true
		}
		f.size, err = strconv.ParseInt(or(rsp.Header.Get("X-Linked-Size"), rsp.Header.Get("Content-Length")), 10, 64)
		if err != nil || f.commit == "" || f.etag == "" || strings.ContainsRune(f.etag, filepath.Separator) {
			return remoteFile{}, fmt.Errorf("the hub does not say commit, ETag and size of %s: %v", path, rsp.Header)
		}
		return f, nil
	}
	return remoteFile{}, fmt.Errorf("the hub redirects %s again and again", path)
}

// fetch fetches what a file lacks.
func (d *download) fetch(of remoteFile, file string) error {
	part, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // Its own file.
	if err != nil {
		return err
	}
	defer part.Close() //nolint:errcheck // Its size is checked.
	info, err := part.Stat()
	if err != nil {
		return err
	}
	have := info.Size()
	if have < of.size || of.size == 0 {
		if have > 0 {
			fmt.Println("goes on at", have, "of", of.size, "bytes of", filepath.Base(file))
		}
		rsp, err := d.send(http.MethodGet, of.at.String(), have, !of.elsewhere)
		if err != nil {
			return err
		}
		defer rsp.Body.Close() //nolint:errcheck // It is read to its end.
		n, err := io.Copy(part, rsp.Body)
		if err != nil {
			return err
		}
		have += n
	}
	if have != of.size {
		return errors.Join(fmt.Errorf("consistency check failed: %s has %d bytes, and should have %d", filepath.Base(file), have, of.size), os.Remove(file))
	}
	return nil
}

// direct follows no redirects.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send sends a request for what comes after so many bytes.
func (d *download) send(method, at string, after int64, withToken bool) (*http.Response, error) {
	req, err := http.NewRequest(method, at, http.NoBody) //nolint:noctx // It ends with its process.
	if err != nil {
		return nil, err
	}
	if d.token != "" && withToken {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	// Otherwise sizes would be those of compressed content.
	req.Header.Set("Accept-Encoding", "identity")
	want := http.StatusOK
	if after > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", after))
		want = http.StatusPartialContent
	}
	rsp, err := direct.Do(req)
	if err != nil {
		return nil, err
	}
	if moved := rsp.StatusCode >= 300 && rsp.StatusCode < 400; rsp.StatusCode != want && (!moved || method != http.MethodHead) {
		return nil, errors.Join(fmt.Errorf("the hub answers %s: %s", req.URL.Path, rsp.Status), rsp.Body.Close())
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
