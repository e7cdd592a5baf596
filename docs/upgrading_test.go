package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/process"
)

// kubectl answers what the commands of docs/upgrading.md ask, from files beside the working directory.
const kubectl = `#!/bin/sh
case "$*" in
"get compositions"*) exec cat ../composition.yaml ;;
"get inferenceclusters"*) exec cat ../fleet.yaml ;;
*--no-headers*) exec cat ../names ;;
"get inferenceservices.fusioninfer.io "*" --namespace "*) exec cat "../$5.$3.yaml" ;;
esac
echo "unexpected: $*" >&2
exit 1
`

// TestNewComposition runs the commands of docs/upgrading.md that tell what a new Composition refuses or restarts.
func TestNewComposition(t *testing.T) {
	t.Chdir("..")
	all := blocks(read(t, "docs/upgrading.md"), "sh")
	script := slices.IndexFunc(all, func(block string) bool { return strings.HasPrefix(block, "go build .\n") })
	if script < 0 {
		t.Fatal("docs/upgrading.md does not say any more what a new Composition changes")
	}
	function, err := process.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	old := read(t, "package/xr/composition.yaml")
	// The image of vllm-nvidia changes, and four replicas are too many.
	changed := regexp.MustCompile(`(- name: vllm-nvidia\n(?s:.*?)image: vllm/vllm-openai:v0\.27\.)1`).ReplaceAllString(old, "${1}0")
	changed = strings.Replace(changed, "      kind: Input\n", "      kind: Input\n      limits: {replicas: 3}\n", 1)
	// Before, team-b was to have one replica of each service.
	old = strings.Replace(old, "      kind: Input\n", "      kind: Input\n      tenants: [{namespaces: [team-b], limits: {replicas: 1}}]\n", 1)
	files := map[string]string{"bin/kubectl": kubectl, "bin/go": "#!/bin/sh\n", "composition.yaml": old, "work/my-platform/composition.yaml": changed}

	// The commands ask for the clusters of a fleet together, and for one service after the other.
	fleet := parse(t, read(t, "example/plan/fleet.yaml"))
	var clusters, services []any
	for _, item := range fleet["items"].([]any) {
		if item.(map[string]any)["kind"] == "InferenceCluster" {
			clusters = append(clusters, item)
		} else {
			services = append(services, item)
		}
	}
	fleet["items"] = clusters
	files["fleet.yaml"] = encode(t, fleet)
	for _, dir := range []string{"first-service", "model-cache", "quickstart", "invalid"} {
		services = append(services, parse(t, read(t, "example/"+dir+"/xr.yaml")))
	}
	names := strings.Builder{}
	for _, service := range services {
		namespace, name := stored(service.(map[string]any))
		files[namespace+"."+name+".yaml"] = encode(t, service)
		fmt.Fprintf(&names, "%s   %s\n", namespace, name)
	}
	files["names"] = names.String()

	dir := t.TempDir()
	writeFiles(t, dir, files)
	if err := os.Symlink(function, filepath.Join(dir, "work", "function-inferenceservice")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", all[script])
	cmd.Dir = filepath.Join(dir, "work")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	if diff := cmp.Diff("team-b/qwen was refused, and is accepted\nteam-b/mistral was refused, and is accepted\ndefault/qwen restarts its engines\n", string(out)); diff != "" {
		t.Errorf("what restarts: -want, +got:\n%s", diff)
	}
	// llama and chat are refused already.
	want := []string{"InferenceService team-a/llama is refused", "InferenceService default/deepseek-r1 is refused", "InferenceService llm/chat is refused"}
	refused := regexp.MustCompile(`InferenceService (\S+) is refused`).FindAllString(errs.String(), -1)
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("what is refused: -want, +got:\n%s", diff)
	}
}

// stored adds to a service what the API server and Crossplane add, and returns its namespace and name.
func stored(xr map[string]any) (namespace, name string) {
	metadata := xr["metadata"].(map[string]any)
	metadata["resourceVersion"], metadata["generation"] = "7", 3
	metadata["managedFields"] = []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
	xr["spec"].(map[string]any)["crossplane"] = map[string]any{"compositionRef": map[string]any{"name": "inferenceservices.fusioninfer.io"}}
	if xr["status"] == nil {
		xr["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Available"}}}
	}
	return metadata["namespace"].(string), metadata["name"].(string)
}

// writeFiles writes files below a directory. Those that are programs can be run.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, content := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func encode(t *testing.T, object any) string {
	t.Helper()
	b, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
