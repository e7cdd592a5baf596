package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// A world runs the LeaderWorkerSets of one service as their controller does. With a partition a
// set keeps its pods. Without one it replaces them if the template has changed.
type world struct {
	tb   testing.TB
	fn   *function.Client
	req  *fnv1.RunFunctionRequest
	sets map[string]*set
	// restarts counts replaced pods, by the keys of their sets.
	restarts map[string]int
	// crashed are the keys of the sets whose pods crash, until they are replaced.
	crashed map[string]bool
	// pods tells that Crossplane has read the leader pods.
	pods bool
}

// A set has the image and the template that run, and the calls until they are ready.
type set struct {
	image, template string
	wait            int
}

// broken is an image whose pods never become ready.
const broken = "broken"

func (s *set) serving() bool { return s.wait == 0 && s.image != broken }

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	return &world{
		tb: tb, fn: function.Start(tb), req: fixture.Request(tb, fixture.Service(spec), ""), sets: map[string]*set{}, restarts: map[string]int{},
		crashed: map[string]bool{},
	}
}

// edit changes the spec.
func (w *world) edit(spec string) {
	w.tb.Helper()
	w.req.Observed.Composite.Resource = kube.With(w.req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(w.tb, fixture.Service(spec)), "spec"), "spec")
}

// step calls the function once, and lets the controllers follow.
func (w *world) step() *fnv1.RunFunctionResponse {
	w.tb.Helper()
	rsp := w.fn.Run(w.tb, w.req)
	if got := fixture.Fatals(rsp); got != "" {
		w.tb.Fatal(got)
	}
	w.req.Observed.Resources = map[string]*fnv1.Resource{} // Crossplane deletes what is left out.
	fixture.Observe(w.req, rsp)
	fixture.MakeReady(w.tb, w.req)
	seen := map[string]bool{}
	for key, r := range w.req.GetObserved().GetResources() {
		if strings.HasPrefix(key, "leaderworkerset/") {
			seen[key] = true
			r.Resource = w.follow(key, r.GetResource())
		}
	}
	for key := range w.sets {
		if !seen[key] {
			delete(w.sets, key)
		}
	}
	w.listLeaders()
	return rsp
}

