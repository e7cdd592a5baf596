package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An engine is a program that serves models.
type engine string

const (
	vllm   engine = "vllm"
	sglang engine = "sglang"
)

// A config is what a command tells an engine.
type config struct {
	engine engine
	// host and port to listen on.
	host string
	port int
	// loadError is why the model cannot be loaded.
	loadError error
	// models are the names under which the model is served.
	models []string
	// loras are adapters that are there from the start, by their names. The values are paths.
	loras map[string]string
	// runtimeLoras tells that adapters may be loaded later.
	runtimeLoras bool
	// resolverDir has further adapters, which are loaded when a request asks for one. Empty means none.
	resolverDir string
	// model that is loaded: a path, or a name in a hub.
	model string
	// group is how the nodes of the replica find each other.
	group group
	// headless tells that this node serves no requests.
	headless bool
	// transfer tells that the KV cache is transferred between engines.
	transfer bool
	// disaggregation is SGLang's mode: prefill, decode or neither.
	disaggregation string
	bootstrapPort  int
	// shutdown is how long requests may go on after SIGTERM. Without limit it is negative.
	shutdown time.Duration
	// metrics tells that there are metrics.
	metrics bool
	// maxRunning requests are generated at once, and others wait.
	maxRunning int
	// cert and key are files for TLS.
	cert, key string

	startup, token, join time.Duration
	exitCode             string
	address, pod         string
	image, dir           string
	// sideChannel is where other engines ask about the KV cache.
	sideChannelHost string
	sideChannelPort int
}

// A group is the nodes of a replica.
type group struct {
	// nodes is how many there are, and rank which of them this is.
	nodes, rank int
	// at is where the first node waits for the others.
	at string
	// ray tells that Ray connects them.
	ray bool
}

// flags are a command's flags by their long names, with dashes, and their values.
type flags map[string][]string

// short names of flags that matter.
var short = map[string]string{"-n": "--nnodes", "-r": "--node-rank", "-tp": "--tensor-parallel-size", "-pp": "--pipeline-parallel-size"}

// read reads flags. A word that is no flag is a value of the flag before it, so that the model in
// front of all flags is the value of "".
func read(args []string) flags {
	f, last := flags{}, ""
	for _, a := range args {
		name, value, joined := strings.Cut(a, "=")
		if long := short[name]; long != "" {
			name = long
		}
		if !strings.HasPrefix(name, "--") {
			f[last] = append(f[last], a)
			continue
		}
		last = "--" + strings.ReplaceAll(strings.TrimPrefix(name, "--"), "_", "-")
		f[last] = nil
		if joined {
			f[last] = []string{value}
		}
	}
	return f
}

func (f flags) has(name string) bool { _, ok := f[name]; return ok }

func (f flags) text(or string, names ...string) string {
	for _, n := range names {
		if v := f[n]; len(v) > 0 {
			return v[0]
		}
	}
	return or
}

func (f flags) number(or int, names ...string) int {
	n, err := strconv.Atoi(f.text("", names...))
	if err != nil {
		return or
	}
	return n
}

