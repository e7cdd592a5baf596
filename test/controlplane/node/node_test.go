package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "x", "B": "$(A)"}
	for in, want := range map[string]string{
		"$(A):$(B)": "x:$(A)", "$(UNKNOWN)": "$(UNKNOWN)", "$$(A)": "$(A)", "$A $": "$A $", "$(A": "$(A", "": "",
	} {
		if got := expand(in, env); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	mounts := map[string]string{"/config": "/d/1", "/config/inner": "/d/2", "/d": "/d/3"}
	for in, want := range map[string]string{
		"--config-file=/config/config.yaml": "--config-file=/d/1/config.yaml",
		"/config":                           "/d/1",
		"cat /config/inner/a '/config/b'":   "cat /d/2/a '/d/1/b'",
		"/etc/config/a":                     "/etc/config/a",
		"/configuration":                    "/configuration",
		"/config.d/a":                       "/config.d/a",
		"/d/a":                              "/d/3/a",
	} {
		if got := within(in, mounts); got != want {
			t.Errorf("within(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestField(t *testing.T) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"a.io/b": "l"}, Annotations: map[string]string{"a.io/b": "n"}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{PodIP: "127.9.128.1"},
	}
	for path, want := range map[string]string{
		"metadata.name": "p", "metadata.namespace": "ns", "spec.nodeName": "node-1", "status.podIP": "127.9.128.1", "status.hostIP": "127.9.0.1",
		"metadata.labels['a.io/b']": "l", "metadata.annotations['a.io/b']": "n", "metadata.labels['c']": "",
	} {
		if got, err := field(p, path, "127.9.0.1"); got != want || err != nil {
			t.Errorf("field %s is %q (%v), want %q", path, got, err, want)
		}
	}
	if _, err := field(p, "spec.unknown", ""); err == nil {
		t.Error("an unknown field has a value")
	}
}

func TestAddresses(t *testing.T) {
	a := newAddresses("127.9")
	first := a.take()
	a.give(first)
	if second := a.take(); first != "127.9.128.1" || second != "127.9.128.2" {
		t.Errorf("addresses %s and %s, want 127.9.128.1 and, although that is free again, 127.9.128.2", first, second)
	}
	n := 1
	for last := a.take(); last != ""; last = a.take() {
		if n++; last == "127.9.128.2" {
			t.Fatal("two pods have one address")
		}
	}
	if n != 254*127 {
		t.Errorf("%d addresses, want %d", n, 254*127)
	}
}

func TestVerdict(t *testing.T) {
	cases := map[string]struct {
		reason  string
		probe   corev1.Probe
		ok      bool
		results string
		want    string
	}{
		"Readiness":     {reason: "One success is enough, and three failures.", results: "--+--+---", want: "--++++++-"},
		"Thresholds":    {reason: "As many as it says.", probe: corev1.Probe{SuccessThreshold: 2, FailureThreshold: 1}, results: "+-++-", want: "---+-"},
		"LivenessFirst": {reason: "A container is alive until it fails.", ok: true, results: "--+---", want: "+++++-"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, got := newVerdict(&tc.probe, tc.ok), ""
			for _, r := range tc.results {
				v.add(r == '+')
				got += map[bool]string{true: "+", false: "-"}[v.ok]
			}
			if got != tc.want {
				t.Errorf("%s: %s comes to %s, want %s", tc.reason, tc.results, got, tc.want)
			}
		})
	}
}

func TestBackOff(t *testing.T) {
	for crashes, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second, 300 * time.Second} {
		if got := backOff(crashes, 1); got != want {
			t.Errorf("after %d crashes before: %s, want %s", crashes, got, want)
		}
	}
	if got := backOff(50, 10); got != 30*time.Second {
		t.Errorf("hastened: %s, want 30s", got)
	}
}

func TestPolicy(t *testing.T) {
	for _, tc := range []struct {
		policy corev1.RestartPolicy
		code   int32
		want   bool
	}{
		{"", 0, true}, {corev1.RestartPolicyAlways, 1, true}, {corev1.RestartPolicyNever, 1, false},
		{corev1.RestartPolicyOnFailure, 0, false}, {corev1.RestartPolicyOnFailure, 1, true},
	} {
		if got := policy(tc.policy)(tc.code); got != tc.want {
			t.Errorf("%q restarts after code %d: %v, want %v", tc.policy, tc.code, got, tc.want)
		}
	}
}

