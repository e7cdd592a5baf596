package node

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

// agent runs an agent until the test ends, with an API server that only stores objects.
func agent(t *testing.T) (kubernetes.Interface, string) {
	t.Helper()
	client, dir := fake.NewClientset(), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			Client: client, Dir: dir, Bin: t.TempDir(), Prefix: "127.9", NodeIP: "127.9.0.1", Hasten: 100,
			Images: map[string]Image{"shell": {}, "large": {Pull: 2 * time.Second}},
			Pull: func(_ context.Context, image, to string) error {
				return os.CopyFS(to, os.DirFS(filepath.Join(dir, "registry", image)))
			},
			Start: func(c *exec.Cmd) error {
				c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				return c.Start()
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return client, dir
}

// shell is a pod with one container that runs a script.
func shell(script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID(fmt.Sprintf("uid-%d", time.Now().UnixNano()))},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "main", Image: "shell:v1", Command: []string{"sh", "-c", script},
		}}},
	}
}

func create(t *testing.T, client kubernetes.Interface, p *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// until waits until something is so of a pod.
func until(t *testing.T, client kubernetes.Interface, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var p *corev1.Pod
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(20 * time.Millisecond) {
		var err error
		if p, err = client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}); err == nil && is(p) {
			return p
		}
	}
	t.Fatalf("not so: %s; the pod is %+v", what, p)
	return nil
}

