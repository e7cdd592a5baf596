package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// aHub serves a gated model of two files. The large one is at another host. It notes the requests for content.
func aHub(t *testing.T, large string, size int) (address string, requests *[]string) {
	t.Helper()
	requests = &[]string{}
	note := func(r *http.Request) {
		if r.Method == http.MethodGet {
			*requests = append(*requests, strings.TrimSpace(filepath.Base(r.URL.Path)+" "+r.Header.Get("Range")+" "+r.Header.Get("Authorization")))
		}
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(large))
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/acme/tiny/revision/main", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": "c0ffee", "siblings": []map[string]any{{"rfilename": "config.json", "size": 2}, {"rfilename": "shards/1", "size": size}}})
	})
	mux.HandleFunc("GET /acme/tiny/resolve/c0ffee/config.json", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/api/resolve-cache/config.json", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("GET /api/resolve-cache/config.json", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.Header().Set("X-Repo-Commit", "c0ffee")
		w.Header().Set("ETag", `"of-config"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("{}"))
	})
	mux.HandleFunc("GET /acme/tiny/resolve/c0ffee/shards/1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Repo-Commit", "c0ffee")
		w.Header().Set("X-Linked-Etag", `"of-shard"`)
		w.Header().Set("X-Linked-Size", strconv.Itoa(size))
		http.Redirect(w, r, elsewhere.URL+"/blobs/1", http.StatusFound)
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			http.Error(w, "restricted", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(elsewhere.Close)
	return s.URL, requests
}

// TestDownload proves what hf download fetches, from which byte on, and who gets the token.
func TestDownload(t *testing.T) {
	const (
		notes  = ".cache/huggingface/download/"
		small  = "config.json  Bearer right"
		large  = "0123456789"
		commit = "c0ffee\nany\n"
	)
	whole := map[string]string{"config.json": "{}", "shards/1": large}
	cases := map[string]struct {
		reason string
		before map[string]string
		token  string
		size   int
		want   map[string]string
		asked  []string
		err    string
	}{
		"Whole":   {reason: "The other host does not get the token.", want: whole, asked: []string{small, "1"}},
		"Again":   {reason: "What is there of this commit is not fetched.", before: map[string]string{notes + "shards/1.metadata": commit, "shards/1": "other"}, want: map[string]string{"config.json": "{}", "shards/1": "other"}, asked: []string{small}},
		"Rest":    {reason: "A download goes on where the former one has ended.", before: map[string]string{notes + "shards/1.of-shard.incomplete": "0123"}, want: whole, asked: []string{small, "1 bytes=4-"}},
		"AllOfIt": {reason: "Nothing is fetched of a file that has only not got its name.", before: map[string]string{notes + "shards/1.of-shard.incomplete": large}, want: whole, asked: []string{small}},
		"Other":   {reason: "The beginning of another version is not used.", before: map[string]string{notes + "shards/1.of-another.incomplete": "abcd"}, want: whole, asked: []string{small, "1"}},
		"Short":   {reason: "A file that comes in another size does not get its name.", size: 11, want: map[string]string{"config.json": "{}"}, asked: []string{small, "1"}, err: "consistency check failed: 1.of-shard.incomplete has 10 bytes, and should have 11"},
		"Gated":   {reason: "A wrong token is refused.", token: "wrong", want: map[string]string{}, err: "401 Unauthorized"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, requests := aHub(t, large, max(tc.size, len(large)))
			dir := t.TempDir()
			for file, content := range tc.before {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, err := hf([]string{"download", "acme/tiny", "--local-dir", dir}, func(name string) string {
				return map[string]string{"HF_ENDPOINT": at, "HF_TOKEN": or(tc.token, "right")}[name]
			})
			if tc.err == "" && (code != 0 || err != nil) || tc.err != "" && (code != 1 || err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s Code %d, %v, want %q", tc.reason, code, err, tc.err)
			}
			got := map[string]string{}
			for _, file := range []string{"config.json", "shards/1"} {
				if b, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
					got[file] = string(b)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !slices.Equal(tc.asked, *requests) {
				t.Errorf("%s It asked for %q, want %q", tc.reason, *requests, tc.asked)
			}
		})
	}
}
