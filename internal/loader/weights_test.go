package loader

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// lockingHub writes a lock that only its user may write, as filelock does, and a file bit by bit. It is killed at first.
const lockingHub = `#!/bin/sh
set -e
mkdir -p "$4/.cache/download"
echo > "$4/.cache/download/a.lock"
chmod 444 "$4/.cache/download/a.lock"
printf x >> "$4/a"
[ "$(cat "$4/a")" = xx ]
`

// TestOtherUser proves that a download goes on as another user of the same fsGroup. Only root can run as two users. For others, a file that
// nobody may write stands for one of another user.
func TestOtherUser(t *testing.T) {
	const group = 3000
	root := os.Geteuid() == 0
	claim, bin := t.TempDir(), t.TempDir()
	write(t, bin, map[string]string{"hf": lockingHub, "python3": noPython})
	modes := map[string]os.FileMode{filepath.Dir(claim): 0o755, filepath.Join(bin, "hf"): 0o755, filepath.Join(bin, "python3"): 0o755}
	if root {
		// So does the kubelet.
		if err := os.Chown(claim, 0, group); err != nil {
			t.Fatal(err)
		}
		modes[claim] = 0o775 | os.ModeSetgid
	}
	for name, mode := range modes {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	l := New(settings())
	l.Weights("/mnt/models/dir", Source{Hub: "org/name"}, settings(), true)
	for i, want := range []int{1, 0} {
		tmp := t.TempDir()
		if err := os.Chmod(tmp, 0o777); err != nil {
			t.Fatal(err)
		}
		command := slices.Clone(l.Command)
		for i, w := range command {
			command[i] = strings.NewReplacer("/mnt/models", claim, home+"/.", tmp+"/.").Replace(w)
		}
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		if root {
			user := uint32(1001 + i)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{group}}}
		}
		out, _ := cmd.CombinedOutput() // Its exit code is compared below.
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("user %d: want exit code %d, got %d: %s", i, want, got, out)
		}
	}
	if diff := cmp.Diff(map[string]string{"dir/a": "xx", "dir/.cache/download/a.lock": "\n", "dir.complete": ""}, read(t, claim)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
