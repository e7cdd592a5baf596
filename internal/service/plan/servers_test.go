package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestWaitForEngines shows which engines are told how long their model may take to load.
func TestWaitForEngines(t *testing.T) {
	hour := []corev1.EnvVar{{Name: "VLLM_ENGINE_READY_TIMEOUT_S", Value: "3600"}}
	twoNodes := func(l v1alpha1.Launcher) v1alpha1.Role { return v1alpha1.Role{Multinode: multinode(2, l)} }
	startup := func(seconds int32) v1alpha1.Role {
		return v1alpha1.Role{Lifecycle: &v1alpha1.Lifecycle{StartupSeconds: ptr.To(seconds)}}
	}
	cases := map[string]struct {
		reason, args, more string
		role               v1alpha1.Role
		leader, worker     []corev1.EnvVar
	}{
		"One":      {reason: "A single API server waits until the engine has started."},
		"Ranks":    {reason: "Each rank has an API server, which ends after ten minutes.", args: ", -dp, '4'", leader: hour, worker: hour},
		"Servers":  {reason: "So does each of several.", args: ", --api-server-count=2", leader: hour, worker: hour},
		"OneOfAll": {reason: "All ranks have one.", args: ", -dp, '4', --api-server-count, '1'"},
		"External": {reason: "An engine of one rank has one.", args: ", -dp, '4', --data-parallel-rank, '1'"},
		"Variable": {reason: "Nobody knows how many there are.", args: ", --api-server-count, $(N)"},
		"Nodes":    {reason: "Only the leader has API servers.", args: ", -dpl, '1'", role: twoNodes(v1alpha1.LauncherVLLMDataParallel), leader: hour},
		"Hybrid":   {reason: "Each node has some.", args: ", -dp, '4', -dpl, '2', --data-parallel-hybrid-lb, --data-parallel-start-rank, $(RANK)", role: twoNodes(v1alpha1.LauncherNone), leader: hour, worker: hour},
		"Long":     {reason: "It is the time of the startup probe.", args: ", -dp, '4'", role: startup(7200), leader: []corev1.EnvVar{{Name: engineReady, Value: "7200"}}, worker: []corev1.EnvVar{{Name: engineReady, Value: "7200"}}},
		"Short":    {reason: "The startup probe ends the engine before.", args: ", -dp, '4'", role: startup(600)},
		"Own":      {reason: "The user's value stays.", args: ", -dp, '4'", more: ", env: [{name: VLLM_ENGINE_READY_TIMEOUT_S, value: '60'}]"},
		"OwnProbe": {reason: "The role's time does not count then.", args: ", -dp, '4'", more: ", startupProbe: {httpGet: {port: 8000}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := tc.role
			role.Name, role.ComponentType = "w", v1alpha1.ComponentTypeWorker
			role.Template = document(t, `{spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.19.0", args: [m`+tc.args+`]`+tc.more+`}]}}`)
			r, _, errs := planRole(0, role, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff([][]corev1.EnvVar{tc.leader, tc.worker}, [][]corev1.EnvVar{r.Leader.Env, r.Worker.Env}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
