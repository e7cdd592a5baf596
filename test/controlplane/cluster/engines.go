package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/node"
)

// The labels of the pods that the node agent runs: engines and endpoint pickers, and those that load
// weights.
const (
	enginePods = "fusioninfer.io/service"
	loaderPods = "fusioninfer.io/model-loader"
)

// Programs of the images that engines come with, by the names of test/tools/build.sh.
const (
	pickerProgram     = "epp"
	llmdPickerProgram = "llm-d-picker"
	sidecarProgram    = "pd-sidecar"
)

// engineNames are the names by which containers call what stands in for engines.
var engineNames = []string{"vllm", "sglang", "ray", "python", "python3", "hf", "aws"}

// hasten shortens the back-off of containers, and the time between two startup probes.
const hasten = 10

// largePull is how long it takes to pull the image of vLLM that is large.
const largePull = 20 * time.Second

// RunEngines starts a node agent, which runs the pods of engines and endpoint pickers. KWOK has to
// leave them alone.
func (c *Kubernetes) RunEngines() error {
	bin, err := c.installEngines()
	if err != nil {
		return err
	}
	images, err := engineImages()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	c.begin(func(ctx context.Context) error {
		return node.Run(ctx, node.Options{
			Client: client, Selectors: []string{enginePods, loaderPods}, Images: images, Pull: pullFiles, Bin: bin, Hasten: hasten,
			Dir:    filepath.Join(c.dir, "pods"),
			Prefix: strings.TrimSuffix(c.network.prefix, ".0."), NodeIP: c.network.nodeIP(),
			Kubeconfig: c.As, Ports: ports, Start: startContainer,
		})
	})
	return nil
}

// startContainer starts the process of a container in a group of its own. It ends with this process.
func startContainer(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	return launch(cmd)
}

// installEngines builds what stands in for engines, and returns a directory that has it under all of
// its names.
func (c *Kubernetes) installEngines() (string, error) {
	built, err := programs("engine")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(c.dir, "engines")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return "", err
	}
	for _, name := range engineNames {
		if err := os.Symlink(filepath.Join(built, "engine"), filepath.Join(bin, name)); err != nil {
			return "", err
		}
	}
	return bin, nil
}

// engineImages are the images whose containers run. Those without an entrypoint have shells and
// engines.
func engineImages() (map[string]node.Image, error) {
	bin, err := programs(pickerProgram, llmdPickerProgram, sidecarProgram)
	if err != nil {
		return nil, err
	}
	at := func(name string, f func(string, node.Call) (node.Program, error)) node.Image {
		return node.Image{Program: func(c node.Call) (node.Program, error) { return f(filepath.Join(bin, name), c) }}
	}
	sidecar := at(sidecarProgram, runSidecar)
	return map[string]node.Image{
		"vllm-openai":                  {Entrypoint: []string{"vllm", "serve"}},
		"vllm-openai-large":            {Entrypoint: []string{"vllm", "serve"}, Pull: largePull},
		"llm-d":                        {},
		"llm-d-cuda":                   {},
		"sglang":                       {},
		"tritonserver":                 {},
		"busybox":                      {},
		"aws-cli":                      {},
		"epp":                          at(pickerProgram, runPicker),
		"llm-d-router-endpoint-picker": at(llmdPickerProgram, runLLMDPicker),
		"llm-d-router-disagg-sidecar":  sidecar,
		"llm-d-routing-sidecar":        sidecar,
	}, nil
}

// runPicker runs an endpoint picker at free ports, because it listens at all addresses.
func runPicker(bin string, c node.Call) (node.Program, error) {
	p := node.Program{Path: bin, Args: slices.Clone(c.Args), Kubernetes: true, Forward: map[string]string{}}
	free, err := c.Ports(3)
	if err != nil {
		return p, err
	}
	for i, f := range []struct{ name, port string }{{"--grpc-port", "9002"}, {"--grpc-health-port", "9003"}, {"--metrics-port", "9090"}} {
		p.Args = append(p.Args, f.name+"="+strconv.Itoa(free[i]))
		p.Forward[net.JoinHostPort(c.Address, flagValue(c.Args, f.name, f.port))] = address(free[i])
	}
	return p, nil
}

