package service

import (
	"fmt"
	"math/rand/v2"
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
	// evicted are the keys of the sets whose leader pods are being deleted, and still ready.
	evicted map[string]bool
	// start is how many calls later new pods are ready.
	start int
	// unseen are the keys of the sets whose controller has not seen their newest spec so far.
	unseen map[string]bool
	// lacksGangs tells that the cluster has no PodGroups, so that pods which name one are never scheduled.
	lacksGangs bool
	// behind is for how many calls statuses are older than specs.
	behind int
}

// A set has the image, the template, the gang and the task in it that run, the calls until they are ready, and its pods.
type set struct {
	image, template, gang, task, role string
	wait                              int
	size                              float64
}

// theirs is a PodGroup that the user has made.
const theirs = "theirs"

// broken is an image whose pods never become ready.
const broken = "broken"

func (s *set) serving() bool { return s.wait == 0 && s.image != broken }

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	return &world{
		tb: tb, fn: function.Start(tb), req: fixture.Request(tb, fixture.Service(spec), ""), sets: map[string]*set{}, restarts: map[string]int{},
		crashed: map[string]bool{}, start: 1,
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
	w.behind = max(w.behind-1, 0)
	w.checkGangs()
	w.listLeaders()
	return rsp
}

// checkGangs fails the test if pods name a PodGroup that does not exist. Volcano would not schedule them
// again after an eviction.
func (w *world) checkGangs() {
	w.tb.Helper()
	if w.lacksGangs {
		return
	}
	exist := map[string]bool{"": true, theirs: true}
	for key, r := range w.req.GetObserved().GetResources() {
		if strings.HasPrefix(key, "podgroup") {
			exist[kube.Lookup(r.GetResource(), "metadata", "name").GetStringValue()] = true
		}
	}
	for key, s := range w.sets {
		if !exist[s.gang] {
			w.tb.Fatalf("the pods of %s are in PodGroup %s, which does not exist", key, s.gang)
		}
	}
}

// schedules tells whether Volcano schedules the pods of a set, as far as their PodGroup says which pods have to be there: all of a task
// (JobInfo.CheckTaskValid of pkg/scheduler/api/job_info.go of v1.14.1), and all of a subgroup (sub_job_info.go, IsReady).
func (w *world) schedules(s *set) bool {
	for key, r := range w.req.GetObserved().GetResources() {
		spec := kube.Lookup(r.GetResource(), "spec").GetStructValue()
		if !strings.HasPrefix(key, "podgroup") || kube.Lookup(r.GetResource(), "metadata", "name").GetStringValue() != s.gang {
			continue
		}
		tasks, pods := map[string]float64{}, 0.0
		for _, member := range w.sets {
			if member.gang == s.gang {
				tasks[member.task] += member.size
				pods += member.size
			}
		}
		for task, n := range kube.Lookup(spec, "minTaskMember").GetStructValue().GetFields() {
			if tasks[task] < n.GetNumberValue() {
				return false
			}
		}
		for _, policy := range kube.Lookup(spec, "subGroupPolicy").GetListValue().GetValues() {
			if p := policy.GetStructValue(); kube.Lookup(p, "name").GetStringValue() == s.role && s.size < kube.Lookup(p, "subGroupSize").GetNumberValue() {
				return false
			}
		}
		return pods >= kube.Lookup(spec, "minMember").GetNumberValue()
	}
	return s.gang == "" || s.gang == theirs
}

