package model

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

// claimName is that of the service chat in the namespace team.
const claimName = "chat-adapters-cf7105df2d03"

// claims is the status of the service's claims, by their clusters and UIDs.
func claims(of ...string) string {
	var all []string
	for _, c := range of {
		cluster, uid, _ := strings.Cut(c, "=")
		all = append(all, fmt.Sprintf(`{name: %q, claimName: %s, uid: %s}`, cluster, claimName, uid))
	}
	return `modelRouting: {servedNames: [base]}, adapterCache: {modelName: acme/base, runAsUser: 1, runAsGroup: 2, fsGroup: 3, clusters: [` + strings.Join(all, ", ") + `]}`
}

// targets are adapters with weights, each from a repository of its name or of another one.
func targets(of ...string) string {
	var all []string
	for _, t := range of {
		f := append(strings.Fields(t), strings.Fields(t)[0])
		all = append(all, fmt.Sprintf(`{name: %s, weight: %s, adapter: {uri: "hf://acme/%s"}}`, f[0], f[1], f[2]))
	}
	return `, targets: [` + strings.Join(all, ", ") + `]`
}

// A run is an InferenceModel over several calls.
type run struct {
	*testing.T

	fn  fixture.Function
	req *fnv1.RunFunctionRequest
	w   world
	rsp *fnv1.RunFunctionResponse
	// done are Jobs that are complete from then on.
	done map[string]bool
	// seen are the directories of each target, in the order in which they came up.
	seen map[string][]string
}

func begin(t *testing.T, status, spec string) *run {
	t.Helper()
	r := &run{T: t, fn: function.Start(t), req: fixture.Request(t, xr(spec), ""), w: alone(ready + status), done: map[string]bool{}, seen: map[string][]string{}}
	return r
}

func (r *run) spec(fields string) {
	r.Helper()
	r.req.Observed.Composite.Resource = fixture.YAML(r, xr(fields))
}

// call calls the function until nothing changes any more. Jobs are complete as far as they were said to be, and
// one that is made anew is not.
func (r *run) call() {
	r.Helper()
	for range 6 {
		r.rsp, _ = fixture.Reconcile(r, r.fn, r.req, r.w)
		if fixture.IsFatal(r.rsp) {
			r.Fatal(fixture.Fatals(r.rsp))
		}
		apply(r.T, r.req, r.rsp)
		all := r.req.GetObserved().GetResources()
		for k := range r.done {
			o := all[k]
			if o == nil {
				delete(r.done, k)
				continue
			}
			at := []string{"status"}
			if strings.HasPrefix(k, "cluster/") {
				at = []string{"status", "atProvider", "manifest", "status"}
			}
			o.Resource = kube.With(o.GetResource(), structpb.NewStructValue(fixture.YAML(r, `{conditions: [{type: Complete, status: "True"}]}`)), at...)
		}
	}
}

// finish completes all Jobs.
func (r *run) finish() {
	r.Helper()
	for k := range r.req.GetObserved().GetResources() {
		if strings.Contains(k, "job/") {
			r.done[k] = true
		}
	}
	r.call()
}

// state is what there is: the Jobs by their directories, the targets of the rewrite, and the condition.
func (r *run) state() string {
	r.Helper()
	var all []string
	for k, o := range r.rsp.GetDesired().GetResources() {
		switch {
		case strings.Contains(k, "job/"):
			c := kube.Lookup(o.GetResource(), "spec", "template", "spec", "containers").GetListValue().GetValues()[0].GetStructValue()
			dir := kube.Lookup(c, "command").GetListValue().GetValues()[4].GetStringValue()
			all = append(all, "Job "+r.short(strings.TrimPrefix(dir, "/mnt/adapters/.")))
		case k == rewrite:
			for _, v := range kube.Lookup(o.GetResource(), "spec", "rules").GetListValue().GetValues()[0].GetStructValue().GetFields()["targets"].GetListValue().GetValues() {
				f := v.GetStructValue().GetFields()
				all = append(all, fmt.Sprintf("%s %v", r.short(f["modelRewrite"].GetStringValue()), f["weight"].GetNumberValue()))
			}
		}
	}
	slices.Sort(all)
	for _, c := range r.rsp.GetConditions() {
		if c.GetType() == "AdaptersLoaded" || c.GetType() == "Answered" {
			all = append(all, c.GetReason())
		}
	}
	return strings.Join(all, ", ")
}