func TestImageName(t *testing.T) {
	for image, want := range map[string]string{
		"vllm/vllm-openai:v0.11.0": "vllm-openai", "busybox": "busybox", "registry:5000/a/epp@sha256:00": "epp",
	} {
		if got := imageName(image); got != want {
			t.Errorf("%s is %s, want %s", image, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	long, now := time.Unix(1000, 0), time.Unix(2000, 0)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(long)}}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	engine := func(s corev1.ContainerState, ready bool) containerFacts {
		return containerFacts{name: "engine", state: s, started: ready, ready: ready}
	}
	crashed := engine(waiting("CrashLoopBackOff", ""), false)
	crashed.last = ended(1)
	cases := map[string]struct {
		reason string
		facts  podFacts
		gate   corev1.ConditionStatus
		phase  corev1.PodPhase
		// conditions are Initialized, ContainersReady and Ready: true or false.
		conditions string
	}{
		"Creating":       {reason: "Nothing has started.", facts: podFacts{initialized: true, main: []containerFacts{engine(waiting("ContainerCreating", ""), false)}}, phase: "Pending", conditions: "TFF"},
		"Initializing":   {reason: "A sidecar has not started.", facts: podFacts{inits: []containerFacts{{name: "proxy", state: running}}, sidecars: map[string]bool{"proxy": true}, main: []containerFacts{engine(waiting("PodInitializing", ""), false)}}, phase: "Pending", conditions: "FFF"},
		"Loading":        {reason: "It runs and is not ready.", facts: podFacts{initialized: true, main: []containerFacts{engine(running, false)}}, phase: "Running", conditions: "TFF"},
		"Ready":          {reason: "All containers are ready.", facts: podFacts{initialized: true, main: []containerFacts{engine(running, true)}}, phase: "Running", conditions: "TTT"},
		"InitEnded":      {reason: "An init container that has ended well is ready.", facts: podFacts{initialized: true, inits: []containerFacts{{name: "init", state: ended(0)}}, main: []containerFacts{engine(running, true)}}, phase: "Running", conditions: "TTT"},
		"SidecarCrashed": {reason: "A sidecar counts as a container.", facts: podFacts{initialized: true, inits: []containerFacts{{name: "proxy", state: ended(1)}}, sidecars: map[string]bool{"proxy": true}, main: []containerFacts{engine(running, true)}}, phase: "Running", conditions: "TFF"},
		"Gate":           {reason: "A readiness gate keeps it from being ready.", gate: corev1.ConditionFalse, facts: podFacts{initialized: true, main: []containerFacts{engine(running, true)}}, phase: "Running", conditions: "TTF"},
		"GateOpen":       {reason: "The gate is open.", gate: corev1.ConditionTrue, facts: podFacts{initialized: true, main: []containerFacts{engine(running, true)}}, phase: "Running", conditions: "TTT"},
		"Crashed":        {reason: "A container that waits for its next start has run.", facts: podFacts{initialized: true, main: []containerFacts{crashed}}, phase: "Running", conditions: "TFF"},
		"Deleted":        {reason: "A pod that goes is not ready, although it still serves.", facts: podFacts{initialized: true, deleted: true, main: []containerFacts{engine(running, true)}}, phase: "Running", conditions: "TFF"},
		"Succeeded":      {reason: "All have ended well.", facts: podFacts{initialized: true, over: true, main: []containerFacts{engine(ended(0), false)}}, phase: "Succeeded", conditions: "TFF"},
		"Failed":         {reason: "One has not.", facts: podFacts{initialized: true, over: true, main: []containerFacts{engine(ended(0), false), engine(ended(137), false)}}, phase: "Failed", conditions: "TFF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			// It has been ready since long ago.
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(long)}}
			if tc.gate != "" {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "gate", Status: tc.gate})
			}
			s := statusOf(p, tc.facts, now)
			got := ""
			for _, c := range s.Conditions {
				got += string(c.Status)[:1]
				want := now
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					want = long
				}
				if !c.LastTransitionTime.Time.Equal(want) {
					t.Errorf("%s: %s is %s since %s, want %s", tc.reason, c.Type, c.Status, c.LastTransitionTime, want)
				}
			}
			if diff := cmp.Diff(tc.conditions, got); diff != "" || s.Phase != tc.phase {
				t.Errorf("%s: phase %s, want %s; conditions: -want, +got:\n%s", tc.reason, s.Phase, tc.phase, diff)
			}
		})
	}
}