// follow lets one set follow its spec, and returns it with its status.
func (w *world) follow(key string, o *structpb.Struct) *structpb.Struct {
	w.tb.Helper()
	template := kube.Lookup(o, "spec", "leaderWorkerTemplate").GetStructValue()
	containers := kube.Lookup(template, "workerTemplate", "spec", "containers").GetListValue().GetValues()
	image, text := containers[0].GetStructValue().GetFields()["image"].GetStringValue(), kube.Canonical(template)
	size := kube.Lookup(template, "size").GetNumberValue()
	annotation := func(name string) string {
		return kube.Lookup(template, "workerTemplate", "metadata", "annotations", name).GetStringValue()
	}
	held := kube.Lookup(o, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0
	s := w.sets[key]
	if w.unseen[key] {
		return kube.With(o, structpb.NewNumberValue(2), "metadata", "generation")
	}
	begin := func() {
		role := kube.Lookup(template, "workerTemplate", "metadata", "labels", "fusioninfer.io/role-name").GetStringValue()
		w.sets[key] = &set{image: image, template: text, gang: annotation("scheduling.k8s.io/group-name"), task: annotation("volcano.sh/task-spec"), role: role, wait: w.start, size: size}
	}
	switch {
	case s == nil:
		begin()
	case s.wait > 0 && w.schedules(s):
		s.wait--
	case !held && s.template != text:
		begin()
		w.restarts[key]++
		delete(w.crashed, key)
	}
	if w.sets[key].template != text {
		o = kube.With(o, structpb.NewNumberValue(0), "status", "updatedReplicas")
	}
	if w.sets[key].template != text && !held {
		return kube.With(o, structpb.NewStructValue(fixture.YAML(w.tb, "observedGeneration: 1\nreadyReplicas: 1\nconditions: [{type: UpdateInProgress, status: \"True\"}]")), "status")
	}
	if w.behind > 0 {
		o = kube.With(o, structpb.NewNumberValue(2), "metadata", "generation")
	}
	// Only with one node, a set is ready without workers (pkg/controllers/leaderworkerset_controller.go of v0.9.0).
	if w.sets[key].serving() && !w.crashed[key] && (w.sets[key].size > 1 || size <= 1) {
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
			rolled:   "ProgressDeadlineExceeded: 1 of 4 replicas are updated (1 of them not ready), 3 wait for their turn, and nothing has changed for more than 1h30m0s: not ready: LeaderWorkerSet chat-w-3",
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
			rolled:   "PartitionReached: 1 of 4 replicas are updated, 3 are held back by spec.rollout.partition",
		},
		"Paused": {
			reason: "A paused rollout changes nothing.",
			spec:   fourWorkers, edits: []string{"v2|rollout: {paused: true}"}, fewest: 4, images: "v1,v1,v1,v1",
			restarts: map[string]int{}, rolled: "Paused: 0 of 4 replicas are updated, 4 are held back by spec.rollout.paused",
		},
		"Surge": {
			reason: "With a surge a single replica is changed without a gap.",
			spec:   oneWorker, edits: []string{"v2|rollout: {maxSurge: 1}"}, fewest: 1, images: "v2",
			restarts: map[string]int{"leaderworkerset/w/0": 1}, rolled: "AllUpdated: ",
		},
		"SurgeBroken": {
			reason: "If the further replica does not start, the others stay.",
			spec:   oneWorker, edits: []string{broken + "|rollout: {maxSurge: 1}"}, fewest: 1, images: "v1,broken",
			restarts: map[string]int{}, rolled: "ProgressDeadlineExceeded: 0 of 1 replicas are updated, 1 waits for its turn, 1 extra one runs meanwhile, and nothing has changed for more than 1h30m0s: not ready: LeaderWorkerSet chat-w-1",
		},
		"OnePartOfPairs": {
			reason: "A broken decode image stops one pair. If prefill of another one crashes meanwhile, its decode keeps its image.",
			spec:   twoPairs, edits: []string{"decode|", "crash|"}, fewest: 2, images: "v1,v1,broken,v1",
			restarts: map[string]int{"leaderworkerset/1/p/0": 1, "leaderworkerset/1/d/0": 1, "leaderworkerset/0/p/0": 1},
			rolled:   "ProgressDeadlineExceeded: 2 of 4 replicas are updated (1 of them not ready), 2 wait for their turn, and nothing has changed for more than 1h30m0s: not ready: LeaderWorkerSet chat-1-d-0",
		},
		"SurgePutBack": {
			reason: "If the further replica does not start and the former image is put back, it goes. No pods were replaced.",
			spec:   oneWorker, edits: []string{broken + "|rollout: {maxSurge: 1}", "v1|rollout: {maxSurge: 1}"}, fewest: 1, images: "v1",
			restarts: map[string]int{}, rolled: "AllUpdated: ",
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

// TestSurgeEnds shows edits of a rollout at the moment when two of four replicas are being replaced, and
// two extra ones serve in their place. The extra ones go once the others serve.
func TestSurgeEnds(t *testing.T) {
	cases := map[string]struct {
		reason  string
		rollout string
		// fewest is the lowest number of replicas that may serve.
		fewest int
		images string
	}{
		"Lowered":    {"One further replica goes on, and none is stopped for another.", "{maxSurge: 1}", 4, "v2,v2,v2,v2"},
		"LeftOut":    {"Now one replica may be stopped at a time.", "{}", 3, "v2,v2,v2,v2"},
		"Partition":  {"What started below the partition has to serve, too.", "{maxSurge: 2, partition: 4}", 4, "v1,v1,v2,v2"},
		"Paused":     {"So it has if the rollout is paused. The extra ones are ready for it to go on.", "{maxSurge: 2, paused: true}", 4, "v1,v1,v2,v2,v2,v2"},
		"PausedAlso": {"Without a surge a paused rollout needs no extra ones.", "{paused: true}", 4, "v1,v1,v2,v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const workers = "roles: [{name: w, componentType: worker, replicas: 4, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\nrollout: %s"
			w := newWorld(t, fmt.Sprintf(workers, "v1", "{}"))
			w.rollOut(fmt.Sprintf(workers, "v1", "{}"))
			w.start = 3
			w.edit(fmt.Sprintf(workers, "v2", "{maxSurge: 2}"))
			for range 10 {
				if w.step(); cmp.Equal(w.serving(), []string{"w/0", "w/1", "w/4", "w/5"}) {
					break
				}
			}
			if diff := cmp.Diff([]string{"w/0", "w/1", "w/4", "w/5"}, w.serving()); diff != "" {
				t.Fatalf("before the edit: -want +got:\n%s", diff)
			}
			fewest, last := w.rollOut(fmt.Sprintf(workers, "v2", tc.rollout))
			if fewest < tc.fewest {
				t.Errorf("%s\nonly %d replicas served, want %d at least; %s", tc.reason, fewest, tc.fewest, rolledOut(last))
			}
			if diff := cmp.Diff(tc.images, w.images()); diff != "" {
				t.Errorf("%s\nimages: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPausedSurgeAddsNothing edits a surge while it is paused. What was added stays, and nothing else gets the newest template.
func TestPausedSurgeAddsNothing(t *testing.T) {
	const workers = "roles: [{name: w, componentType: worker, replicas: 4, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\nrollout: %s"
	for name, image := range map[string]string{"Surge": "v2", "Template": "v3"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(workers, "v1", "{}"))
			w.rollOut(fmt.Sprintf(workers, "v1", "{}"))
			w.start = 3
			w.edit(fmt.Sprintf(workers, "v2", "{maxSurge: 1}"))
			w.step()
			if diff := cmp.Diff("v1,v1,v1,v1,v2", w.images()); diff != "" {
				t.Fatalf("before the edit: -want +got:\n%s", diff)
			}
			w.rollOut(fmt.Sprintf(workers, image, "{maxSurge: 3, paused: true}"))
			if diff := cmp.Diff("v1,v1,v1,v1,v2", w.images()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSurgeEndsAnyhow edits rollouts at random. An extra replica that serves goes only if all others do.
func TestSurgeEndsAnyhow(t *testing.T) {
	spec := func(r *rand.Rand) string {
		roles := [...]string{fourWorkers, pairs(2, "%[1]s", 2, "%[1]s", "")}[r.IntN(2)]
		return roles + "rollout: {maxSurge: %[2]d, maxUnavailable: %[3]d, partition: %[4]d, paused: %[5]t}"
	}
	ends := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		spec := spec(r)
		edit := func(image string) string {
			return fmt.Sprintf(spec, image, r.IntN(3), 1, r.IntN(8)/3, r.IntN(4) == 0)
		}
		w := newWorld(t, edit("v0"))
		for range 5 {
			w.step()
		}
		w.start = 3
		for i := range 40 {
			if r.IntN(4) == 0 {
				w.edit(edit(fmt.Sprintf("v%d", 1+i/10)))
			}
			before := w.serving()
			w.step()
			for _, name := range before {
				if w.sets["leaderworkerset/"+name] != nil {
					continue
				}
				ends++
				if wanted := slices.DeleteFunc(before, func(n string) bool { return w.sets["leaderworkerset/"+n] == nil }); len(wanted) < 4 {
					t.Fatalf("seed %d: %s went while only these served: %v", seed, name, wanted)
				}
			}
		}
	}
	if ends < 20 {
		t.Errorf("want some extra replicas that served and went, got %d", ends)
	}
}

// TestScaleDownIsNoSurge shows that replicas which the service is scaled down by go at once while one that
// is wanted serves, although another one crashes.
func TestScaleDownIsNoSurge(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(fourWorkers, "v1"))
	w.rollOut(fmt.Sprintf(fourWorkers, "v1"))
	w.crashed["leaderworkerset/w/0"] = true
	w.step()
	w.edit(strings.Replace(fmt.Sprintf(fourWorkers, "v1"), "replicas: 4", "replicas: 2", 1))
	w.step()
	if diff := cmp.Diff([]string{"leaderworkerset/w/0", "leaderworkerset/w/1"}, fixture.Keys(w.sets)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestScaleDownStartsNoSurge shows that a surge takes nothing that the service is scaled down by, where nothing is to be rolled out. What
// is broken goes. What serves stays until the others do.
func TestScaleDownStartsNoSurge(t *testing.T) {
	const surge = fourWorkers + "rollout: {maxSurge: 2}"
	w := newWorld(t, fmt.Sprintf(surge, "v1"))
	w.rollOut(fmt.Sprintf(surge, "v1"))
	for _, i := range []string{"0", "1", "2"} {
		w.crashed["leaderworkerset/w/"+i] = true
	}
	w.step()
	w.edit(strings.Replace(fmt.Sprintf(surge, "v1"), "replicas: 4", "replicas: 2", 1))
	for range 3 {
		w.step()
	}
	if diff := cmp.Diff([]string{"leaderworkerset/w/0", "leaderworkerset/w/1", "leaderworkerset/w/3"}, fixture.Keys(w.sets)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestScaleDownKeepsWhatServes shows a service that is scaled down while the replicas that are left are being
// replaced. The others go once one of these serves.
func TestScaleDownKeepsWhatServes(t *testing.T) {
	cases := map[string]struct{ spec, less, serving, left string }{
		"Workers": {strings.Replace(fourWorkers, "replicas: 4", "replicas: 2", 1), strings.Replace(fourWorkers, "replicas: 4", "replicas: 1", 1), "w/1", "w/0"},
		"Groups":  {twoPairs, strings.Replace(twoPairs, "replicas: 2", "replicas: 1", 1), "1/d/0,1/p/0", "0/d/0,0/p/0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(tc.spec, "v1"))
			w.rollOut(fmt.Sprintf(tc.spec, "v1"))
			w.start = 3
			w.edit(fmt.Sprintf(tc.spec, "v2"))
			for range 20 {
				if w.step(); strings.Join(w.serving(), ",") == tc.serving {
					break
				}
			}
			fewest, _ := w.rollOut(fmt.Sprintf(tc.less, "v2"))
			if fewest < 1 {
				t.Errorf("none served")
			}
			if diff := cmp.Diff(strings.Split(tc.left, ","), w.serving()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestScaleDownKeepsWhatServesInGroups lowers the replicas of a role while all of its replicas that are left crash. What
// serves of a group goes once they serve again.
func TestScaleDownKeepsWhatServesInGroups(t *testing.T) {
	const workers = "replicas: %d\nroles: [{name: w, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\n"
	ofPairs := func(decode int, rollout string) string {
		return "replicas: 1\n" + pairs(1, "v1", decode, "v1", rollout)
	}
	cases := map[string]struct {
		reason, before, after string
		crash                 []string
		// meanwhile are the sets that exist while the crash lasts, and left those that do afterwards.
		meanwhile, left string
	}{
		"Workers": {
			reason: "It is all that serves.",
			before: fmt.Sprintf(workers, 1, 2), after: fmt.Sprintf(workers, 1, 1), crash: []string{"0/w/0"},
			meanwhile: "0/w/0,0/w/1", left: "0/w/0",
		},
		"Pairs": {
			reason: "Nothing else decodes.",
			before: ofPairs(2, ""), after: ofPairs(1, ""), crash: []string{"0/d/0"},
			meanwhile: "0/d/0,0/d/1,0/p/0", left: "0/d/0,0/p/0",
		},
		"Surge": {
			reason: "It is no rollout, so it starts no other group.",
			before: ofPairs(2, "rollout: {maxSurge: 1}"), after: ofPairs(1, "rollout: {maxSurge: 1}"), crash: []string{"0/d/0"},
			meanwhile: "0/d/0,0/d/1,0/p/0", left: "0/d/0,0/p/0",
		},
		"BothCrash": {
			reason: "What does not serve is of no use.",
			before: ofPairs(2, ""), after: ofPairs(1, ""), crash: []string{"0/d/0", "0/d/1"},
			meanwhile: "0/d/0,0/p/0", left: "0/d/0,0/p/0",
		},
		"AllGroups": {
			reason: "Each group keeps what serves, because nothing else does.",
			before: fmt.Sprintf(workers, 2, 2), after: fmt.Sprintf(workers, 2, 1), crash: []string{"0/w/0", "1/w/0"},
			meanwhile: "0/w/0,0/w/1,1/w/0,1/w/1", left: "0/w/0,1/w/0",
		},
		"AnotherGroupServes": {
			reason: "Replicas that are wanted serve in another group, as without groups.",
			before: fmt.Sprintf(workers, 2, 2), after: fmt.Sprintf(workers, 2, 1), crash: []string{"0/w/0"},
			meanwhile: "0/w/0,1/w/0", left: "0/w/0,1/w/0",
		},
		"ToZero": {
			reason: "No replica of the role is wanted.",
			before: ofPairs(2, ""), after: ofPairs(0, ""), crash: []string{"0/d/0"},
			meanwhile: "0/p/0", left: "0/p/0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			for _, key := range tc.crash {
				w.crashed["leaderworkerset/"+key] = true
			}
			w.step()
			check := func(want string) {
				t.Helper()
				got := strings.ReplaceAll(strings.Join(fixture.Keys(w.sets), ","), "leaderworkerset/", "")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
				}
			}
			w.rollOut(tc.after)
			check(tc.meanwhile)
			clear(w.crashed)
			w.rollOut(tc.after)
			check(tc.left)
			if len(w.restarts) > 0 {
				t.Errorf("no pods are to be made anew: %v", w.restarts)
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
	const role = "roles: [{name: w, componentType: worker, replicas: 3, template: {spec: {schedulerName: volcano, containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}%s]"
	cases := map[string]struct{ before, after string }{
		"Gang": {
			fmt.Sprintf(role, ""),
			fmt.Sprintf(role, ", {name: m, componentType: worker, multinode: {nodeCount: 2}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}"),
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

// TestLowerReplicasAndGroups lowers spec.replicas and the replicas of a role, while only one replica serves, which is beyond
// both. It stays.
func TestLowerReplicasAndGroups(t *testing.T) {
	const workers = "replicas: %d\nroles: [{name: w, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\n"
	spec := func(groups, replicas int) string { return fmt.Sprintf(workers, groups, replicas) }
	cases := map[string]struct {
		reason string
		before string
		after  []string
		crash  []string
		serves string
	}{
		"Both":  {"One edit lowers both.", spec(2, 2), []string{spec(1, 1)}, []string{"0/w/0", "0/w/1", "1/w/0"}, "1/w/1"},
		"Steps": {"One edit follows the other.", spec(2, 2), []string{spec(2, 1), spec(1, 1)}, []string{"0/w/0", "0/w/1", "1/w/0"}, "1/w/1"},
		"Pairs": {"Decode serves with the prefill of its group.", "replicas: 2\n" + pairs(1, "v1", 2, "v1", ""), []string{"replicas: 1\n" + pairs(1, "v1", 1, "v1", "")}, []string{"0/d/0", "0/d/1", "1/d/0"}, "1/d/1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			for _, k := range tc.crash {
				w.crashed["leaderworkerset/"+k] = true
			}
			w.step()
			for _, spec := range tc.after {
				w.rollOut(spec)
				if w.sets["leaderworkerset/"+tc.serves] == nil {
					t.Errorf("%s %s was all that served, and is gone: %v", tc.reason, tc.serves, fixture.Keys(w.sets))
				}
			}
		})
	}
}
