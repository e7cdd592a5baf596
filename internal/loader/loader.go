// Package loader builds the specs of the Jobs that load weights or adapters into a claim, and of their pods.
package loader

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A Loader is what the pod of a loading Job is made from.
type Loader struct {
	Image string
	// Command is whole: the image's entrypoint does not count.
	Command []string
	// Progress is the command of a container that tells how much is loaded. Without one, nothing tells before
	// the loader ends.
	Progress []string
	Env      []corev1.EnvVar
	// ImagePullSecrets and Resources are the platform team's.
	ImagePullSecrets []string
	Resources        corev1.ResourceRequirements
	Users
	// NodeSelector, NodeAffinity and Tolerations are those of the engines: the claim may be bound
	// where the Job runs first.
	NodeSelector map[string]string
	NodeAffinity *corev1.NodeAffinity
	Tolerations  []corev1.Toleration
}

// Users are the user, the group and the volumes' group of a Job. They are those of the engines that read
// what it loads, as far as the engines' template says.
type Users struct {
	User, Group, VolumeGroup int64
}

// A Source is where a Job loads from. One of Hub and Bucket is set.
type Source struct {
	// Hub is the name in the Hugging Face Hub. An empty revision is the hub's default branch.
	Hub, Revision string
	// Bucket of S3, and the path in it.
	Bucket, Path string
	// TokenSecretRef has the token for the hub, if there is one.
	TokenSecretRef *v1alpha1.SecretKeyRef
	// CredentialsSecretRef has the credentials for the bucket. Without it, the bucket is read without.
	CredentialsSecretRef *v1alpha1.SecretRef
}

// TokenVariable is the variable from which the Hugging Face libraries read a token
// (src/huggingface_hub/constants.py).
const TokenVariable = "HF_TOKEN"

// home is where a loading Job may write, besides the claim.
const home = "/tmp"

// New returns a loader by the platform team's settings. It has no command yet.
func New(in *inputv1alpha1.LoaderSettings) Loader {
	l := Loader{Resources: *in.Resources}
	for _, s := range in.ImagePullSecrets {
		l.ImagePullSecrets = append(l.ImagePullSecrets, s.Name)
	}
	return l
}

// The commands that load a source into a directory. The first argument of a script is the directory, the
// second one the source, and the third one the revision. Both commands keep the files that they have loaded
// before, so a Job that starts again goes on where it was.
const (
	// hf puts a file at its place once all of it has come (src/huggingface_hub/file_download.py).
	loadHub         = `hf download "$2" --local-dir "$1"`
	loadHubRevision = loadHub + ` --revision "$3"`
	// aws writes into a file of another name first (awscli/customizations/s3).
	loadBucket = `aws s3 sync "$2" "$1" --no-progress --only-show-errors`
	// It removes what a killed one left behind. In a claim that services share, that may be what the Job
	// of another one writes.
	loadBucketClean = ` --delete`
	loadAnonymous   = ` --no-sign-request`
	// An empty listing is no error for aws.
	loadNotEmpty = `
if [ -z "$(ls -A "$1")" ]; then echo "$2 has no objects" >&2; exit 1; fi`
)

// loadFrom sets the image and the variables that loading needs, and returns the command with its source, and
// with the revision if there is one.
func (l *Loader) loadFrom(s Source, in *inputv1alpha1.LoaderSettings, clean bool) (load string, from []string) {
	// No home directory of an image is writable for any user. Whoever writes into a claim can lead a loader's
	// directory there by a symlink, so nothing in it is a configuration or a program.
	own := []corev1.EnvVar{{Name: "HOME", Value: home}, {Name: "PYTHONNOUSERSITE", Value: "1"}}
	secret := func(variable, name, key string, optional *bool) {
		own = append(own, corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional,
		}}})
	}
	if s.Bucket != "" {
		l.Image, load = in.BucketImage, loadBucket
		if clean {
			load += loadBucketClean
		}
		if ref := s.CredentialsSecretRef; ref != nil {
			secret("AWS_ACCESS_KEY_ID", ref.Name, "AWS_ACCESS_KEY_ID", nil)
			secret("AWS_SECRET_ACCESS_KEY", ref.Name, "AWS_SECRET_ACCESS_KEY", nil)
			secret("AWS_SESSION_TOKEN", ref.Name, "AWS_SESSION_TOKEN", ptr.To(true))
		} else {
			load += loadAnonymous
		}
		for _, file := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
			if !slices.ContainsFunc(in.Env, func(e inputv1alpha1.LoaderVariable) bool { return e.Name == file }) {
				own = append(own, corev1.EnvVar{Name: file, Value: "/dev/null"})
			}
		}
		// A tenant must not read with the credentials of a node.
		own = append(own, corev1.EnvVar{Name: "AWS_EC2_METADATA_DISABLED", Value: "true"})
		from = []string{"s3://" + path.Join(s.Bucket, s.Path)}
	} else {
		l.Image, load, from = in.HubImage, loadHub, []string{s.Hub}
		own = append(own, corev1.EnvVar{Name: "HF_HOME", Value: path.Join(home, "huggingface")})
		if ref := s.TokenSecretRef; ref != nil {
			secret(TokenVariable, ref.Name, ref.TokenKey(), nil)
		}
		if s.Revision != "" {
			load, from = loadHubRevision, []string{s.Hub, s.Revision}
		}
	}
	l.Env = make([]corev1.EnvVar, 0, len(in.Env)+len(own))
	for _, e := range in.Env {
		if !slices.ContainsFunc(own, func(o corev1.EnvVar) bool { return o.Name == e.Name }) {
			l.Env = append(l.Env, corev1.EnvVar{Name: e.Name, Value: e.Value})
		}
	}
	l.Env = append(l.Env, own...)
	return load, from
}