func main0(p *corev1.Pod) corev1.ContainerStatus {
	if len(p.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return p.Status.ContainerStatuses[0]
}

// TestProbes proves that a container is started, ready and alive when its probes say so.
func TestProbes(t *testing.T) {
	client, _ := agent(t)
	dir := t.TempDir()
	exists := func(name string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", filepath.Join(dir, name)}}}}
	}
	touch := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := shell("sleep 1000")
	c := &p.Spec.Containers[0]
	c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = exists("started"), exists("ready"), exists("alive")
	c.StartupProbe.FailureThreshold = 1000
	create(t, client, p)
	until(t, client, "it runs", func(p *corev1.Pod) bool { return main0(p).State.Running != nil && !*main0(p).Started })
	touch("alive")
	touch("started")
	until(t, client, "it is started and not ready", func(p *corev1.Pod) bool { return *main0(p).Started && !main0(p).Ready })
	touch("ready")
	until(t, client, "it is ready", func(p *corev1.Pod) bool { return main0(p).Ready })
	if err := os.Remove(filepath.Join(dir, "ready")); err != nil {
		t.Fatal(err)
	}
	until(t, client, "it is not ready any more", func(p *corev1.Pod) bool { return !main0(p).Ready })
	if err := os.Remove(filepath.Join(dir, "alive")); err != nil {
		t.Fatal(err)
	}
	until(t, client, "it is started again", func(p *corev1.Pod) bool {
		end := main0(p).LastTerminationState.Terminated
		return main0(p).RestartCount > 0 && end != nil && end.ExitCode == 128+int32(syscall.SIGTERM)
	})
}

// TestCrashLoop proves how a container is started again that ends by itself.
func TestCrashLoop(t *testing.T) {
	client, _ := agent(t)
	create(t, client, shell("exit 7"))
	p := until(t, client, "it waits for its next start", func(p *corev1.Pod) bool {
		w := main0(p).State.Waiting
		return w != nil && w.Reason == "CrashLoopBackOff"
	})
	if end := main0(p).LastTerminationState.Terminated; end == nil || end.ExitCode != 7 || end.Reason != "Error" || p.Status.Phase != corev1.PodRunning {
		t.Errorf("it is %s, and has ended with %+v, want Running and code 7", p.Status.Phase, end)
	}
}

// TestLastWords proves that a container's termination message is in its status, and that each start has its own.
func TestLastWords(t *testing.T) {
	client, dir := agent(t)
	once := filepath.Join(dir, "once")
	create(t, client, shell(`if [ -e `+once+` ]; then exit 8; fi; : > `+once+`
if [ -w /dev/termination-log ]; then echo no adapter > /dev/termination-log; fi; exit 7`))
	ended := func(code int32) string {
		return main0(until(t, client, fmt.Sprintf("it has ended with code %d", code), func(p *corev1.Pod) bool {
			end := main0(p).LastTerminationState.Terminated
			return end != nil && end.ExitCode == code
		})).LastTerminationState.Terminated.Message
	}
	if got, want := ended(7), "no adapter\n"; got != want {
		t.Errorf("its last words are %q, want %q", got, want)
	}
	if got := ended(8); got != "" {
		t.Errorf("its last words are still %q", got)
	}
}

// TestImageUnknown proves that an image that nothing stands for cannot be pulled.
func TestImageUnknown(t *testing.T) {
	client, _ := agent(t)
	p := shell("true")
	p.Spec.Containers[0].Image = "other:v1"
	create(t, client, p)
	until(t, client, "its image cannot be pulled", func(p *corev1.Pod) bool {
		w := main0(p).State.Waiting
		return w != nil && w.Reason == "ErrImagePull" && p.Status.Phase == corev1.PodPending
	})
}

// TestImageLarge proves that a pod is pending while an image is pulled that takes long, once for all pods.
func TestImageLarge(t *testing.T) {
	client, _ := agent(t)
	p := shell("true")
	p.Spec.Containers[0].Image = "large:v1"
	create(t, client, p)
	until(t, client, "it is pending while the image is pulled", func(p *corev1.Pod) bool {
		w := main0(p).State.Waiting
		return w != nil && w.Reason == "ContainerCreating" && p.Status.Phase == corev1.PodPending
	})
	until(t, client, "it has run", func(p *corev1.Pod) bool { return main0(p).LastTerminationState.Terminated != nil })
	a := &Agent{pulled: map[string]time.Time{"large:v1": time.Now()}}
	if wait := a.pullTime("large:v1", Image{Pull: time.Hour}); wait > 0 {
		t.Errorf("a pod with an image that was pulled waits for %s", wait)
	}
}

// TestDeletion proves the order in which a pod ends: its hook, SIGTERM, and SIGKILL when it is over. Sidecars
// end after the others.
func TestDeletion(t *testing.T) {
	cases := map[string]struct {
		script string
		grace  int64
		want   string
	}{
		"Gentle": {script: `trap 'echo term; exit 0' TERM; echo begin; while :; do sleep 0.05; done`, grace: 1000, want: "begin hook term sidecar"},
		"Forced": {script: `trap '' TERM; echo begin; while :; do sleep 0.05; done`, grace: 1, want: "begin hook"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client, dir := agent(t)
			log := filepath.Join(t.TempDir(), "log")
			always := corev1.ContainerRestartPolicyAlways
			p := shell("exec >>" + log + "; " + tc.script)
			p.Spec.TerminationGracePeriodSeconds = &tc.grace
			p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo hook >>" + log}}}}
			p.Spec.InitContainers = []corev1.Container{{
				Name: "sidecar", Image: "shell", RestartPolicy: &always,
				Command: []string{"sh", "-c", `trap 'echo sidecar >>` + log + `; exit 0' TERM; while :; do sleep 0.05; done`},
			}}
			create(t, client, p)
			until(t, client, "it has begun", func(p *corev1.Pod) bool {
				b, _ := os.ReadFile(log)
				return isReady(p) && strings.HasPrefix(string(b), "begin")
			})
			// The API server marks it. It is removed by the agent only.
			p, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now := metav1.Now()
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &tc.grace
			if _, err := client.CoreV1().Pods("ns").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			for {
				if _, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			b, err := os.ReadFile(log)
			if got := strings.Join(strings.Fields(string(b)), " "); err != nil || !strings.HasPrefix(got, tc.want) {
				t.Errorf("what happened is %q (%v), want %q; %s", got, err, tc.want, podLog(t, dir))
			}
			if name == "Forced" && !strings.Contains(podLog(t, dir), "container main has ended: Error, exit code 137") {
				t.Errorf("it was not killed: %s", podLog(t, dir))
			}
		})
	}
}

// TestSidecarEnds proves that a pod whose containers have ended ends its sidecars, and succeeds. They may have been
// restarted before.
func TestSidecarEnds(t *testing.T) {
	client, dir := agent(t)
	log := filepath.Join(t.TempDir(), "log")
	always := corev1.ContainerRestartPolicyAlways
	p := shell("while ! grep -q twice " + log + "; do sleep 0.05; done")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.InitContainers = []corev1.Container{{
		Name: "sidecar", Image: "shell", RestartPolicy: &always,
		Command: []string{"sh", "-c", `test -e ` + log + ` || { echo once >>` + log + `; exit 0; }; echo twice >>` + log + `; trap 'echo term >>` + log + `; exit 0' TERM; while :; do sleep 0.05; done`},
	}}
	create(t, client, p)
	until(t, client, "it has succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	if b, err := os.ReadFile(log); err != nil || strings.Join(strings.Fields(string(b)), " ") != "once twice term" {
		t.Errorf("the sidecar was run like this: %q (%v), want once, twice and ended; %s", b, err, podLog(t, dir))
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func podLog(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "ns", "p", "pod.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestEnvironment proves what a container is given: its fields, its volumes as directories, and the
// address of its leader.
func TestEnvironment(t *testing.T) {
	client, dir := agent(t)
	if _, err := client.CoreV1().ConfigMaps("ns").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Data: map[string]string{"file": "content", "key": "value"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := shell(`echo "$IP $KEY $LWS_LEADER_ADDRESS $NESTED $(cat /config/file) $0"; sleep 1000`)
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}}}}
	c := &p.Spec.Containers[0]
	c.Args = []string{"$(IP)"}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/config"}}
	c.Env = []corev1.EnvVar{
		{Name: leaderAddress, Value: "leader-0.leader.ns"},
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, Key: "key"}}},
		{Name: "NESTED", Value: "<$(KEY)>"},
	}
	create(t, client, p)
	seen := until(t, client, "it waits for its leader", func(p *corev1.Pod) bool { return p.Status.PodIP != "" })
	if w := main0(seen).State.Waiting; w == nil || w.Reason != "ContainerCreating" {
		t.Errorf("without a leader it is %+v, want ContainerCreating", main0(seen).State)
	}
	leader := shell("sleep 1000")
	leader.Name, leader.UID = "leader-0", "leader"
	create(t, client, leader)
	until(t, client, "it is ready", isReady)
	line := firstLine(t, dir)
	l, err := client.CoreV1().Pods("ns").Get(t.Context(), "leader-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s value %s <value> content %s\n", seen.Status.PodIP, l.Status.PodIP, seen.Status.PodIP); line != want {
		t.Errorf("it has %q, want %q", line, want)
	}
}

// firstLine waits for the first line that the container of the pod writes.
func firstLine(t *testing.T, dir string) (line string) {
	t.Helper()
	for line == "" {
		time.Sleep(20 * time.Millisecond)
		f, err := os.Open(filepath.Join(dir, "ns", "p", "main.log"))
		if err != nil {
			t.Fatal(err)
		}
		line, _ = bufio.NewReader(f).ReadString('\n')
		f.Close()
	}
	return line
}

// TestImageVolume proves that a container waits for the image of its volume, and has the files of it.
func TestImageVolume(t *testing.T) {
	client, dir := agent(t)
	p := shell("cat /mnt/weights/config.json; sleep 1000")
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "acme/qwen"}}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/mnt"}}
	create(t, client, p)
	until(t, client, "the image cannot be pulled", func(p *corev1.Pod) bool {
		w := main0(p).State.Waiting
		return w != nil && w.Reason == "ErrImagePull" && strings.Contains(w.Message, "acme/qwen")
	})
	weights := filepath.Join(dir, "registry", "acme", "qwen", "weights")
	if err := os.MkdirAll(weights, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(weights, "config.json"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, client, "it is ready", isReady)
	if line := firstLine(t, dir); line != "content\n" {
		t.Errorf("it has %q", line)
	}
}
