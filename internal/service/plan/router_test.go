package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

const (
	worker    = v1alpha1.ComponentTypeWorker
	prefiller = v1alpha1.ComponentTypePrefiller
	decoder   = v1alpha1.ComponentTypeDecoder
)

// behind makes a service of a router and the roles of some types, and plans the
// router.
func behind(router v1alpha1.Role, in *inputv1alpha1.Input, types ...v1alpha1.ComponentType) (*Router, []Warning, field.ErrorList) {
	router.Name, router.ComponentType = "router", v1alpha1.ComponentTypeRouter
	spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{router}}
	var serving []*Role
	for i, t := range types {
		name := string(t)
		spec.Roles = append(spec.Roles, v1alpha1.Role{Name: name, ComponentType: t})
		serving = append(serving, &Role{Name: name, Type: t, Port: defaultPort, path: rolePath(i + 1)})
	}
	inputv1alpha1.Default(in)
	return planRouter(0, router, spec, in, serving, newRouteAccess(naming.Identity{Name: "svc", Namespace: "team"}, spec, in, newTenantPolicy(naming.Identity{Name: "svc", Namespace: "team"}, in), &scheduling.Snapshot{}), false)
}

func TestPlanRouterConfig(t *testing.T) {
	pinned := func(d inputv1alpha1.Dialect) inputv1alpha1.Input {
		return inputv1alpha1.Input{EndpointPicker: inputv1alpha1.EndpointPickerSettings{Image: "mirror/epp:1", Dialect: d}}
	}
	design := testConfig(t, "good/gaie/advanced-of-the-design")
	forLLMD := testConfig(t, "good/llmd/queue")
	forBoth := testConfig(t, "good/gaie/defaults-filled-in")
	disaggregating := testConfig(t, "good/llmd/disaggregation")
	models := []v1alpha1.ServedModel{{Name: "m"}}

	type want struct {
		Strategy      v1alpha1.RoutingStrategy
		Disaggregated bool
		Dialect       inputv1alpha1.Dialect
		Image         string
		Config        string
	}
	cases := map[string]struct {
		reason string
		router v1alpha1.Role
		in     inputv1alpha1.Input
		types  []v1alpha1.ComponentType
		want   want
		errs   []string
	}{
		"Default": {
			reason: "Without a strategy it is prefix-cache, in the form and with the image of the design documents.",
			types:  []v1alpha1.ComponentType{worker},
			want:   want{v1alpha1.StrategyPrefixCache, false, inputv1alpha1.DialectGAIE, inputv1alpha1.DefaultImageGAIE, generated(t, "gaie/prefix-cache")},
		},
		"DefaultWithPrefillAndDecode": {
			reason: "Where both are present it is pd-disaggregation, which only llm-d can do.",
			types:  []v1alpha1.ComponentType{prefiller, decoder},
			want:   want{v1alpha1.StrategyPDDisaggregation, true, inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, generated(t, "llmd/pd-disaggregation")},
		},
		"WorkersBesidePrefillAndDecode": {
			reason: "Workers are picked like decoders.",
			types:  []v1alpha1.ComponentType{worker, prefiller, decoder},
			want:   want{v1alpha1.StrategyPDDisaggregation, true, inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, generated(t, "llmd/pd-disaggregation-with-workers")},
		},
		"OtherStrategyWithPrefillAndDecode": {
			reason: "An explicit strategy wins.",
			router: v1alpha1.Role{Strategy: v1alpha1.StrategyQueueSize},
			types:  []v1alpha1.ComponentType{prefiller, decoder},
			want:   want{v1alpha1.StrategyQueueSize, false, inputv1alpha1.DialectGAIE, inputv1alpha1.DefaultImageGAIE, generated(t, "gaie/queue-size")},
		},
		"Models": {
			reason: "Models need llm-d, and any strategy works there.",
			router: v1alpha1.Role{Strategy: v1alpha1.StrategyLoRAAffinity, ServedModels: models},
			types:  []v1alpha1.ComponentType{worker},
			want:   want{v1alpha1.StrategyLoRAAffinity, false, inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, generated(t, "llmd/lora-affinity")},
		},
		"PinnedLLMD": {
			reason: "A pinned image gets the configuration of its dialect.",
			in:     pinned(inputv1alpha1.DialectLLMD),
			types:  []v1alpha1.ComponentType{worker},
			want:   want{v1alpha1.StrategyPrefixCache, false, inputv1alpha1.DialectLLMD, "mirror/epp:1", generated(t, "llmd/prefix-cache")},
		},
		"Mirror": {
			reason: "Images replaces the default of a dialect.",
			in:     inputv1alpha1.Input{EndpointPicker: inputv1alpha1.EndpointPickerSettings{Images: inputv1alpha1.DialectImages{GAIE: "mirror/gaie:1"}}},
			types:  []v1alpha1.ComponentType{worker},
			want:   want{v1alpha1.StrategyPrefixCache, false, inputv1alpha1.DialectGAIE, "mirror/gaie:1", generated(t, "gaie/prefix-cache")},
		},
		"PinnedGAIECannotDisaggregate": {
			reason: "The pinned image cannot do it, and says so.",
			in:     pinned(inputv1alpha1.DialectGAIE),
			types:  []v1alpha1.ComponentType{prefiller, decoder},
			errs:   []string{"spec.roles[0].strategy"},
		},
		"PinnedGAIEHasNoModels": {
			reason: "Nor models; both problems are named at once.",
			router: v1alpha1.Role{ServedModels: models},
			in:     pinned(inputv1alpha1.DialectGAIE),
			types:  []v1alpha1.ComponentType{prefiller, decoder},
			errs:   []string{"spec.roles[0].servedModels", "spec.roles[0].strategy"},
		},
		"OwnConfig": {
			reason: "A configuration wins over the strategy and is passed on byte for byte.",
			router: v1alpha1.Role{Strategy: v1alpha1.StrategyQueueSize, EndpointPickerConfig: design},
			types:  []v1alpha1.ComponentType{worker},
			want:   want{"", false, inputv1alpha1.DialectGAIE, inputv1alpha1.DefaultImageGAIE, design},
		},
		"OwnConfigForLLMD": {
			reason: "Its apiVersion chooses the image.",
			router: v1alpha1.Role{EndpointPickerConfig: forLLMD},
			types:  []v1alpha1.ComponentType{worker},
			want:   want{"", false, inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, forLLMD},
		},
		"OwnConfigOfBoth": {
			reason: "The older apiVersion is read by llm-d too, where models need it.",
			router: v1alpha1.Role{EndpointPickerConfig: forBoth, ServedModels: models},
			types:  []v1alpha1.ComponentType{worker},
			want:   want{"", false, inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, forBoth},
		},
		"OwnConfigThatDisaggregates": {
			reason: "With prefill and decode a configuration of one's own disaggregates.",
			router: v1alpha1.Role{EndpointPickerConfig: disaggregating},
			types:  []v1alpha1.ComponentType{prefiller, decoder},
			want:   want{"", true, inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, disaggregating},
		},
		"OwnConfigAgainstThePin": {
			reason: "An image of the other dialect does not read it.",
			router: v1alpha1.Role{EndpointPickerConfig: forLLMD},
			in:     pinned(inputv1alpha1.DialectGAIE),
			types:  []v1alpha1.ComponentType{worker},
			errs:   []string{"spec.roles[0].endpointPickerConfig.apiVersion"},
		},
		"OwnConfigThatIsWrong": {
			reason: "What the endpoint picker would refuse is refused here, with its path.",
			router: v1alpha1.Role{EndpointPickerConfig: strings.Replace(design, "- pluginRef: max", "- pluginRef: mex", 1)},
			types:  []v1alpha1.ComponentType{worker},
			errs:   []string{"spec.roles[0].endpointPickerConfig.schedulingProfiles[0].plugins[0].pluginRef"},
		},
		"DesignConfigForLLMD": {
			reason: "llm-d refuses parameters that the older endpoint picker took.",
			router: v1alpha1.Role{EndpointPickerConfig: design, ServedModels: models},
			types:  []v1alpha1.ComponentType{worker},
			errs: []string{
				"spec.roles[0].endpointPickerConfig.plugins[0].parameters.blockSize",
				"spec.roles[0].endpointPickerConfig.plugins[0].parameters.lruCapacityPerServer",
				"spec.roles[0].endpointPickerConfig.plugins[0].parameters.maxPrefixBlocksToMatch",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, _, errs := behind(tc.router, &tc.in, tc.types...)
			if diff := cmp.Diff(tc.errs, paths(errs), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s\nerrors at: -want, +got:\n%s\n%v", tc.reason, diff, errs)
			}
			if len(tc.errs) > 0 {
				return
			}
			if diff := cmp.Diff(tc.want, want{r.Strategy, r.Disaggregated, r.Dialect, r.Image, r.Config}); diff != "" {
				t.Errorf("%s\nplanRouter(): -want, +got:\n%s", tc.reason, diff)
			}
			// Only a configuration of the function's own is screened.
			if screened := tc.want.Strategy == v1alpha1.StrategyPDDisaggregation; r.ScreensRevisions != screened {
				t.Errorf("%s Screens revisions: %t, want %t", tc.reason, r.ScreensRevisions, screened)
			}
		})
	}
}

