package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An Image is what stands for the contents of an image.
type Image struct {
	// Entrypoint is what a container without a command runs.
	Entrypoint []string
	// Pull is how long it takes until the image is there, from the first container on that wants it. All nodes
	// have it then.
	Pull time.Duration
	// Program returns what is run in place of the container's command, if it is not nil.
	Program func(Call) (Program, error)
}

// A Call is how a container calls its program.
type Call struct {
	// Args of the container. They name directories in place of mounts.
	Args []string
	// Mounts are directories, by the paths at which the container has them.
	Mounts map[string]string
	// Address of the pod.
	Address string
	// Dir is a directory of the container.
	Dir string
	// Ports returns free ports.
	Ports func(n int) ([]int, error)
}

// A Program is what a process runs.
type Program struct {
	Path string
	Args []string
	// Kubernetes tells that it calls the API server, as the ServiceAccount of the pod.
	Kubernetes bool
	// Forward has addresses, each with the one to which its connections are passed on. Nothing listens
	// there until something listens at the other.
	Forward map[string]string
}

// imageName is the last part of an image's repository.
func imageName(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// A launch is what is needed to start a container, and to run something in it.
type launch struct {
	argv    []string
	env     []string
	dir     string
	forward map[string]string
}

// prepare reads what a container needs.
func (r *pod) prepare(ctx context.Context, c *corev1.Container, image Image) (*launch, error) {
	dir := filepath.Join(r.volumes(), "containers", c.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	mounts, err := r.mounts(ctx, c)
	if err != nil {
		return nil, err
	}
	env, err := r.environment(ctx, c, mounts)
	if err != nil {
		return nil, err
	}
	last := filepath.Join(dir, lastWordsFile)
	if err := os.WriteFile(last, nil, 0o600); err != nil {
		return nil, err
	}
	paths := maps.Clone(mounts)
	paths[or(c.TerminationMessagePath, corev1.TerminationMessagePathDefault)] = last
	expanded := func(words []string) []string {
		all := make([]string, len(words))
		for i, w := range words {
			all[i] = within(expand(w, env), paths)
		}
		return all
	}
	l := &launch{dir: dir}
	l.argv = slices.Concat(expanded(c.Command), expanded(c.Args))
	if len(c.Command) == 0 {
		l.argv = slices.Concat(image.Entrypoint, expanded(c.Args))
	}
	path := r.Bin + ":" + or(env["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	own := map[string]string{
		"PATH": path, "HOME": dir, "HOSTNAME": r.spec.Name,
		"STANDIN_ADDRESS": r.ip, "STANDIN_POD": r.spec.Name, "STANDIN_IMAGE": c.Image,
		"STANDIN_MOUNTS": mountLines(mounts), "STANDIN_DIR": dir, "STANDIN_LIFELINE": "3", "GOMAXPROCS": "1",
	}
	l.env = append(l.env, r.Env...)
	for _, set := range []map[string]string{env, own} {
		for k, v := range set {
			l.env = append(l.env, k+"="+v)
		}
	}
	// A login shell sets PATH anew.
	for _, name := range []string{".profile", ".bash_profile"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("export PATH="+path+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	if image.Program != nil {
		return l, r.substitute(ctx, l, image, Call{Args: expanded(c.Args), Mounts: mounts, Address: r.ip, Dir: dir, Ports: r.Ports})
	}
	return l, nil
}

// lastWordsFile is the file in the directory of a container that stands for its termination message.
const lastWordsFile = "termination-log"

// lastWords is what a container that has ended has left as its termination message. A kubelet cuts it, too.
func (r *pod) lastWords(c *corev1.Container) string {
	b, err := os.ReadFile(filepath.Join(r.volumes(), "containers", c.Name, lastWordsFile))
	if err != nil {
		return "" // It was not started.
	}
	const longest = 4096
	return string(b[:min(len(b), longest)])
}

// mountLines are lines of DIRECTORY=PATH.
func mountLines(mounts map[string]string) string {
	var lines []string
	for at, dir := range mounts {
		lines = append(lines, dir+"="+at)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// substitute makes a launch one of the program that stands for the image.
func (r *pod) substitute(ctx context.Context, l *launch, image Image, call Call) error {
	p, err := image.Program(call)
	if err != nil {
		return err
	}
	l.argv, l.forward = append([]string{p.Path}, p.Args...), p.Forward
	if !p.Kubernetes {
		return nil
	}
	file, err := r.Kubeconfig(ctx, r.spec.Namespace, or(r.spec.Spec.ServiceAccountName, "default"))
	l.env = append(l.env, "KUBECONFIG="+file)
	return err
}

// find returns where a program is. Those of Options.Bin go first, whatever the directory that a command
// names.
func (a *Agent) find(name string) (string, error) {
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if strings.Contains(name, "/") {
		dirs = []string{path.Dir(name)}
	}
	for _, dir := range append([]string{a.Bin}, dirs...) {
		file := filepath.Join(dir, path.Base(name))
		if info, err := os.Stat(file); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return file, nil
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found", name)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
