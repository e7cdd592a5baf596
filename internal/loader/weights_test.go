package loader

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// The commands that stand for those of the images. Each loads 2 MiB.
const (
	hf         = "#!/bin/sh\n[ \"$1 $2 $3\" = 'download org/name --local-dir' ] && head -c 2097152 /dev/zero > \"$4/a\"\n"
	hfFails    = hf + "exit 3\n"
	python     = "#!/bin/sh\n[ \"$3 $4\" = 'org/name main' ] && echo 4194304\n"
	pythonNone = "#!/bin/sh\n[ \"$#\" = 3 ] && echo 4194304\n"
	noPython   = "#!/bin/sh\necho 41\necho no module of that name >&2\nexit 1\n"
	aws        = `#!/bin/sh
case "$2 $3" in
'ls s3://bucket/dir/') [ "$*" = "s3 ls s3://bucket/dir/ --recursive --summarize$SIGNED" ] && printf '2026-01-01 00:00:00 1 Total Size: x\n\nTotal Objects: 2\n   Total Size: 4194304\n' ;;
'sync s3://bucket/dir') head -c 2097152 /dev/zero > "$4/a" ;;
esac
`
	awsNoList = `#!/bin/sh
[ "$2" = sync ] && head -c 2097152 /dev/zero > "$4/a"
`
)

// TestWeights runs the scripts that load weights and say how much is loaded.
func TestWeights(t *testing.T) {
	hub, bucket := Source{Hub: "org/name", Revision: "main"}, Source{Bucket: "bucket", Path: "dir"}
	signed := bucket
	signed.CredentialsSecretRef = &v1alpha1.SecretRef{Name: "s"}
	cases := map[string]struct {
		reason string
		source Source
		bin    map[string]string
		signed string
		before map[string]string
		// done and total are the last word of the loader.
		done, total string
		exit        int
	}{
		"Hub":          {source: hub, bin: map[string]string{"hf": hf, "python3": python}, done: "2", total: "4194304"},
		"NoRevision":   {source: Source{Hub: "org/name"}, bin: map[string]string{"hf": hf, "python3": pythonNone}, done: "2", total: "4194304"},
		"Fails":        {reason: "The next attempt goes on.", source: hub, bin: map[string]string{"hf": hfFails, "python3": python}, done: "2", total: "4194304", exit: 3},
		"NoTotal":      {reason: "The hub does not say the sizes, or the image cannot ask.", source: hub, bin: map[string]string{"hf": hf, "python3": noPython}, done: "2"},
		"Bucket":       {source: bucket, bin: map[string]string{"aws": aws}, signed: " --no-sign-request", done: "2", total: "4194304"},
		"Signed":       {source: signed, bin: map[string]string{"aws": aws}, done: "2", total: "4194304"},
		"BucketNoList": {reason: "Who may read objects may not be allowed to list them.", source: bucket, bin: map[string]string{"aws": awsNoList}, done: "2"},
		"Complete":     {reason: "Nothing is left to do.", source: hub, before: map[string]string{"dir.complete": ""}, done: "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, tmp, bin := t.TempDir(), t.TempDir(), t.TempDir()
			write(t, bin, tc.bin)
			write(t, claim, tc.before)
			write(t, tmp, map[string]string{"word": ""})
			l := New(settings())
			l.Weights("/mnt/models/dir", tc.source, settings(), true)
			run := func(command []string) (word string, exit int) {
				for i, w := range command {
					command[i] = strings.NewReplacer("/mnt/models", claim, home+"/.", tmp+"/.", "/dev/termination-log", filepath.Join(tmp, "word")).Replace(w)
				}
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Env = []string{"SIGNED=" + tc.signed, "PATH=" + bin + ":" + os.Getenv("PATH")}
				_ = cmd.Run() // Its exit code is compared below.
				text, err := os.ReadFile(filepath.Join(tmp, "word"))
				if err != nil {
					t.Fatal(err)
				}
				return string(text), cmd.ProcessState.ExitCode()
			}
			write(t, bin, map[string]string{"sleep": "#!/bin/sh\necho $1 >> " + tmp + "/slept\n"})
			if word, exit := run(slices.Clone(l.Progress)); strings.TrimSpace(word) != "0" || exit != 0 {
				t.Errorf("the sidecar says %q with exit code %d before anything is there", word, exit)
			}
			word, exit := run(slices.Clone(l.Command))
			words := strings.Fields(word)
			if len(words) > 0 {
				words[0] = words[0][:1] // Of 2,048 KiB and a directory.
			}
			if diff := cmp.Diff(strings.Fields(tc.done+" "+tc.total), words, cmpopts.EquateEmpty()); diff != "" || exit != tc.exit {
				t.Errorf("%s\nexit code %d, want %d\n-want, +got:\n%s", tc.reason, exit, tc.exit, diff)
			}
			if tc.before != nil {
				return
			}
			// The loader can be led to write there, and some shells run what is in an expression.
			write(t, tmp, map[string]string{".sleep": "a[$(touch " + tmp + "/ran)]"})
			for range 6 {
				if again, exit := run(slices.Clone(l.Progress)); again != word || exit != 0 {
					t.Errorf("the sidecar says %q with exit code %d, and the loader %q", again, exit, word)
				}
			}
			if diff := cmp.Diff("30\n30\n60\n120\n240\n480\n660\n", read(t, tmp)["slept"]); diff != "" {
				t.Errorf("it sleeps: -want, +got:\n%s", diff)
			}
		})
	}
}
