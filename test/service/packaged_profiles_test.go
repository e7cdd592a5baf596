package service

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
	"github.com/fusioninfer/function-inferenceservice/test/oracle"
)

// TestPackagedProfiles shows that a service with a profile of the packages needs to add no more than its
// model, and that nothing of the profile is doubtful.
func TestPackagedProfiles(t *testing.T) {
	file, err := os.ReadFile("../../package/xr/composition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	composition := fixture.YAML(t, string(file))
	input := kube.Lookup(kube.Lookup(composition, "spec", "pipeline").GetListValue().GetValues()[0].GetStructValue(), "input").GetStructValue()
	input = kube.With(input, structpb.NewStringValue("Fail"), "missingKinds")
	profiles := kube.Lookup(input, "profiles").GetListValue().GetValues()
	if len(profiles) < 10 {
		t.Errorf("want at least 10 profiles, got %d", len(profiles))
	}
	fn := function.Start(t)
	for _, p := range profiles {
		name := kube.Lookup(p.GetStructValue(), "name").GetStringValue()
		t.Run(name, func(t *testing.T) {
			if !regexp.MustCompile(`# [A-Z][A-Za-z ]+: https://[^\n]+\n {6}- name: ` + regexp.QuoteMeta(name) + `\n`).Match(file) {
				t.Error("want a comment before the profile that says where its flags are from")
			}
			req := fixture.Request(t, fixture.Service(fmt.Sprintf("{profileName: %s, roles: [%s]}", name, strings.Join(rolesFor(p.GetStructValue()), ", "))), "")
			req.Input = input
			rsp := fn.Run(t, req)
			if got := fixture.Fatals(rsp); got != "" {
				t.Fatal(got)
			}
			if got := fixture.Condition(rsp, "NoWarnings"); got != "TRUE NothingSuspicious" {
				t.Errorf("want no warnings, got %s", got)
			}
			oracle.Check(t, req, rsp)
		})
	}
}

// rolesFor returns a role for each type that a profile has, with a model, and a router.
func rolesFor(profile *structpb.Struct) []string {
	all := []string{`{name: router, componentType: router, httproute: {parentRefs: [{name: gw}]}}`}
	for _, r := range kube.Lookup(profile, "roles").GetListValue().GetValues() {
		of := kube.Lookup(r.GetStructValue(), "componentType").GetStringValue()
		containers := kube.Lookup(r.GetStructValue(), "template", "spec", "containers").GetListValue().GetValues()
		if of == "router" || len(containers) == 0 {
			continue
		}
		engine := kube.Lookup(containers[0].GetStructValue(), "name").GetStringValue()
		model := "org/model"
		if engine == "sglang" {
			model = "--model-path=org/model"
		}
		all = append(all, fmt.Sprintf(`{name: %s, componentType: %s, template: {spec: {containers: [{name: %s, args: [%s]}]}}}`, of, of, engine, model))
	}
	return all
}