// TestPlanRouterOwnImage proves that an image of the platform team's own may have plugins that no release has,
// and that another default image may not.
func TestPlanRouterOwnImage(t *testing.T) {
	config := strings.Replace(testConfig(t, "good/llmd/queue"), "type: queue-scorer", "type: my-scorer\n  name: queue-scorer", 1)
	const at = "spec.roles[0].endpointPickerConfig.plugins[0].type"
	cases := map[string]struct {
		reason   string
		picker   inputv1alpha1.EndpointPickerSettings
		warnings []string
		errs     []string
	}{
		"Default": {reason: "The release is known.", errs: []string{at}},
		"Mirror":  {reason: "A mirror has the same.", picker: inputv1alpha1.EndpointPickerSettings{Images: inputv1alpha1.DialectImages{LLMD: "mirror/epp:1"}}, errs: []string{at}},
		"Own":     {reason: "Only the platform team knows what is in it.", picker: inputv1alpha1.EndpointPickerSettings{Image: "own/epp:1", Dialect: inputv1alpha1.DialectLLMD}, warnings: []string{at}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, warnings, errs := behind(v1alpha1.Role{EndpointPickerConfig: config}, &inputv1alpha1.Input{EndpointPicker: tc.picker}, worker)
			if diff := cmp.Diff(tc.errs, paths(errs), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%v", tc.reason, diff, errs)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.Path)
			}
			if diff := cmp.Diff(tc.warnings, got); diff != "" {
				t.Errorf("%s\nwarnings at: -want, +got:\n%s\n%v", tc.reason, diff, warnings)
			}
			if len(tc.errs) == 0 && r.Config != config {
				t.Errorf("%s: the configuration is changed:\n%s", tc.reason, r.Config)
			}
		})
	}
}