// short is a directory with its number in place of the hash.
func (r *run) short(directory string) string {
	i := strings.LastIndexByte(directory, '-')
	if i < 0 || len(directory)-i != 21 {
		return directory
	}
	target := directory[:i]
	if !slices.Contains(r.seen[target], directory) {
		r.seen[target] = append(r.seen[target], directory)
	}
	return fmt.Sprintf("%s#%d", target, 1+slices.Index(r.seen[target], directory))
}

func (r *run) want(reason, want string) {
	r.Helper()
	r.call()
	if diff := cmp.Diff(want, r.state()); diff != "" {
		r.Errorf("%s\n-want, +got:\n%s", reason, diff)
	}
}

// TestAdapters follows the adapters of a model from the first call on. Whoever gets requests keeps them until
// its successors are loaded.
func TestAdapters(t *testing.T) {
	r := begin(t, claims("=u1"), targets("v1 90", "v2 10"))
	r.want("Both are loaded first.", "Job v1#1, Job v2#1, Loading, NotCreated")
	r.finish()
	r.want("Both get requests, and the Jobs have gone.", "v1#1 90, v2#1 10, Loaded, Answered")
	r.spec(targets("v1 50", "v2 50"))
	r.want("Weights change without a Job.", "v1#1 50, v2#1 50, Loaded, Answered")
	r.spec(targets("v1 50", "v2 50 other"))
	r.want("Another source is another directory, which is loaded beside the former.", "Job v2#2, v1#1 50, v2#1 50, Loading, Answered")
	r.spec(targets("v1 100", "v2 0 other"))
	r.want("What gets no requests holds nothing up.", "Job v2#2, v1#1 100, Loading, Answered")
	r.finish()
	r.want("It is ready for requests.", "v1#1 100, Loaded, Answered")
	r.spec(targets("v1 90", "v2 10 other"))
	r.want("It gets them.", "v1#1 90, v2#2 10, Loaded, Answered")
	r.spec(targets("v1 100", "v2 0 other"))
	r.want("It stays loaded.", "v1#1 100, Loaded, Answered")
	r.spec(`, targets: [{name: base}]`)
	r.want("What is no adapter needs no Job.", "base 1, NoAdapters, Answered")
	r.spec(targets("v1 1"))
	r.want("A Job looks whether the adapter is still there.", "Job v1#1, base 1, Loading, Answered")
	r.finish()
	r.want("It was.", "v1#1 1, Loaded, Answered")
}

