package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	env := map[string]string{"LWS_GROUP_SIZE": "4", "STANDIN_MOUNTS": "/tmp/v/models=/models\n/tmp/v/other=/other"}
	type summary struct {
		At       string
		Models   []string
		Group    group
		Headless bool
	}
	cases := map[string]struct {
		reason string
		engine engine
		args   string
		want   summary
	}{
		"VLLM": {
			reason: "The model comes first, and the port by default.",
			engine: vllm, args: "Qwen/Qwen3-8B --enforce-eager",
			want: summary{At: "127.9.0.1:8000", Models: []string{"Qwen/Qwen3-8B"}, Group: group{nodes: 1}},
		},
		"VLLMServedNames": {
			reason: "A model may have several names, and flags may be joined with their values.",
			engine: vllm, args: "--model=M --served_model_name a b --port=8200",
			want: summary{At: "127.9.0.1:8200", Models: []string{"a", "b"}, Group: group{nodes: 1}},
		},
		"VLLMMount": {
			reason: "A model in a volume is called as its container calls it.",
			engine: vllm, args: "/tmp/v/models/llama",
			want: summary{At: "127.9.0.1:8000", Models: []string{"/models/llama"}, Group: group{nodes: 1}},
		},
		"VLLMNodes": {
			reason: "The flags that the launcher adds.",
			engine: vllm, args: "--model=M --nnodes 2 --node-rank 1 --master-addr 127.9.0.7 --headless",
			want: summary{At: "127.9.0.1:8000", Models: []string{"M"}, Group: group{nodes: 2, rank: 1, at: "127.9.0.7:29501"}, Headless: true},
		},
		"VLLMRay": {
			reason: "Ray's cluster has as many nodes as the group.",
			engine: vllm, args: "--model M --distributed-executor-backend ray",
			want: summary{At: "127.9.0.1:8000", Models: []string{"M"}, Group: group{nodes: 4, ray: true}},
		},
		"VLLMDataParallel": {
			reason: "The ranks of a node are consecutive.",
			engine: vllm, args: "M --data-parallel-size 4 --data-parallel-size-local 2 --data-parallel-start-rank 2 --data-parallel-address 127.9.0.7 --data-parallel-rpc-port 5555",
			want: summary{At: "127.9.0.1:8000", Models: []string{"M"}, Group: group{nodes: 2, rank: 1, at: "127.9.0.7:5555"}},
		},
		"SGLang": {
			reason: "Without --host it listens where nobody reaches it.",
			engine: sglang, args: "--model-path M",
			want: summary{Models: []string{"M"}, Group: group{nodes: 1}},
		},
		"SGLangNodes": {
			reason: "The flags that the launcher adds.",
			engine: sglang, args: "--model-path M --dist-init-addr 127.9.0.7:20000 --nnodes 2 --node-rank 0 --host 0.0.0.0 --port 30000",
			want: summary{At: "127.9.0.1:30000", Models: []string{"M"}, Group: group{nodes: 2, at: "127.9.0.7:20000"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := parse(tc.engine, strings.Fields(tc.args), func(n string) string { return env[n] })
			c.address = "127.9.0.1"
			got := summary{At: c.listenAt(c.port), Models: c.models, Group: c.group, Headless: c.headless}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(group{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		image, args string
		version     string
		refused     bool
	}{
		"Tag":               {image: "vllm/vllm-openai:v0.11.0", version: "0.11.0"},
		"PortOfTheRegistry": {image: "registry:5000/vllm", version: "0"},
		"Digest":            {image: "vllm:v0.19.0@sha256:00", args: "--shutdown-timeout 5", version: "0.19.0"},
		"OldWithNewFlag":    {image: "vllm:v0.11.0", args: "--shutdown-timeout 5", version: "0.11.0", refused: true},
		"Latest":            {image: "vllm:latest", args: "--shutdown-timeout 5", version: "latest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := parse(vllm, strings.Fields(tc.args), func(n string) string { return map[string]string{"STANDIN_IMAGE": tc.image}[n] })
			if got := c.version(); got != tc.version {
				t.Errorf("version %q, want %q", got, tc.version)
			}
			if err := c.check(); (err != nil) != tc.refused {
				t.Errorf("refused: %v, want %v", err, tc.refused)
			}
		})
	}
}

// quick is an engine that generates at once.
func quick(args string) *server {
	c := parse(vllm, strings.Fields(args), func(n string) string {
		return map[string]string{"STANDIN_POD": "pod-0", "STANDIN_TOKEN_MILLISECONDS": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}[n]
	})
	return newServer(c)
}

func ask(t *testing.T, s *server, method, path, body string) (int, string, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String(), w.Header()
}

func TestCompletions(t *testing.T) {
	s := quick("M --enable-lora --lora-modules tuned=/a")
	cases := map[string]struct {
		path, body string
		code       int
		want       []string
	}{
		"Chat":      {path: "/v1/chat/completions", body: `{"model":"M","max_tokens":3,"messages":[{"role":"user","content":"a b"}]}`, code: 200, want: []string{`"content":"pod-0 serves M: 1 2"`, `"prompt_tokens":2`, `"chat.completion"`}},
		"Text":      {path: "/v1/completions", body: `{"model":"M","max_tokens":1,"prompt":"a"}`, code: 200, want: []string{`"text":"pod-0 serves M:"`, `"completion_tokens":1`}},
		"Adapter":   {path: "/v1/completions", body: `{"model":"tuned","max_tokens":1,"prompt":"a"}`, code: 200, want: []string{`pod-0 serves tuned:`}},
		"Unknown":   {path: "/v1/completions", body: `{"model":"other"}`, code: 404, want: []string{"The model `other` does not exist."}},
		"NoJSON":    {path: "/v1/completions", body: `{`, code: 400},
		"Streaming": {path: "/v1/chat/completions", body: `{"model":"M","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`, code: 200, want: []string{"data: {", `"content":" 1"`, `"finish_reason":"length"`, `"usage"`, "data: [DONE]\n\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, body, h := ask(t, s, http.MethodPost, tc.path, tc.body)
			if code != tc.code || h.Get("x-served-by") != "pod-0" {
				t.Errorf("answer %d by %q, want %d by pod-0: %s", code, h.Get("x-served-by"), tc.code, body)
			}
			for _, w := range tc.want {
				if !strings.Contains(body, w) {
					t.Errorf("answer lacks %s:\n%s", w, body)
				}
			}
		})
	}
}

func TestLora(t *testing.T) {
	s := quick("M --enable-lora")
	steps := []struct {
		path, body string
		code       int
		models     string
	}{
		{"/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`, 200, "M a"},
		{"/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`, 400, "M a"},
		{"/v1/load_lora_adapter", `{"lora_name":"b"}`, 400, "M a"},
		{"/v1/unload_lora_adapter", `{"lora_name":"a"}`, 200, "M"},
		{"/v1/unload_lora_adapter", `{"lora_name":"a"}`, 404, "M"},
	}
	for _, step := range steps {
		if code, body, _ := ask(t, s, http.MethodPost, step.path, step.body); code != step.code {
			t.Errorf("%s %s: answer %d, want %d: %s", step.path, step.body, code, step.code, body)
		}
		_, body, _ := ask(t, s, http.MethodGet, "/v1/models", "")
		var l struct{ Data []struct{ ID string } }
		if err := json.Unmarshal([]byte(body), &l); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range l.Data {
			names = append(names, m.ID)
		}
		if got := strings.Join(names, " "); got != step.models {
			t.Errorf("after %s %s: models %s, want %s", step.path, step.body, got, step.models)
		}
	}
	if code, _, _ := ask(t, quick("M"), http.MethodPost, "/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`); code != http.StatusNotFound {
		t.Errorf("without --enable-lora: answer %d, want 404", code)
	}
}

// TestResolver proves that an adapter on the disk is found when a request asks for it, also if it came there
// later.
func TestResolver(t *testing.T) {
	dir := t.TempDir()
	s := quick("vllm-model --served-model-name M --enable-lora")
	s.resolverDir = dir
	request := func(model string) (int, string) {
		code, body, _ := ask(t, s, http.MethodPost, "/v1/completions", `{"model":"`+model+`","prompt":"a","max_tokens":1}`)
		var answer struct{ Model string }
		_ = json.Unmarshal([]byte(body), &answer)
		return code, answer.Model
	}
	if code, _ := request("a"); code != http.StatusNotFound {
		t.Errorf("without the adapter: answer %d", code)
	}
	for name, config := range map[string]string{
		"a":     `{"peft_type": "LORA", "base_model_name_or_path": "vllm-model"}`,
		"other": `{"peft_type": "LORA", "base_model_name_or_path": "M"}`,
		"type":  `{"peft_type": "IA3", "base_model_name_or_path": "vllm-model"}`,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "adapter_config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, model := request("a"); code != http.StatusOK || model != "a" {
		t.Errorf("with the adapter: answer %d of model %q", code, model)
	}
	for _, name := range []string{"other", "type", "missing"} {
		if code, _ := request(name); code != http.StatusNotFound {
			t.Errorf("adapter %s: answer %d", name, code)
		}
	}
}

// TestResolverFlags proves that the resolver is on only with all that vLLM needs for it.
func TestResolverFlags(t *testing.T) {
	all := map[string]string{"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true", "VLLM_LORA_RESOLVER_CACHE_DIR": "/d", "STANDIN_MOUNTS": "/tmp/v=/mnt/models"}
	for name, tc := range map[string]struct{ args, variable, value, dir string }{
		"All":      {"/tmp/v --enable-lora", "A", "", "/d"},
		"NoLora":   {"/tmp/v", "A", "", ""},
		"Updating": {"/tmp/v --enable-lora", "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "0", ""},
		"Plugins":  {"/tmp/v --enable-lora", "VLLM_PLUGINS", "other", ""},
		"Named":    {"/tmp/v --enable-lora", "VLLM_PLUGINS", "other,lora_filesystem_resolver", "/d"},
	} {
		c := parse(vllm, strings.Fields(tc.args), func(key string) string {
			if key == tc.variable {
				return tc.value
			}
			return all[key]
		})
		if diff := cmp.Diff([]string{tc.dir, "/mnt/models"}, []string{c.resolverDir, c.model}); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := quick("M")
	ask(t, s, http.MethodPost, "/v1/completions", `{"prompt": "one two", "max_tokens": 3}`)
	s.running, s.waiting, s.using["tuned"] = 2, 3, 1
	_, body, _ := ask(t, s, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="M"} 1`,
		`vllm:prompt_tokens_total{engine="0",model_name="M"} 2`,
		`vllm:generation_tokens_total{engine="0",model_name="M"} 3`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="M"} 1`,
		`vllm:inter_token_latency_seconds_count{engine="0",model_name="M"} 2`,
		`vllm:e2e_request_latency_seconds_count{engine="0",model_name="M"} 1`,
		`vllm:num_requests_running{engine="0",model_name="M"} 2`,
		`vllm:num_requests_waiting{engine="0",model_name="M"} 3`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="M"} 0.0078125`,
		`vllm:lora_requests_info{max_lora="1",running_lora_adapters="tuned",waiting_lora_adapters=""}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s:\n%s", want, body)
		}
	}
}

func TestTransfer(t *testing.T) {
	cacheOf := func(image string) *cache {
		c := parse(vllm, []string{"M", "--kv-transfer-config", "{}"}, func(n string) string {
			return map[string]string{"STANDIN_IMAGE": image, "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1"}[n]
		})
		return newCache(c)
	}
	prefill := cacheOf("vllm:v1")
	l := httptest.NewServer(prefill)
	defer l.Close()
	prefill.sideChannelPort = l.Listener.Addr().(*net.TCPAddr).Port
	prefilled := func() *transfer {
		p, err := prefill.take(t.Context(), &request{Transfer: &transfer{DoRemoteDecode: true}})
		if err != nil {
			t.Fatal(err)
		}
		return p.(*transfer)
	}
	twice := prefilled()
	cases := []struct {
		name   string
		decode *cache
		params *transfer
		failed string
	}{
		{"SameVersion", cacheOf("vllm:v1"), twice, ""},
		{"Again", cacheOf("vllm:v1"), twice, "are not there"},
		{"OtherVersion", cacheOf("vllm:v2"), prefilled(), "compatibility hash mismatch"},
		{"Nothing", cacheOf("vllm:v1"), &transfer{DoRemotePrefill: true}, "without remote_engine_id"},
		{"OtherEngine", cacheOf("vllm:v1"), func() *transfer { p := prefilled(); p.RemoteEngineID = "x"; return p }(), "expected engine x"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.decode.take(t.Context(), &request{Transfer: tc.params})
			if (tc.failed == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.failed) {
				t.Errorf("error %v, want %q", err, tc.failed)
			}
		})
	}
}

func TestHub(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go newHub().serve(l)
	leader, err := join(t.Context(), l.Addr().String(), "node 0 2")
	if err != nil {
		t.Fatal(err)
	}
	met := make(chan error, 1)
	go func() { met <- leader.all(t.Context()) }()
	select {
	case err := <-met:
		t.Fatalf("the leader did not wait for its worker: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	worker, err := join(t.Context(), l.Addr().String(), "node 1 2")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(worker.all(t.Context()), <-met); err != nil {
		t.Fatal(err)
	}
	if err := worker.conn.Close(); err != nil {
		t.Fatal(err)
	}
	leader.lost()
}

// TestShutdown proves what becomes of an answer that is being generated when SIGTERM comes.
func TestShutdown(t *testing.T) {
	cases := map[string]struct {
		args  string
		whole bool
	}{
		"Cut":     {args: "M"},
		"Drained": {args: "M --shutdown-timeout 60", whole: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := quick(tc.args)
			s.token = 20 * time.Millisecond
			l := httptest.NewServer(s.handler())
			defer l.Close()
			rsp, err := http.Post(l.URL+"/v1/completions", "application/json", strings.NewReader(`{"stream":true,"max_tokens":20}`))
			if err != nil {
				t.Fatal(err)
			}
			defer rsp.Body.Close()
			r := bufio.NewReader(rsp.Body)
			if _, err := r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { s.drain(l.Config); close(ended) }()
			rest, err := io.ReadAll(r)
			<-ended
			if whole := err == nil && strings.HasSuffix(string(rest), "data: [DONE]\n\n"); whole != tc.whole {
				t.Errorf("the answer is whole: %v (%v), want %v", whole, err, tc.whole)
			}
		})
	}
}

func TestMeetAlone(t *testing.T) {
	m, err := meet(context.Background(), config{engine: vllm, dir: t.TempDir(), group: group{nodes: 1}})
	if m != nil || err != nil {
		t.Errorf("one node alone waits: %v, %v", m, err)
	}
}