func TestPlanRouterPool(t *testing.T) {
	label := func(t v1alpha1.ComponentType) map[string]string {
		return map[string]string{naming.LabelComponentType: string(t)}
	}
	cases := map[string]struct {
		reason   string
		strategy v1alpha1.RoutingStrategy
		roles    []*Role
		selector map[string]string
		port     int32
		warnings int
		errs     []string
	}{
		"Workers": {
			reason:   "The selector of the design documents, and the engine's port.",
			roles:    []*Role{{Name: "a", Type: worker, Port: 9000}, {Name: "b", Type: worker, Port: 9000}},
			selector: label(worker), port: 9000,
		},
		"Nobody": {
			reason:   "Roles that could not be planned have their own errors.",
			selector: label(worker), port: 8000,
		},
		"Disaggregated": {
			reason:   "One pool has all pods; the endpoint picker tells them apart.",
			roles:    []*Role{{Name: "p", Type: prefiller, Port: 8000}, {Name: "d", Type: decoder, Port: 8000}, {Name: "w", Type: worker, Port: 8000}},
			selector: map[string]string{}, port: 8000,
		},
		"WorkersAlone": {
			reason:   "Without disaggregation prefill and decode pods get nothing beside workers, which is worth a warning; their ports do not matter.",
			strategy: v1alpha1.StrategyPrefixCache,
			roles:    []*Role{{Name: "p", Type: prefiller, Port: 8001}, {Name: "d", Type: decoder, Port: 8002}, {Name: "w", Type: worker, Port: 8000}},
			selector: label(worker), port: 8000, warnings: 1,
		},
		"NoWorkers": {
			reason:   "Without disaggregation and workers every pod answers.",
			strategy: v1alpha1.StrategyPrefixCache,
			roles:    []*Role{{Name: "p", Type: prefiller, Port: 8000}, {Name: "d", Type: decoder, Port: 8000}},
			selector: map[string]string{}, port: 8000, warnings: 1,
		},
		"DecodersOnly": {
			reason:   "A single type is selected by its label.",
			roles:    []*Role{{Name: "d", Type: decoder, Port: 8000}},
			selector: label(decoder), port: 8000,
		},
		"Ports": {
			reason:   "A pool has one port: the second role is told which.",
			roles:    []*Role{{Name: "a", Type: worker, Port: 8000}, {Name: "b", Type: worker, Port: 9000, path: rolePath(2)}},
			selector: label(worker), port: 8000,
			errs: []string{"spec.roles[2].template.spec.containers"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			router := v1alpha1.Role{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, Strategy: tc.strategy}
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{router}}
			for _, r := range tc.roles {
				spec.Roles = append(spec.Roles, v1alpha1.Role{Name: r.Name, ComponentType: r.Type})
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			r, warnings, errs := planRouter(0, router, spec, in, tc.roles, newRouteAccess(naming.Identity{}, spec, in, newTenantPolicy(naming.Identity{}, in), &scheduling.Snapshot{}), false)
			if diff := cmp.Diff(tc.errs, paths(errs), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%v", tc.reason, diff, errs)
			}
			if diff := cmp.Diff(tc.selector, r.Selector); diff != "" {
				t.Errorf("%s\nselector: -want, +got:\n%s", tc.reason, diff)
			}
			if r.Port != tc.port || len(warnings) != tc.warnings {
				t.Errorf("%s\nport %d, warnings %v; want port %d, %d warnings", tc.reason, r.Port, warnings, tc.port, tc.warnings)
			}
		})
	}
}