// parse reads the arguments of an engine.
func parse(e engine, args []string, env func(string) string) config {
	f := read(args)
	c := config{
		engine:   e,
		host:     f.text(map[engine]string{vllm: "0.0.0.0", sglang: "127.0.0.1"}[e], "--host"),
		port:     f.number(map[engine]int{vllm: 8000, sglang: 30000}[e], "--port"),
		models:   f["--served-model-name"],
		headless: f.has("--headless"),
		loras:    adapters(f["--lora-modules"]),
		cert:     f.text("", "--ssl-certfile"),
		key:      f.text("", "--ssl-keyfile"),

		runtimeLoras:  f.has("--enable-lora") && slices.Contains([]string{"1", "true"}, strings.ToLower(env("VLLM_ALLOW_RUNTIME_LORA_UPDATING"))),
		transfer:      f.has("--kv-transfer-config"),
		metrics:       e == vllm || f.has("--enable-metrics"),
		maxRunning:    f.number(256, "--max-num-seqs", "--max-running-requests"),
		bootstrapPort: f.number(8998, "--disaggregation-bootstrap-port"),

		disaggregation: f.text("", "--disaggregation-mode"),

		startup:  duration(env, "STANDIN_STARTUP_SECONDS", time.Second, 500*time.Millisecond),
		join:     duration(env, "STANDIN_JOIN_SECONDS", time.Second, joinTimeout),
		token:    duration(env, "STANDIN_TOKEN_MILLISECONDS", time.Millisecond, 20*time.Millisecond),
		exitCode: env("STANDIN_EXIT_CODE"),
		address:  or(env("STANDIN_ADDRESS"), "127.0.0.1"),
		pod:      or(env("STANDIN_POD"), or(env("POD_NAME"), env("HOSTNAME"))),
		image:    env("STANDIN_IMAGE"),
		dir:      or(env("STANDIN_DIR"), "."),

		sideChannelHost: or(env("VLLM_NIXL_SIDE_CHANNEL_HOST"), "localhost"),
	}
	c.sideChannelPort, _ = strconv.Atoi(or(env("VLLM_NIXL_SIDE_CHANNEL_PORT"), "5600"))
	model := f.text(f.text("Qwen/Qwen3-0.6B", "--model", "--model-path"), "")
	c.model = inside(model, env("STANDIN_MOUNTS"))
	if len(c.models) == 0 {
		c.models = []string{model}
	}
	if plugins := env("VLLM_PLUGINS"); c.runtimeLoras && (plugins == "" || slices.Contains(strings.Split(plugins, ","), "lora_filesystem_resolver")) {
		c.resolverDir = env("VLLM_LORA_RESOLVER_CACHE_DIR")
	}
	c.loadError = loads(f.text("", "--model", "--model-path"), env("STANDIN_MOUNTS"))
	for i, m := range c.models {
		c.models[i] = inside(m, env("STANDIN_MOUNTS"))
	}
	// vLLM cuts the requests that run, unless it is told to wait. SGLang waits for all of them.
	c.shutdown = time.Duration(f.number(0, "--shutdown-timeout")) * time.Second
	if e == sglang {
		c.shutdown = -1
	}
	c.group = nodes(e, f, env)
	return c
}

// inside is what a container calls a path of this machine.
func inside(path, mounts string) string {
	for line := range strings.Lines(mounts) {
		dir, at, _ := strings.Cut(strings.TrimSpace(line), "=")
		if rest, ok := strings.CutPrefix(path, dir); ok && dir != "" && (rest == "" || rest[0] == '/') {
			return at + rest
		}
	}
	return path
}

// nodes reads how the nodes of a replica find each other.
func nodes(e engine, f flags, env func(string) string) group {
	g := group{nodes: f.number(1, "--nnodes"), rank: f.number(0, "--node-rank")}
	size, local := f.number(1, "--data-parallel-size"), f.number(0, "--data-parallel-size-local")
	switch {
	case e == sglang:
		g.at = f.text("", "--dist-init-addr", "--nccl-init-addr")
	case f.text("", "--distributed-executor-backend") == "ray":
		g.ray = true
		g.nodes, _ = strconv.Atoi(or(env("LWS_GROUP_SIZE"), "1"))
	case g.nodes > 1:
		g.at = net.JoinHostPort(f.text("", "--master-addr"), strconv.Itoa(f.number(29501, "--master-port")))
	case local > 0 && size > local:
		g.nodes = (size + local - 1) / local
		g.rank = f.number(0, "--data-parallel-start-rank") / local
		g.at = net.JoinHostPort(f.text("127.0.0.1", "--data-parallel-address"), strconv.Itoa(f.number(29550, "--data-parallel-rpc-port")))
	}
	return g
}

// adapters reads the values of --lora-modules: NAME=PATH, or JSON.
func adapters(values []string) map[string]string {
	all := map[string]string{}
	for _, v := range values {
		var l struct{ Name, Path string }
		if json.Unmarshal([]byte(v), &l) == nil && l.Name != "" {
			all[l.Name] = l.Path
		} else if name, path, ok := strings.Cut(v, "="); ok {
			all[name] = path
		}
	}
	return all
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// version of the engine: the tag of its image.
func (c config) version() string {
	name, _, _ := strings.Cut(c.image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return strings.TrimPrefix(name[i+1:], "v")
	}
	return "0"
}

// check refuses a flag that this version of the engine does not have.
func (c config) check() error {
	if c.loadError != nil {
		return c.loadError
	}
	major, minor := 0, 0
	if n, _ := fmt.Sscanf(c.version(), "%d.%d", &major, &minor); n < 2 {
		return nil
	}
	if c.engine == vllm && c.shutdown > 0 && major == 0 && minor < 18 {
		return errors.New("error: unrecognized arguments: --shutdown-timeout")
	}
	return nil
}

// listenAt is where an engine listens that is told a host. It returns "" for a host that nobody
// reaches from outside the pod.
func (c config) listenAt(port int) string {
	host := c.host
	switch {
	case host == "0.0.0.0", host == "::", host == "":
		host = c.address
	case host == "localhost", host == "::1", strings.HasPrefix(host, "127.") && host != c.address:
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
