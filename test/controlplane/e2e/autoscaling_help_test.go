package e2e

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/traffic"
)

// A demand is requests that are sent to a service, at several times a rate. None may fail.
type demand struct {
	t   *testing.T
	to  traffic.Target
	sum *traffic.Phase

	senders []*traffic.Sender
	stops   []context.CancelFunc
}

// demandEvery is the time between two requests of one sender. With it some three requests run at a time.
const demandEvery = 200 * time.Millisecond

// demand is that of a service which has answered a request.
func (a *autoscaling) demand(t *testing.T, s *unstructured.Unstructured, host string) *demand {
	t.Helper()
	return a.demandBehind(t, s.GetNamespace(), host)
}

// demandBehind is that of a service behind the only gateway of a namespace.
func (a *autoscaling) demandBehind(t *testing.T, namespace, host string) *demand {
	t.Helper()
	l := &demand{t: t, to: behindGateway(t, a.Cluster, namespace, host), sum: traffic.NewPhase()}
	t.Cleanup(func() { l.end() })
	return l
}

// times sends n times the rate from now on.
func (l *demand) times(n int) {
	l.t.Helper()
	l.t.Logf("%s: the load is %d times the rate", l.to.Host, n)
	for len(l.senders) < n {
		ctx, stop := context.WithCancel(l.t.Context())
		l.senders, l.stops = append(l.senders, traffic.Send(ctx, l.to, demandEvery)), append(l.stops, stop)
	}
	for i := n; i < len(l.senders); i++ {
		l.stops[i]()
	}
	for _, s := range l.senders[n:] {
		s.Wait()
		l.sum.Add(s.Next())
	}
	l.senders, l.stops = l.senders[:n], l.stops[:n]
}

// end stops to send requests, and returns how many pods have answered.
func (l *demand) end() int {
	l.t.Helper()
	if l.sum == nil {
		return 0 // It has ended.
	}
	l.times(0)
	l.t.Logf("%s: %d requests, %d failed or cut, answered by %v", l.to.Host, l.sum.Sent, l.sum.Failed(), l.sum.Answered)
	for why, n := range l.sum.Wrong {
		l.t.Errorf("%s: %d requests: %s", l.to.Host, n, why)
	}
	pods := map[string]bool{}
	for by := range l.sum.Answered {
		pods[by.Pod] = true
	}
	l.sum = nil
	return len(pods)
}

// window is the time of which the value of a target is the mean.
const window = 20 * time.Second

// follows waits until a role has as many replicas as its target says, within limits, and all are ready.
func (a *autoscaling) follows(t *testing.T, s *unstructured.Unstructured, role string, least, most int64) {
	t.Helper()
	begun, goal, n, value := time.Now(), a.goal(t, s, role), int64(0), 0.0
	name := s.GetName() + "-" + role
	until(t, a, name+" has the replicas that its target says", lasting(func(ctx context.Context) (bool, error) {
		o, err := a.Get(ctx, object(roleKind, s.GetNamespace(), name))
		if err != nil {
			return false, err
		}
		n, _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
		runs, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
		// Single values jump. By then all of the time is after the load has changed.
		if value, err = a.Query(ctx, fmt.Sprintf("avg_over_time((%s)[%.0fs:1s])", goal.query, window.Seconds())); err != nil {
			return false, err
		}
		ready := a.ready(t, s, role)
		return time.Since(begun) > window && [2]int64{runs, ready} == [2]int64{n, n} && n >= least && n <= most && goal.met(value, n),
			fmt.Errorf("%d replicas are asked for, %d run and %d are ready for %.1f requests", n, runs, ready, value)
	}))
	t.Logf("%s has %d replicas for %.1f requests, %d for each, after %.0f s", name, n, value, perReplica, time.Since(begun).Seconds())
}

// A goal is what the autoscaler of a role does.
type goal struct {
	// query is what KEDA asks Prometheus.
	query string
	// least and most replicas.
	least, most int64
}

// met tells whether so many replicas are those for a value, but for what the controller of
// HorizontalPodAutoscalers tolerates, which is a tenth.
func (g goal) met(value float64, replicas int64) bool {
	want := min(max(int64(math.Ceil(value/perReplica)), g.least), g.most)
	return want == replicas || math.Abs(value/float64(perReplica*replicas)-1) <= 0.1
}

// goal of a role, once it has an autoscaler.
func (a *autoscaling) goal(t *testing.T, s *unstructured.Unstructured, role string) goal {
	t.Helper()
	var o *unstructured.Unstructured
	until(t, a, "there is an autoscaler of the role "+role, func(ctx context.Context) (bool, error) {
		var err error
		o, err = a.Get(ctx, object(scaledObjectKind, s.GetNamespace(), s.GetName()+"-"+role))
		return err == nil, err
	})
	g := goal{}
	triggers, _, _ := unstructured.NestedSlice(o.Object, "spec", "triggers")
	g.query, _, _ = unstructured.NestedString(triggers[0].(map[string]any), "metadata", "query")
	g.least, _, _ = unstructured.NestedInt64(o.Object, "spec", "minReplicaCount")
	g.most, _, _ = unstructured.NestedInt64(o.Object, "spec", "maxReplicaCount")
	return g
}