func asDocument(t *testing.T, m map[string]any) *kube.Document {
	t.Helper()
	if m == nil {
		return nil
	}
	d, err := kube.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPlanRouterRoute(t *testing.T) {
	parents := []inputv1alpha1.ParentRef{{Name: "shared"}}
	named := map[string]any{"parentRefs": []any{map[string]any{"name": "mine"}}}
	own := map[string]any{"gatewayClassName": "istio", "listeners": []any{map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP"}}}
	cases := map[string]struct {
		reason         string
		route, gateway map[string]any
		parents        []inputv1alpha1.ParentRef
		hasRoute       bool
		want           []inputv1alpha1.ParentRef
		warnings       int
		errs           []string
	}{
		"Nothing":             {reason: "Without any gateway there is no route."},
		"RouteWithoutGateway": {reason: "A route that nothing carries is not made, and that is said.", route: map[string]any{"hostnames": []any{"a.example.com"}}, warnings: 1},
		"Named":               {reason: "The user's gateways win.", route: named, parents: parents, hasRoute: true},
		"Platform":            {reason: "Else those of the platform team.", parents: parents, hasRoute: true, want: parents},
		"OwnGateway":          {reason: "The service's own gateway wins over those.", gateway: own, parents: parents, hasRoute: true},
		"DefaultGateways":     {reason: "A route may use the cluster's default gateways.", route: map[string]any{"useDefaultGateways": "All"}, hasRoute: true},
		"WholeObject": {
			reason: "A whole HTTPRoute instead of its spec.",
			route:  map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{}, "spec": named},
			errs:   []string{"apiVersion", "kind", "metadata", "spec"},
		},
		"Typo":       {reason: "A field that the spec lacks.", route: map[string]any{"parentRef": []any{}}, errs: []string{"parentRef"}},
		"WrongTypes": {reason: "Values of the wrong type.", route: map[string]any{"hostnames": "a.example.com", "parentRefs": []any{"mine"}}, errs: []string{"hostnames", "parentRefs[0]"}, hasRoute: true},
		"BadValues": {
			reason: "Values that the API refuses.",
			route: map[string]any{
				"parentRefs": []any{map[string]any{"namespace": "infra"}},
				"hostnames":  []any{"https://a.example.com", "10.0.0.1", "*.example.com"},
				"rules":      []any{map[string]any{"backendRefs": []any{map[string]any{"port": int64(1)}}, "timeouts": map[string]any{"request": "5 minutes"}}},
			},
			hasRoute: true,
			errs:     []string{"hostnames[0]", "hostnames[1]", "parentRefs[0].name", "rules[0].backendRefs[0].name", "rules[0].timeouts.request"},
		},
		"EmptyGateway": {reason: "A gateway that is none.", gateway: map[string]any{}, hasRoute: true, errs: []string{"gatewayClassName", "listeners"}},
		"BadListeners": {
			reason: "Listeners that the API refuses.",
			gateway: map[string]any{"gatewayClassName": "istio", "listeners": []any{
				map[string]any{"name": "http", "port": int64(0), "protocol": "HTTP"},
				map[string]any{"name": "http", "port": int64(443), "hostname": "A"},
			}},
			hasRoute: true,
			errs:     []string{"listeners[0].port", "listeners[1].hostname", "listeners[1].name", "listeners[1].protocol"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{Gateway: inputv1alpha1.GatewaySettings{ParentRefs: tc.parents}}
			in.Routes = &inputv1alpha1.Routes{AllowedParentRefs: []inputv1alpha1.AllowedParentRef{{Namespace: "*"}}, AllowedHostnames: []string{"*"}, ExperimentalFields: inputv1alpha1.Allow}
			r, warnings, errs := behind(v1alpha1.Role{HTTPRoute: asDocument(t, tc.route), Gateway: asDocument(t, tc.gateway)}, in, worker)
			got := paths(errs)
			for i := range got {
				got[i] = strings.TrimPrefix(strings.TrimPrefix(got[i], "spec.roles[0].httproute."), "spec.roles[0].gateway.")
			}
			if diff := cmp.Diff(tc.errs, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%v", tc.reason, diff, errs)
			}
			if r.HasRoute != tc.hasRoute || r.HasGateway != (tc.gateway != nil) || len(warnings) != tc.warnings {
				t.Errorf("%s\nHasRoute %t, HasGateway %t, warnings %v", tc.reason, r.HasRoute, r.HasGateway, warnings)
			}
			if diff := cmp.Diff(tc.want, r.Parents, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nparents: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func paths(errs field.ErrorList) []string {
	var all []string
	for _, e := range errs {
		all = append(all, e.Field)
	}
	slices.Sort(all)
	return all
}

func generated(t *testing.T, name string) string { t.Helper(); return testConfig(t, "generated/"+name) }

func testConfig(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "epp", "testdata", filepath.Clean(name)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