// runLLMDPicker runs the endpoint picker with llm-d's plugins. The one that is built here is older than
// the one of the image, so its configuration is translated.
func runLLMDPicker(bin string, c node.Call) (node.Program, error) {
	p, err := runPicker(bin, c)
	if err != nil {
		return p, err
	}
	// It has no plugins that are experimental.
	p.Args = slices.DeleteFunc(p.Args, func(a string) bool { return strings.HasPrefix(a, "--allow-experimental-plugins") })
	file := flagValue(c.Args, "--config-file", "")
	b, err := os.ReadFile(file) //nolint:gosec // The container's own configuration.
	if err != nil {
		return p, err
	}
	if b, err = olderPickerConfig(b); err != nil {
		return p, err
	}
	older := filepath.Join(c.Dir, "picker.yaml")
	p.Args = append(p.Args, "--config-file="+older)
	return p, os.WriteFile(older, b, 0o600) //nolint:gosec // A file of this container.
}

// runSidecar runs a routing sidecar at free ports. It listens at all addresses, and finds its engine
// at localhost. The one that is built here is older than the one of the image, with other flags.
func runSidecar(bin string, c node.Call) (node.Program, error) {
	p := node.Program{Path: bin, Kubernetes: true}
	free, err := c.Ports(2)
	if err != nil {
		return p, err
	}
	engine := flagValue(c.Args, "--model-server-port", flagValue(c.Args, "--vllm-port", "8001"))
	p.Forward = map[string]string{
		net.JoinHostPort(c.Address, flagValue(c.Args, "--port", "8000")): address(free[0]),
		address(free[1]): net.JoinHostPort(c.Address, engine),
	}
	for _, a := range c.Args {
		name, value, _ := strings.Cut(a, "=")
		switch "--" + strings.TrimLeft(name, "-") {
		case "--port", "--model-server-port", "--vllm-port":
		case "--enable-ssrf-protection":
			// The older one cannot read the selector of an InferencePool of today.
		case "--kv-connector":
			p.Args = append(p.Args, "--connector="+value)
		case "--inference-pool":
			namespace, pool, _ := strings.Cut(value, "/")
			p.Args = append(p.Args, "--inference-pool-namespace="+namespace, "--inference-pool-name="+pool)
		default:
			p.Args = append(p.Args, a)
		}
	}
	p.Args = append(p.Args, fmt.Sprintf("--port=%d", free[0]), fmt.Sprintf("--vllm-port=%d", free[1]))
	return p, nil
}

// flagValue is the value of a flag that is written with one or two dashes, and joined with its value
// or not.
func flagValue(args []string, name, or string) string {
	for i, a := range args {
		flag, value, joined := strings.Cut(a, "=")
		switch {
		case strings.TrimLeft(flag, "-") != strings.TrimLeft(name, "-"):
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return or
}

// olderPlugins are llm-d's plugins by the names of today, with those of the program that is built here.
// It has none of what is "".
var olderPlugins = map[string]string{
	"label-selector-filter":             "by-label-selector",
	"disagg-profile-handler":            "pd-profile-handler",
	"disaggregatedset-rollout-screener": "one-revision-filter",
	"approx-prefix-cache-producer":      "",
	"always-disagg-pd-decider":          "",
}

// olderPickerConfig translates a configuration for llm-d's endpoint picker of today into one for the
// release that is built here.
func olderPickerConfig(config []byte) ([]byte, error) {
	c := map[string]any{}
	if err := yaml.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("the configuration of the endpoint picker is not YAML: %w", err)
	}
	if c["apiVersion"] != "llm-d.ai/v1alpha1" {
		return config, nil
	}
	c["apiVersion"] = "inference.networking.x-k8s.io/v1alpha1"
	all, _ := c["plugins"].([]any)
	var plugins []any
	for _, p := range objects(all) {
		older, changed := olderPlugins[text(p, "type", "")]
		if changed && older == "" {
			continue
		}
		if changed {
			p["type"] = older
		}
		switch older {
		case "pd-profile-handler":
			// It prefills elsewhere whatever the prompt, and tells the sidecar by a plugin of its own.
			p["parameters"] = map[string]any{"threshold": 0}
			plugins = append(plugins, map[string]any{"type": "prefill-header-handler"})
		case "one-revision-filter":
			scope, _, _ := unstructured.NestedString(p, "parameters", "scope", "labelSelector")
			gating, _, _ := unstructured.NestedMap(p, "parameters", "revisionGating")
			gating["scope"] = scope
			p["parameters"] = gating
			filterFirst(c, text(p, "name", older))
		}
		plugins = append(plugins, p)
	}
	c["plugins"] = plugins
	return yaml.Marshal(c)
}

// filterFirst makes a plugin the first of each profile.
func filterFirst(c map[string]any, plugin string) {
	profiles, _ := c["schedulingProfiles"].([]any)
	for _, p := range objects(profiles) {
		all, _ := p["plugins"].([]any)
		p["plugins"] = append([]any{map[string]any{"pluginRef": plugin}}, all...)
	}
}