// TestAdaptersStay proves that whoever gets requests keeps them, whatever is missing.
func TestAdaptersStay(t *testing.T) {
	const serving = "v1#1 90, v2#1 10"
	cases := map[string]struct {
		reason string
		change func(*run)
		want   string
	}{
		"NoService": {"Nothing is known of the service.", func(r *run) { r.w = world{"service": {}, "pool": {pool}} }, serving + ", ServiceNotFound, ServiceNotFound"},
		"NoCache":   {"The service gives its claim up.", func(r *run) { r.w = alone(ready + routing) }, serving + ", NoAdapterCache, NoAdapterCache"},
		"Removed": {"It had one, and former engines may still serve adapters.", func(r *run) {
			r.w = alone(ready + "adapterCache: {modelName: acme/base}, " + routing)
		}, serving + ", NoAdapterCache, NoAdapterCache"},
		"NoClaim":    {"The claim is not bound for a moment.", func(r *run) { r.w = alone(ready + claims()) }, serving + ", Loaded, Answered"},
		"NewClaim":   {"A claim that was made anew is empty, and is filled again.", func(r *run) { r.w = alone(ready + claims("=u2")) }, "Job v1#1, Job v2#1, " + serving + ", Loading, Answered"},
		"OtherClaim": {"A claim of another name is not the service's.", func(r *run) { r.w = alone(ready + strings.ReplaceAll(claims("=u2"), claimName, "data")) }, serving + ", Loaded, Answered"},
		"Root":       {"A user who may read everything is none that the service says.", func(r *run) { r.w = alone(ready + strings.ReplaceAll(claims("=u2"), "runAsUser: 1", "runAsUser: 0")) }, serving + ", NoAdapterCache, NoAdapterCache"},
		"OtherModel": {"Adapters for another model are others.", func(r *run) { r.w = alone(ready + strings.ReplaceAll(claims("=u1"), "acme/base", "acme/next")) }, "Job v1#2, Job v2#2, " + serving + ", Loading, Answered"},
		"Edited": {"A rewrite that cannot be read is made right, and Jobs look for what it names.", func(r *run) {
			o := r.req.GetObserved().GetResources()[rewrite]
			o.Resource = kube.With(o.GetResource(), structpb.NewStringValue("x"), "spec", "rules")
		}, "Job v1#1, Job v2#1, " + serving + ", Loading, Answered"},
		"JobLost": {"Whoever deletes a rewrite gets it back.", func(r *run) { delete(r.req.GetObserved().GetResources(), rewrite); r.call(); r.finish() }, serving + ", Loaded, Answered"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := begin(t, claims("=u1"), targets("v1 90", "v2 10"))
			r.want("Both are loaded.", "Job v1#1, Job v2#1, Loading, NotCreated")
			r.finish()
			tc.change(r)
			r.call()
			if diff := cmp.Diff(tc.want, r.state()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEditedWithoutCache proves that a rewrite which somebody has edited stays as it is while the service does not say where adapters are: no
// engine knows an adapter by the bare name of its target.
func TestEditedWithoutCache(t *testing.T) {
	const refused = "spec.targets[0].adapter: Forbidden: needs status.adapterCache of service chat, because the InferenceModelRewrite was edited and cannot be read: delete the InferenceModelRewrite, or leave the adapter out"
	const made = "v1#1 90, v2#1 10"
	loaded := targets("v1 90", "v2 10")
	cases := map[string]struct {
		reason  string
		world   world
		targets string
		// want is what there is at last, or the end of the Fatal.
		want string
	}{
		"NoService": {"The service is not there.", world{"service": {}, "pool": {pool}}, loaded, refused},
		"NoCache":   {"It has given its claim up.", alone(ready + routing), loaded, refused},
		"Root":      {"What it says is not usable.", alone(ready + strings.ReplaceAll(claims("=u1"), "runAsUser: 1", "runAsUser: 0")), loaded, refused},
		"NoPool":    {"The rewrite goes with its pool.", world{"service": {}, "pool": {}}, loaded, "ServiceNotFound, ServiceNotFound"},
		"NoClaim":   {"The directories are known, although no claim is.", alone(ready + claims()), loaded, made + ", Loading, Answered"},
		"Unused":    {"No request goes to the adapter.", alone(ready + routing), `, targets: [{name: v1, weight: 0, adapter: {uri: "hf://acme/v1"}}, {name: base}]`, "base 1, NoAdapterCache, Answered"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := begin(t, claims("=u1"), loaded)
			r.want("Both are loaded.", "Job v1#1, Job v2#1, Loading, NotCreated")
			r.finish()
			o := r.req.GetObserved().GetResources()[rewrite]
			o.Resource = kube.With(o.GetResource(), structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{
				structpb.NewStructValue(&structpb.Struct{}), structpb.NewStructValue(&structpb.Struct{}),
			}}), "spec", "rules")
			r.w = tc.world
			r.spec(tc.targets)
			// The first call comes before Crossplane has looked for the service, and a Fatal would keep it from doing so.
			first, err := r.fn.RunFunction(t.Context(), r.req)
			if err != nil || fixture.IsFatal(first) {
				t.Fatal(err, fixture.Fatals(first))
			}
			r.rsp = first
			if got := r.state(); strings.Contains(got, "v1 90") {
				t.Errorf("the first call names targets without their directories: %s", got)
			}
			rsp, _ := fixture.Reconcile(t, r.fn, r.req, r.w)
			if fixture.IsFatal(rsp) {
				if got := fixture.Fatals(rsp); !strings.HasSuffix(got, tc.want) {
					t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				r.w = alone(ready + claims("=u1"))
				r.want("It is made right once the service says where adapters are.", "Job v1#1, Job v2#1, "+made+", Loading, Answered")
				return
			}
			r.want(tc.reason, tc.want)
		})
	}
}

// TestNoAdapterCache proves that a target with an adapter is not said to be answered if the service has no claim for it, whatever its
// engines answer besides.
func TestNoAdapterCache(t *testing.T) {
	const noCache = " has no spec.adapterCache into which an adapter could be loaded: have it added there, or leave out spec.targets[].adapter and name adapters of the engines' --lora-modules"
	const open = "modelRouting: {servedNames: [base]}"
	base := ", targets: [{name: base, weight: 1}, "
	cases := map[string]struct{ reason, service, targets, warnings, answered string }{
		"Adapter": {
			reason: "The engines' own adapter of that name is another one.", service: routing, targets: `{name: v1, weight: 1, adapter: {uri: "hf://acme/v1"}}]`,
			warnings: "spec.targets: no engine of the service answers these: v1: the service" + noCache, answered: "NoAdapterCache service chat" + noCache,
		},
		"Open": {
			reason: "What the engines answer besides is not known, and no adapter is loaded there.", service: open, targets: `{name: v1, weight: 1, adapter: {uri: "hf://acme/v1"}}]`,
			answered: "NoAdapterCache service chat" + noCache,
		},
		"Unused":  {reason: "No request goes to it.", service: routing, targets: `{name: v1, weight: 0, adapter: {uri: "hf://acme/v1"}}]`, answered: "Answered "},
		"Engines": {reason: "The engines have it.", service: routing, targets: `{name: v1, weight: 1}]`, answered: "Answered "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := begin(t, routing, base[:len(base)-2]+"]")
			r.call()
			r.w = alone(ready + tc.service)
			r.spec(base + tc.targets)
			r.call()
			var got []string
			for _, c := range r.rsp.GetConditions() {
				switch c.GetType() {
				case "NoWarnings":
					got = append(got, c.GetMessage())
				case "Answered":
					got = append(got, c.GetReason()+" "+c.GetMessage())
				}
			}
			if diff := cmp.Diff([]string{tc.warnings, tc.answered}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdapterJob shows what a Job may reach: the claim of the service, with the Secrets and the users that the
// service says, and nothing that the owner could name.
func TestAdapterJob(t *testing.T) {
	status := strings.Replace(claims("=u1"), "runAsUser", "tokenSecretRef: {name: hf, key: t}, runAsUser", 1)
	r := begin(t, status, `, targets: [{name: v1, adapter: {uri: "hf://acme/v1", revision: abc}}]`)
	r.call()
	var pod map[string]any
	for k, o := range r.rsp.GetDesired().GetResources() {
		if strings.HasPrefix(k, "job/") {
			pod = kube.AsMap(kube.Lookup(o.GetResource(), "spec", "template", "spec").GetStructValue())
		}
	}
	container, _ := pod["containers"].([]any)[0].(map[string]any)
	var env []string
	for _, e := range container["env"].([]any) {
		v, _ := e.(map[string]any)
		if from, is := v["valueFrom"]; is {
			env = append(env, fmt.Sprintf("%v from %v", v["name"], from))
		}
	}
	want := []any{
		[]any{map[string]any{"name": "weights", "persistentVolumeClaim": map[string]any{"claimName": claimName}}, map[string]any{"name": "home", "emptyDir": map[string]any{}}},
		[]string{"HF_TOKEN from map[secretKeyRef:map[key:t name:hf]]"},
		map[string]any{"runAsNonRoot": true, "runAsUser": int64(1), "runAsGroup": int64(2), "fsGroup": int64(3), "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		[]any{"hf://acme/v1"},
	}
	args, _ := container["command"].([]any)
	got := []any{pod["volumes"], env, pod["securityContext"], []any{"hf://" + fmt.Sprint(args[5])}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAdapterDirectory proves that adapters share a directory only if they are the same in every respect.
func TestAdapterDirectory(t *testing.T) {
	seen := map[string]string{}
	for name, tc := range map[string]struct{ owner, target, model string }{
		"First":      {"bot", `{name: v1, adapter: {uri: "hf://acme/v1"}}`, "acme/base"},
		"Owner":      {"other", `{name: v1, adapter: {uri: "hf://acme/v1"}}`, "acme/base"},
		"Target":     {"bot", `{name: V1, adapter: {uri: "hf://acme/v1"}}`, "acme/base"},
		"Repository": {"bot", `{name: v1, adapter: {uri: "hf://acme/v2"}}`, "acme/base"},
		"Bucket":     {"bot", `{name: v1, adapter: {uri: "s3://acme/v1"}}`, "acme/base"},
		"Revision":   {"bot", `{name: v1, adapter: {uri: "hf://acme/v1", revision: a}}`, "acme/base"},
		"Model":      {"bot", `{name: v1, adapter: {uri: "hf://acme/v1"}}`, "acme/next"},
	} {
		r := begin(t, strings.ReplaceAll(claims("=u1"), "acme/base", tc.model), `, targets: [`+tc.target+`]`)
		r.req.Observed.Composite.Resource = kube.With(r.req.GetObserved().GetComposite().GetResource(), structpb.NewStringValue(tc.owner), "metadata", "name")
		r.call()
		all := kube.Lookup(r.rsp.GetDesired().GetComposite().GetResource(), "status", "adapters").GetListValue().GetValues()
		dir := all[0].GetStructValue().GetFields()["directory"].GetStringValue()
		if other, is := seen[dir]; is {
			t.Errorf("%s and %s have the directory %s", name, other, dir)
		}
		seen[dir] = name
	}
}

// TestAdaptersInFleet follows adapters in two clusters, of which the second one gets its claim later.
func TestAdaptersInFleet(t *testing.T) {
	pools := []string{poolIn("east", "of-chat", ""), poolIn("west", "of-chat", "")}
	in := func(of ...string) world {
		return world{"service": {service(ready + `clusters: [{name: east, state: Placed}, {name: west, state: Placed}], ` + claims(of...))}, "pools": pools}
	}
	r := begin(t, claims(), targets("v1 1"))
	composed := func(reason, want string) {
		t.Helper()
		r.call()
		var all []string
		for _, k := range keys(r.rsp) {
			if i := strings.Index(k, "job/"); i >= 0 {
				k = k[:i] + "job"
			}
			all = append(all, k)
		}
		if diff := cmp.Diff(want, strings.Join(all, " ")+", "+fixture.Condition(r.rsp, "AdaptersLoaded")+", "+fixture.Condition(r.rsp, "Answered")); diff != "" {
			t.Errorf("%s\n-want, +got:\n%s", reason, diff)
		}
	}
	r.w = in("east=u1")
	composed("One cluster has a claim.", "cluster/east/job configmap/model-name, FALSE Loading, FALSE NotCreated")
	r.w = in("east=u1", "west=u2")
	composed("The other one follows.", "cluster/east/job cluster/west/job configmap/model-name, FALSE Loading, FALSE NotCreated")
	for k := range r.req.GetObserved().GetResources() {
		if strings.HasPrefix(k, "cluster/east/job") {
			r.done[k] = true
		}
	}
	composed("Each cluster is by itself.", "cluster/east/inferencemodelrewrite cluster/west/job configmap/model-name, FALSE Loading, FALSE NotCreated")
	r.finish()
	composed("Both have it.", "cluster/east/inferencemodelrewrite cluster/west/inferencemodelrewrite configmap/model-name, TRUE Loaded, TRUE Answered")
}

// TestAdapterJobsAreLimited proves that a model has a bounded number of Jobs at once, and that one that runs is never
// left out for another.
func TestAdapterJobsAreLimited(t *testing.T) {
	var all, placed, pools, with []string
	for i := range 16 {
		all = append(all, fmt.Sprintf("v%d 1", i))
	}
	for i := range 10 {
		c := fmt.Sprintf("c%d", i)
		placed, pools, with = append(placed, "{name: "+c+", state: Placed}"), append(pools, poolIn(c, "of-chat", "")), append(with, c+"=u"+c)
	}
	r := begin(t, "", targets(all...))
	// The first clusters come up last.
	for _, from := range []int{5, 0} {
		r.w = world{"service": {service(ready + "clusters: [" + strings.Join(placed, ", ") + "], " + claims(with[from:]...))}, "pools": pools}
		before := map[string]bool{}
		for k := range r.req.GetObserved().GetResources() {
			before[k] = strings.Contains(k, "job/")
		}
		r.call()
		n := 0
		for k := range r.rsp.GetDesired().GetResources() {
			if strings.Contains(k, "job/") {
				n++
			}
			delete(before, k)
		}
		if want := min(128, 16*(10-from)); n != want || len(before) > 0 {
			t.Errorf("from cluster %d on: %d Jobs, want %d, and these are left out: %v", from, n, want, before)
		}
	}
}

// TestTooLarge proves that what no answer can carry is refused, with what to do.
func TestTooLarge(t *testing.T) {
	var names, placed, pools []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("{name: %s%d}", strings.Repeat("x", 240), i))
	}
	for i := range 900 {
		c := fmt.Sprintf("c%d", i)
		placed, pools = append(placed, "{name: "+c+", state: Placed}"), append(pools, poolIn(c, "of-chat", ""))
	}
	req := fixture.Request(t, xr(", targets: ["+strings.Join(names, ", ")+"]"), "")
	w := world{"service": {service(ready + "clusters: [" + strings.Join(placed, ", ") + "], " + routing)}, "pools": pools}
	rsp := reconciled(t, function.Start(t), req, w)
	if got := fixture.Fatals(rsp); !strings.Contains(got, "makes more for the 900 clusters of the service than fits into an answer of 4128768 bytes") {
		t.Errorf("got %q", got)
	}
}
