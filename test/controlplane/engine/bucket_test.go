package main

import (
	"bytes"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// inBucket serves objects of a bucket to whoever has the key, and returns the address.
func inBucket(t *testing.T, bucket, id, secret string, objects map[string]string) string {
	t.Helper()
	all := s3mem.New()
	if err := all.CreateBucket(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	for key, content := range objects {
		if _, err := all.PutObject(t.Context(), bucket, key, nil, bytes.NewReader([]byte(content)), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewServer(gofakes3.New(all, gofakes3.WithV4Auth(map[string]string{id: secret})).Server())
	t.Cleanup(s.Close)
	return s.URL
}

// TestSync proves what aws s3 sync copies, and who may.
func TestSync(t *testing.T) {
	at := inBucket(t, "models", "reader", "secret", map[string]string{
		"qwen/8b/config.json": "{}", "qwen/8b/shards/1": "one", "qwen/8b/": "", "qwen/8b-other/config.json": "other",
	})
	whole := map[string]string{"config.json": "{}", "shards/1": "one"}
	cases := map[string]struct {
		reason, args string
		env, before  map[string]string
		want         map[string]string
		err          string
	}{
		"Whole":    {reason: "All objects below the prefix are copied.", want: whole},
		"Again":    {reason: "What is there in the same size is not fetched.", before: map[string]string{"config.json": "[]"}, want: map[string]string{"config.json": "[]", "shards/1": "one"}},
		"Partial":  {reason: "What is there in another size is.", before: map[string]string{"config.json": "{"}, want: whole},
		"Deleted":  {reason: "What is no object is removed.", args: "--delete", before: map[string]string{"config.json.123": "{"}, want: whole},
		"Kept":     {reason: "It stays without the flag.", before: map[string]string{"config.json.123": "{"}, want: map[string]string{"config.json": "{}", "shards/1": "one", "config.json.123": "{"}},
		"Secret":   {reason: "The signature is checked.", env: map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"}, err: "(SignatureDoesNotMatch) when calling the ListObjectsV2 operation"},
		"Key":      {reason: "A key has to exist.", env: map[string]string{"AWS_ACCESS_KEY_ID": "wrong"}, err: "(InvalidAccessKeyId) when calling the ListObjectsV2 operation"},
		"None":     {reason: "Credentials are not made up.", env: map[string]string{"AWS_ACCESS_KEY_ID": ""}, err: "Unable to locate credentials"},
		"Unsigned": {reason: "A private bucket is not read without a signature.", args: "--no-sign-request", err: "(AccessDenied)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tc.before {
				file := filepath.Join(dir, name)
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				// It was there before the object.
				if err := os.Chtimes(file, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
					t.Fatal(err)
				}
			}
			env := func(name string) string {
				if v, ok := tc.env[name]; ok {
					return v
				}
				return map[string]string{"AWS_ENDPOINT_URL": at, "AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "secret"}[name]
			}
			code, err := awsCLI(t.Context(), append([]string{"s3", "sync", "s3://models/qwen/8b", dir, "--only-show-errors"}, strings.Fields(tc.args)...), env)
			if tc.err != "" {
				if code != 1 || err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s Code %d, %v, want code 1, %s", tc.reason, code, err, tc.err)
				}
				return
			}
			if code != 0 || err != nil {
				t.Fatalf("%s Code %d, %v", tc.reason, code, err)
			}
			if diff := cmp.Diff(tc.want, filesIn(t, dir)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// filesIn are the contents of all files below a directory.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, root := map[string]string{}, os.DirFS(dir)
	if err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, name)
		all[name] = string(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