// follow lets one set follow its spec, and returns it with its status.
func (w *world) follow(key string, o *structpb.Struct) *structpb.Struct {
	w.tb.Helper()
	template := kube.Lookup(o, "spec", "leaderWorkerTemplate").GetStructValue()
	containers := kube.Lookup(template, "workerTemplate", "spec", "containers").GetListValue().GetValues()
	image, text := containers[0].GetStructValue().GetFields()["image"].GetStringValue(), kube.Text(template)
	held := kube.Lookup(o, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0
	s := w.sets[key]
	switch {
	case s == nil:
		w.sets[key] = &set{image: image, template: text, wait: 1}
	case s.wait > 0:
		s.wait--
	case !held && s.template != text:
		w.sets[key] = &set{image: image, template: text, wait: 1}
		w.restarts[key]++
		delete(w.crashed, key)
	}
	if w.sets[key].template != text {
		o = kube.With(o, structpb.NewNumberValue(0), "status", "updatedReplicas")
	}
	if w.sets[key].serving() && !w.crashed[key] {
		return o
	}
	return kube.With(o, structpb.NewStructValue(fixture.YAML(w.tb, "observedGeneration: 1\nconditions: [{type: Available, status: \"False\"}]")), "status")
}

// crash makes the pods of a set anew, as they were.
func (w *world) crash(key string) {
	w.sets[key].wait = 2
	w.restarts[key]++
}

// serving are the sets that serve, in the order of their keys.
func (w *world) serving() []string {
	var all []string
	for key, s := range w.sets {
		if s.serving() && !w.crashed[key] {
			all = append(all, strings.TrimPrefix(key, "leaderworkerset/"))
		}
	}
	slices.Sort(all)
	return all
}

// images are those that run, in the order of the sets' keys.
func (w *world) images() string {
	var all []string
	for _, key := range fixture.Keys(w.sets) {
		all = append(all, w.sets[key].image)
	}
	return strings.Join(all, ",")
}

// rollOut edits the spec, and steps until nothing changes. It returns the fewest sets that served.
func (w *world) rollOut(spec string) (fewest int, last *fnv1.RunFunctionResponse) {
	w.tb.Helper()
	w.edit(spec)
	fewest = len(w.serving())
	for range 30 {
		last = w.step()
		fewest = min(fewest, len(w.serving()))
	}
	return fewest, last
}

const (
	fourWorkers = "roles: [{name: w, componentType: worker, replicas: 4, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\n"
	oneWorker   = "roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\n"
	// twoPairs is a service of two groups, each with prefill and decode.
	twoPairs = `replicas: 2
roles:
- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: %[1]s, command: [vllm, serve, /m]}]}}}
- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: %[1]s, command: [vllm, serve, /m]}]}}}
`
)

// decodeOnly is twoPairs with a broken image for decode.
var decodeOnly = strings.Replace(fmt.Sprintf(twoPairs, "v1"), "name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: v1",
	"name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: "+broken, 1)

// TestRollout shows how a change of the image reaches replicas that run.
func TestRollout(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		// edits are the images that are set one after the other, and the rollout beside each.
		edits []string
		// fewest is the lowest number of replicas that served.
		fewest   int
		images   string
		restarts map[string]int
		rolled   string
	}{
		"OneAfterTheOther": {
			reason: "By default one replica is replaced at a time.",
			spec:   fourWorkers, edits: []string{"v2|"}, fewest: 3, images: "v2,v2,v2,v2",
			restarts: map[string]int{"leaderworkerset/w/0": 1, "leaderworkerset/w/1": 1, "leaderworkerset/w/2": 1, "leaderworkerset/w/3": 1},
			rolled:   "AllUpdated: ",
		},
		"TwoAtOnce": {
			reason: "maxUnavailable says how many may be replaced at once.",
			spec:   fourWorkers, edits: []string{"v2|rollout: {maxUnavailable: 2}"}, fewest: 2, images: "v2,v2,v2,v2",
			restarts: map[string]int{"leaderworkerset/w/0": 1, "leaderworkerset/w/1": 1, "leaderworkerset/w/2": 1, "leaderworkerset/w/3": 1},
			rolled:   "AllUpdated: ",
		},
		"Broken": {
			reason: "An image that does not start reaches one replica.",
			spec:   fourWorkers, edits: []string{broken + "|"}, fewest: 3, images: "v1,v1,v1,broken",
			restarts: map[string]int{"leaderworkerset/w/3": 1},
			rolled:   "ProgressDeadlineExceeded: 1 of 4 replicas are updated, and nothing has changed for more than 30m0s: not ready: LeaderWorkerSet chat-w-3",
		},
		"PutBack": {
			reason: "The former image touches only what was changed.",
			spec:   fourWorkers, edits: []string{broken + "|", "v1|"}, fewest: 3, images: "v1,v1,v1,v1",
			restarts: map[string]int{"leaderworkerset/w/3": 2},
			rolled:   "AllUpdated: ",
		},
		"Repaired": {
			reason: "The replica with the broken image comes first.",
			spec:   fourWorkers, edits: []string{broken + "|", "v3|"}, fewest: 3, images: "v3,v3,v3,v3",
			restarts: map[string]int{"leaderworkerset/w/0": 1, "leaderworkerset/w/1": 1, "leaderworkerset/w/2": 1, "leaderworkerset/w/3": 2},
			rolled:   "AllUpdated: ",
		},
		"Partition": {
			reason: "Replicas below the partition keep their pods.",
			spec:   fourWorkers, edits: []string{"v2|rollout: {partition: 3}"}, fewest: 3, images: "v1,v1,v1,v2",
			restarts: map[string]int{"leaderworkerset/w/3": 1},
			rolled:   "PartitionReached: 1 of 4 replicas are updated",
		},
		"Paused": {
			reason: "A paused rollout changes nothing.",
			spec:   fourWorkers, edits: []string{"v2|rollout: {paused: true}"}, fewest: 4, images: "v1,v1,v1,v1",
			restarts: map[string]int{}, rolled: "Paused: 0 of 4 replicas are updated",
		},
		"Surge": {
			reason: "With a surge a single replica is changed without a gap.",
			spec:   oneWorker, edits: []string{"v2|rollout: {maxSurge: 1}"}, fewest: 1, images: "v2",
			restarts: map[string]int{"leaderworkerset/w/0": 1}, rolled: "AllUpdated: ",
		},
		"SurgeBroken": {
			reason: "If the further replica does not start, the others stay.",
			spec:   oneWorker, edits: []string{broken + "|rollout: {maxSurge: 1}"}, fewest: 1, images: "v1,broken",
			restarts: map[string]int{}, rolled: "ProgressDeadlineExceeded: 0 of 1 replicas are updated, and nothing has changed for more than 30m0s: not ready: LeaderWorkerSet chat-w-1",
		},
		"OnePartOfPairs": {
			reason: "A broken decode image stops one pair. If prefill of another one crashes meanwhile, its decode keeps its image.",
			spec:   twoPairs, edits: []string{"decode|", "crash|"}, fewest: 2, images: "v1,v1,broken,v1",
			restarts: map[string]int{"leaderworkerset/1/p/0": 1, "leaderworkerset/1/d/0": 1, "leaderworkerset/0/p/0": 1},
			rolled:   "ProgressDeadlineExceeded: 2 of 4 replicas are updated, and nothing has changed for more than 30m0s: not ready: LeaderWorkerSet chat-1-d-0",
		},
		"SurgePutBack": {
			reason: "If the further replica does not start and the former image is put back, it goes. Only its own pods were replaced.",
			spec:   oneWorker, edits: []string{broken + "|rollout: {maxSurge: 1}", "v1|rollout: {maxSurge: 1}"}, fewest: 1, images: "v1",
			restarts: map[string]int{"leaderworkerset/w/1": 1}, rolled: "AllUpdated: ",
		},
		"PausedPutBack": {
			reason: "What was never changed is up to date.",
			spec:   fourWorkers, edits: []string{"v2|rollout: {paused: true}", "v1|rollout: {paused: true}"}, fewest: 4, images: "v1,v1,v1,v1",
			restarts: map[string]int{}, rolled: "AllUpdated: ",
		},
		"Pairs": {
			reason: "Prefill and decode of a group change together, one group after the other.",
			spec:   twoPairs, edits: []string{"v2|"}, fewest: 2, images: "v2,v2,v2,v2",
			restarts: map[string]int{"leaderworkerset/0/p/0": 1, "leaderworkerset/0/d/0": 1, "leaderworkerset/1/p/0": 1, "leaderworkerset/1/d/0": 1},
			rolled:   "AllUpdated: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(tc.spec, "v1"))
			w.rollOut(fmt.Sprintf(tc.spec, "v1"))
			fewest := len(w.sets)
			var last *fnv1.RunFunctionResponse
			for _, edit := range tc.edits {
				image, more, _ := strings.Cut(edit, "|")
				spec := fmt.Sprintf(tc.spec, image) + more
				switch image {
				case "decode":
					spec = decodeOnly
				case "crash":
					spec = decodeOnly
					w.crash("leaderworkerset/0/p/0")
				}
				n, rsp := w.rollOut(spec)
				fewest, last = min(fewest, n), rsp
			}
			type outcome struct {
				Fewest         int
				Images, Rolled string
				Restarts       map[string]int
			}
			want := outcome{tc.fewest, tc.images, tc.rolled, tc.restarts}
			got := outcome{fewest, w.images(), rolledOut(last), w.restarts}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// rolledOut is the reason and the message of the condition RolledOut.
func rolledOut(rsp *fnv1.RunFunctionResponse) string {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == "RolledOut" {
			return c.GetReason() + ": " + c.GetMessage()
		}
	}
	return ""
}

// TestWhatElsePodsHave shows changes of labels and annotations that the function gives to pods. They
// reach one replica after the other as well.
func TestWhatElsePodsHave(t *testing.T) {
	const role = "roles: [{name: w, componentType: %s, replicas: 3, template: {spec: {schedulerName: volcano, containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}%s]"
	cases := map[string]struct{ before, after string }{
		"Type": {fmt.Sprintf(role, "prefiller", ""), fmt.Sprintf(role, "worker", "")},
		"Gang": {
			fmt.Sprintf(role, "worker", ""),
			fmt.Sprintf(role, "worker", ", {name: m, componentType: worker, multinode: {nodeCount: 2}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			if fewest, _ := w.rollOut(tc.after); fewest < 2 {
				t.Errorf("only %d replicas served", fewest)
			}
		})
	}
}