// forgets fails if Prometheus still has values of a role that has no pods. KEDA would take them for requests.
func (a *autoscaling) forgets(t *testing.T, s *unstructured.Unstructured, role string) {
	t.Helper()
	time.Sleep(window) // Prometheus waits for two scrapes before it says so.
	if v, err := a.Query(t.Context(), a.goal(t, s, role).query); err == nil || !strings.HasPrefix(err.Error(), "0 results") {
		t.Errorf("without pods of the role %s, Prometheus has the value %v: %v", role, v, err)
	}
}

// ready is how many pods of a role are ready, unless others go or come.
func (a *autoscaling) ready(t *testing.T, s *unstructured.Unstructured, role string) int64 {
	t.Helper()
	n := int64(0)
	for _, p := range enginePods(t, a.pods, s) {
		if p.Labels["fusioninfer.io/role-name"] != role {
			continue
		}
		if !isReady(p) {
			return -1
		}
		n++
	}
	return n
}

// versions of the objects of a role: those that the service is composed of, and pods.
func (a *autoscaling) versions(t *testing.T, s *unstructured.Unstructured, role string) map[string]string {
	t.Helper()
	all := parts(t, a.Cluster, s)
	for _, o := range list(t, a, podKind, s.GetNamespace()) {
		all = append(all, &o)
	}
	of := slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return !strings.HasPrefix(o.GetName(), s.GetName()+"-"+role) })
	if len(of) < 3 {
		t.Fatalf("the role %s has %d objects, want a LeaderWorkerSet, a pod and a PodMonitor at least", role, len(of))
	}
	return each(of, (*unstructured.Unstructured).GetResourceVersion)
}

// moves fails if anything of a service is written for a while after the load has changed, but for what its
// autoscaler says of itself.
func (a *autoscaling) moves(t *testing.T, s *unstructured.Unstructured, when string, change func()) {
	t.Helper()
	snapshot := func() map[string]string {
		all := parts(t, a.Cluster, s)
		o, err := a.Get(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
		for _, p := range enginePods(t, a.pods, s) {
			all = append(all, object(podKind, p.Namespace, p.Name))
			all[len(all)-1].SetResourceVersion(p.ResourceVersion)
		}
		all = slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind() == scaledObjectKind })
		return each(all, (*unstructured.Unstructured).GetResourceVersion)
	}
	before := snapshot()
	change()
	time.Sleep(still)
	after := snapshot()
	same(t, when, before, after)
	if len(after) != len(before) {
		t.Errorf("%s: there are %d objects, not %d", when, len(after), len(before))
	}
}

// blind waits until the autoscaler of decode has no metrics.
func (a *autoscaling) blind(t *testing.T, s *unstructured.Unstructured) {
	t.Helper()
	until(t, a, "the HorizontalPodAutoscaler has no metrics", func(ctx context.Context) (bool, error) {
		o, err := a.Get(ctx, object(autoscalerKind, s.GetNamespace(), "keda-hpa-"+s.GetName()+"-decode"))
		if err != nil {
			return false, err
		}
		status, reason, message := condition(o, "ScalingActive")
		return status == "False" && reason == "FailedGetExternalMetric", fmt.Errorf("ScalingActive is %s (%s: %s)", status, reason, message)
	})
}

// objects are all versions of what was recorded.
func (r *recording) objects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, e := range r.all() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch ended: %v", e.Object)
		}
		all = append(all, o)
	}
	return all
}

// requested are the numbers of replicas that an InferenceRole has asked for, one after another.
func requested(t *testing.T, r *recording, name string) []int64 {
	t.Helper()
	var all []int64
	for _, o := range r.objects(t) {
		if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); o.GetName() == name {
			all = append(all, n)
		}
	}
	return slices.Compact(all)
}

// few fails if replicas go up and down again and again.
func few(t *testing.T, replicas []int64) {
	t.Helper()
	turns := 0
	for i := 2; i < len(replicas); i++ {
		if (replicas[i] > replicas[i-1]) != (replicas[i-1] > replicas[i-2]) {
			turns++
		}
	}
	t.Logf("the replicas were %v", replicas)
	if turns > 3 {
		t.Errorf("the replicas changed their direction %d times, want 3 at most: %v", turns, replicas)
	}
	if len(replicas) < 2 {
		t.Errorf("the replicas were %v, want them to change", replicas)
	}
}

// desired is how many replicas of a role a service wants.
func desired(s *unstructured.Unstructured, role string) int64 {
	n, _, _ := unstructured.NestedInt64(s.Object, "status", "components", role, "desiredReplicas")
	return n
}