/*
The script that loads weights. A file beside the directory tells that they are complete. Another user of the volumes'
group can go on with what is there, because the group may write it. Locks of the hub's client are an exception
(filelock), and a killed one leaves them behind. So the script removes what it cannot write, unless others load there, too.

The pod's last word is how much there is, in KiB, and how much there will be, in bytes: see Loaded in package observe.
The source says the latter before anything is loaded. If it does not say so within a minute, or the image cannot ask,
the weights are loaded without that number.
*/
const (
	weightsBegin = `set -eu
umask 002
if [ -e "$1.complete" ]; then exit 0; fi
mkdir -p "$1"
` + sayLoaded + `trap 'say "$1"' EXIT
`
	weightsTakeOver = `takeOver() {
  for f in "$1"/* "$1"/.[!.]*; do
    if [ -h "$f" ] || [ ! -e "$f" ]; then continue; fi
    if [ ! -w "$f" ]; then rm -rf "$f"; elif [ -d "$f" ]; then takeOver "$f"; fi
  done
}
takeOver "$1"
`
	weightsEnd = `
: > "$1.complete"
`
	totalFile = home + "/.total"
	sayLoaded = `say() {
  kib=$(du -sk "$1" 2>/dev/null | cut -f1)
  if [ -w /dev/termination-log ]; then echo "${kib:-0} $(cat ` + totalFile + ` 2>/dev/null)" > /dev/termination-log; fi
}
`
	// hf is a program of Python, so that its library is there (src/huggingface_hub/hf_api.py).
	totalOfHub = `timeout 60 python3 -c 'import sys
from huggingface_hub import HfApi
revision = sys.argv[2] if len(sys.argv) > 2 else None
files = HfApi().model_info(sys.argv[1], revision=revision, files_metadata=True, timeout=30).siblings
print(sum(f.size for f in files))' "$2" ${3:+"$3"} > ` + totalFile + ` 2>/dev/null || rm -f ` + totalFile + `
`
	// aws ends its list with a line of the total size (awscli/customizations/s3/subcommands.py).
	totalOfBucket    = `timeout 60 aws s3 ls "$2/" --recursive --summarize`
	totalOfBucketEnd = ` 2>/dev/null | while read -r total size bytes; do
  if [ "$total $size" = "Total Size:" ]; then echo "$bytes" > ` + totalFile + `; fi
done || rm -f ` + totalFile + `
`
)

/*
The script of the container that tells how much is loaded while the loader runs. A pod without rights can say
something only when a container ends. So the container sleeps, says it and ends, and the kubelet starts it again:
it is a sidecar. It sleeps for half a minute first and then twice as long each time, up to eleven minutes. The kubelet
forgets its back-off for a container that has run for ten (pkg/kubelet/kuberuntime, doBackOff), so it is started again at
once then, and waits for 80 seconds at most before. What is told is thus never much older than half the time so
far. There are some six reports in the first quarter of an hour, and then five an hour. What the container has written
is read as a number only. A symlink in the claim can have the loader write there, and a shell runs what is in an
arithmetic expression.
*/
const progressScript = sayLoaded + `trap 'kill $!; exit 0' TERM
n=$(cat ` + home + `/.sleep 2>/dev/null || echo 15)
case $n in '' | *[!0-9]* | ?????*) n=15 ;; esac
n=$((n * 2))
if [ "$n" -gt 660 ]; then n=660; fi
echo "$n" > ` + home + `/.sleep
sleep "$n" &
wait $!
say "$1"
`

// Weights makes the loader load weights into a directory of the claim. Clean tells that nobody else writes
// there. Names of sources are arguments of the script and no part of it.
func (l *Loader) Weights(dir string, s Source, in *inputv1alpha1.LoaderSettings, clean bool) {
	load, from := l.loadFrom(s, in, clean)
	total := totalOfHub
	if s.Bucket != "" {
		load += loadNotEmpty
		total = totalOfBucket
		if s.CredentialsSecretRef == nil {
			total += loadAnonymous
		}
		total += totalOfBucketEnd
	}
	begin := weightsBegin
	if clean {
		begin += weightsTakeOver
	}
	l.Command = append([]string{"sh", "-c", begin + total + load + weightsEnd, "load", dir}, from...)
	l.Progress = []string{"sh", "-c", progressScript, "progress", dir}
}
