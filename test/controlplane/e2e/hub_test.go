package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// Tokens of the hub. Nothing else here has these texts.
const (
	hubToken   = "hf_right-token-of-the-hub"
	wrongToken = "hf_wrong-token-of-the-hub"
)

// A hub answers as huggingface.co does for gated models. Large files are at another host, to which it redirects.
type hub struct {
	*httptest.Server

	lfs *httptest.Server
	// content returns a file of a revision of a model. It is empty for a file that does not exist.
	content func(model, revision, file string) string
	// names of the files that each model has, in the order in which they are fetched.
	names []string

	mu sync.Mutex
	// overloaded is how many requests it turns away at first. refused counts those with a wrong token.
	overloaded, refused int
	// leaked counts the requests by which the other host got a token.
	leaked int
	// began has, for each request for a large file, the byte at which it began, and sent the bytes that were sent.
	// The keys are {model}@{revision}/{file}.
	began map[string][]int
	sent  map[string]int
	// held keeps back the second half of large files until their channel is closed.
	held map[string]chan struct{}
}

func newHub(t *testing.T, names []string, content func(model, revision, file string) string) *hub {
	t.Helper()
	h := &hub{content: content, names: names, began: map[string][]int{}, sent: map[string]int{}, held: map[string]chan struct{}{}}
	large := http.NewServeMux()
	large.HandleFunc("GET /{org}/{name}/{revision}/{file}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			h.mu.Lock()
			h.leaked++
			h.mu.Unlock()
			http.Error(w, "Only one auth mechanism allowed", http.StatusBadRequest)
			return
		}
		h.send(w, r)
	})
	h.lfs = httptest.NewServer(large)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/{org}/{name}/revision/{revision}", func(w http.ResponseWriter, r *http.Request) {
		var siblings []map[string]any
		for _, f := range h.names {
			s := map[string]any{"rfilename": f}
			if r.FormValue("blobs") != "" {
				s["size"] = len(h.content(r.PathValue("org")+"/"+r.PathValue("name"), r.PathValue("revision"), f))
			}
			siblings = append(siblings, s)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": r.PathValue("revision"), "siblings": siblings})
	})
	// A small file is elsewhere on the same host, and a large one at another host.
	mux.HandleFunc("GET /{org}/{name}/resolve/{revision}/{file}", func(w http.ResponseWriter, r *http.Request) {
		text := h.text(r)
		w.Header().Set("X-Repo-Commit", r.PathValue("revision"))
		if strings.HasSuffix(r.PathValue("file"), ".safetensors") {
			w.Header().Set("X-Linked-Etag", etag(text))
			w.Header().Set("X-Linked-Size", strconv.Itoa(len(text)))
			http.Redirect(w, r, fmt.Sprintf("%s/%s/%s/%s/%s", h.lfs.URL, r.PathValue("org"), r.PathValue("name"), r.PathValue("revision"), r.PathValue("file")), http.StatusFound)
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/api/resolve-cache/models/%s/%s/%s/%s", r.PathValue("org"), r.PathValue("name"), r.PathValue("revision"), r.PathValue("file")), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("GET /api/resolve-cache/models/{org}/{name}/{revision}/{file}", h.send)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.lets(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { h.release(); h.Close(); h.lfs.Close() })
	return h
}

// lets tells whether the hub answers a request.
func (h *hub) lets(w http.ResponseWriter, r *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+hubToken:
		h.refused++
		w.Header().Set("X-Error-Code", "GatedRepo")
		http.Error(w, "Access to this model is restricted.", http.StatusUnauthorized)
	case h.overloaded > 0 && r.FormValue("blobs") == "": // Nobody asks for sizes again.
		h.overloaded--
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		return true
	}
	return false
}

func (h *hub) text(r *http.Request) string {
	return h.content(r.PathValue("org")+"/"+r.PathValue("name"), r.PathValue("revision"), r.PathValue("file"))
}

// etag of a file, which is a hash of what is in it.
func etag(text string) string {
	sum := sha256.Sum256([]byte(text))
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// send sends a file, or what comes after a byte of it.
func (h *hub) send(w http.ResponseWriter, r *http.Request) {
	text, from, code := h.text(r), 0, http.StatusOK
	if text == "" {
		http.Error(w, "Entry not found", http.StatusNotFound)
		return
	}
	if after := r.Header.Get("Range"); after != "" {
		if _, err := fmt.Sscanf(after, "bytes=%d-", &from); err != nil || from >= len(text) {
			http.Error(w, "no such range", http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text)))
		code = http.StatusPartialContent
	}
	w.Header().Set("X-Repo-Commit", r.PathValue("revision"))
	w.Header().Set("ETag", etag(text))
	w.Header().Set("Accept-Ranges", "bytes")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)-from))
	w.WriteHeader(code)
	if r.Method == http.MethodHead {
		return
	}
	key := r.PathValue("org") + "/" + r.PathValue("name") + "@" + r.PathValue("revision") + "/" + r.PathValue("file")
	h.mu.Lock()
	h.began[key] = append(h.began[key], from)
	held := h.held[key]
	h.mu.Unlock()
	if half := len(text) / 2; held != nil && from < half {
		h.write(w, key, text[from:half])
		from = half
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	h.write(w, key, text[from:])
}

func (h *hub) write(w http.ResponseWriter, key, text string) {
	n, _ := w.Write([]byte(text))
	_ = http.NewResponseController(w).Flush()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[key] += n
}

// hold keeps back the second half of a file.
func (h *hub) hold(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[key] = make(chan struct{})
}

// release sends the rest of all files.
func (h *hub) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, held := range h.held {
		close(held)
		delete(h.held, key)
	}
}

// tensors are weights that look like no other text.
func tensors(size int) string { return rand.String(size) }

// loaded has the content of the files of a name in the claims of a cluster, whole or not, by their paths.
func loaded(t *testing.T, c *cluster.Cluster, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	dir := filepath.Join(c.Dir(), "pods", "claims")
	if err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), prefix) || strings.HasSuffix(file, ".metadata") {
			return ignoreMissing(err)
		}
		b, err := os.ReadFile(file)
		all[file] = string(b)
		return ignoreMissing(err)
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// ignoreMissing is for files that a loader renames while they are looked at.
func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
