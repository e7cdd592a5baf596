package service

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
	"github.com/fusioninfer/function-inferenceservice/test/oracle"
)

// packagedInput returns the Input of the packages, and their file. A kind that is missing is an error.
func packagedInput(t *testing.T) (input *structpb.Struct, file []byte) {
	t.Helper()
	file, err := os.ReadFile("../../package/xr/composition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	composition := fixture.YAML(t, string(file))
	input = kube.Lookup(kube.Lookup(composition, "spec", "pipeline").GetListValue().GetValues()[0].GetStructValue(), "input").GetStructValue()
	return kube.With(input, structpb.NewStringValue("Fail"), "missingKinds"), file
}

// TestPackagedProfiles shows that a service with a profile of the packages needs to add no more than its
// model, in its arguments or as spec.model, and that nothing of the profile is doubtful.
func TestPackagedProfiles(t *testing.T) {
	input, file := packagedInput(t)
	profiles := kube.Lookup(input, "profiles").GetListValue().GetValues()
	if len(profiles) < 10 {
		t.Errorf("want at least 10 profiles, got %d", len(profiles))
	}
	fn := function.Start(t)
	run := func(t *testing.T, spec string) *fnv1.RunFunctionResponse {
		t.Helper()
		req := fixture.Request(t, fixture.Service(spec), "")
		req.Input = input
		rsp := fn.Run(t, req)
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		if got := fixture.Condition(rsp, "NoWarnings"); got != "TRUE NothingSuspicious" {
			t.Errorf("want no warnings, got %s", got)
		}
		oracle.Check(t, req, rsp)
		return rsp
	}
	for _, p := range profiles {
		name := kube.Lookup(p.GetStructValue(), "name").GetStringValue()
		t.Run(name, func(t *testing.T) {
			if !regexp.MustCompile(`# [A-Z][A-Za-z ]+: https://[^\n]+\n {6}- name: ` + regexp.QuoteMeta(name) + `\n`).Match(file) {
				t.Error("want a comment before the profile that says where its flags are from")
			}
			run(t, fmt.Sprintf("{profileName: %s, roles: [%s]}", name, strings.Join(rolesFor(p.GetStructValue(), true), ", ")))
			rsp := run(t, fmt.Sprintf(`{model: {uri: "hf://org/model", name: served}, profileName: %s, roles: [%s]}`, name, strings.Join(rolesFor(p.GetStructValue(), false), ", ")))
			checkServedName(t, rsp)
		})
	}
	t.Run("Ray", func(t *testing.T) {
		rsp := run(t, `{model: {uri: "hf://org/model", name: served}, profileName: vllm-nvidia-multinode, roles: [{name: worker, componentType: worker, multinode: {launcher: Ray},
			template: {spec: {containers: [{name: vllm, image: "acme/vllm-with-ray:v0.27.1"}]}}}]}`)
		checkServedName(t, rsp)
	})
}

// checkServedName checks that each node which answers requests, or runs an engine at all, has the model's
// name. Only workers of Ray run no engine of their own.
func checkServedName(t *testing.T, rsp *fnv1.RunFunctionResponse) {
	t.Helper()
	engines := 0
	for key, r := range rsp.GetDesired().GetResources() {
		if !strings.HasPrefix(key, "leaderworkerset/") {
			continue
		}
		for _, of := range []string{"leaderTemplate", "workerTemplate"} {
			containers := kube.Lookup(r.GetResource(), "spec", "leaderWorkerTemplate", of, "spec", "containers").GetListValue().GetValues()
			if len(containers) == 0 {
				continue // One template is for leaders and workers.
			}
			engines++
			var words []string
			for _, field := range []string{"command", "args"} {
				for _, w := range containers[0].GetStructValue().GetFields()[field].GetListValue().GetValues() {
					words = append(words, w.GetStringValue())
				}
			}
			line := strings.Join(words, " ")
			if of == "workerTemplate" && strings.Contains(line, "ray start --address=") {
				continue
			}
			if !strings.Contains(line, "org/model") || !strings.Contains(line+" ", "--served-model-name served ") {
				t.Errorf("%s: want the model and its name in the command of %s, got %s", key, of, line)
			}
		}
	}
	if engines == 0 {
		t.Error("want engines, got none")
	}
}

// rolesFor returns a role for each type that a profile has, with a model in its arguments or without one,
// and a router.
func rolesFor(profile *structpb.Struct, model bool) []string {
	all := []string{`{name: router, componentType: router, httproute: {parentRefs: [{name: gw}]}}`}
	for _, r := range kube.Lookup(profile, "roles").GetListValue().GetValues() {
		of := kube.Lookup(r.GetStructValue(), "componentType").GetStringValue()
		containers := kube.Lookup(r.GetStructValue(), "template", "spec", "containers").GetListValue().GetValues()
		if of == "router" || len(containers) == 0 {
			continue
		}
		if !model {
			all = append(all, fmt.Sprintf(`{name: %s, componentType: %s}`, of, of))
			continue
		}
		engine := kube.Lookup(containers[0].GetStructValue(), "name").GetStringValue()
		arg := "org/model"
		if engine == "sglang" {
			arg = "--model-path=org/model"
		}
		all = append(all, fmt.Sprintf(`{name: %s, componentType: %s, template: {spec: {containers: [{name: %s, args: [%s]}]}}}`, of, of, engine, arg))
	}
	return all
}
