package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A request is one for a completion, with what matters here.
type request struct {
	Model         string    `json:"model"`
	Prompt        any       `json:"prompt"`
	Messages      []message `json:"messages"`
	MaxTokens     *int      `json:"max_tokens"`
	MaxCompletion *int      `json:"max_completion_tokens"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Transfer *transfer `json:"kv_transfer_params"`

	BootstrapHost any `json:"bootstrap_host"`
	BootstrapPort any `json:"bootstrap_port"`
	BootstrapRoom any `json:"bootstrap_room"`
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// tokens that are generated unless a request wants another number.
const tokens = 16

func (r *request) tokens() int {
	for _, n := range []*int{r.MaxCompletion, r.MaxTokens} {
		if n != nil {
			return max(*n, 1)
		}
	}
	return tokens
}

// words is about the number of tokens of the prompt.
func (r *request) words() int {
	n := len(strings.Fields(text(r.Prompt)))
	for _, m := range r.Messages {
		n += len(strings.Fields(text(m.Content)))
	}
	return n
}

// complete answers a request for a completion, or for one of a chat.
func (s *server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	req := &request{}
	if err := json.NewDecoder(r.Body).Decode(req); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestError", err.Error())
		return
	}
	if req.Model == "" {
		req.Model = s.models[0]
	}
	adapter, known := s.knows(req.Model)
	if !known {
		refuse(w, http.StatusNotFound, "NotFoundError", fmt.Sprintf("The model `%s` does not exist.", req.Model))
		return
	}
	begun := time.Now()
	done, ok := s.admit(r, adapter)
	if !ok {
		refuse(w, http.StatusInternalServerError, "InternalServerError", "the engine has ended")
		return
	}
	defer done()
	params, err := s.kv.take(r.Context(), req)
	if err != nil {
		fmt.Println("the KV cache cannot be transferred:", err)
		refuse(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	if s.kv.engine == vllm && req.Transfer != nil && req.Transfer.DoRemotePrefill {
		w.Header().Set("x-prefilled-at", req.Transfer.RemoteHost)
	}
	watch := s.meters.start(begun, req.words())
	g := generation{server: s, request: req, watch: watch, chat: chat, id: fmt.Sprintf("cmpl-%x", time.Now().UnixNano()), created: time.Now().Unix(), params: params}
	if req.Stream {
		g.stream(w, r)
	} else if !g.whole(w, r) {
		return
	}
	watch.end()
}

// knows tells whether a model is served, and whether it is an adapter.
func (s *server) knows(model string) (adapter string, known bool) {
	for _, m := range s.models {
		if m == model {
			return "", true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.loras[model]; ok {
		return model, true
	}
	if path := s.resolve(model); path != "" {
		s.loras[model] = path
		return model, true
	}
	return "", false
}

// resolve finds an adapter on the disk, as vLLM's lora_filesystem_resolver.
func (s *server) resolve(name string) (path string) {
	if s.resolverDir == "" || name == "" {
		return ""
	}
	path = filepath.Join(s.resolverDir, name)
	text, err := os.ReadFile(filepath.Join(path, "adapter_config.json")) //nolint:gosec // vLLM does not check the name either.
	if err != nil {
		return ""
	}
	var adapter struct {
		Type  string `json:"peft_type"`
		Model string `json:"base_model_name_or_path"`
	}
	if json.Unmarshal(text, &adapter) != nil || adapter.Type != "LORA" || adapter.Model != s.model {
		return ""
	}
	return path
}

// admit waits until a request may run, and counts it until done is called.
func (s *server) admit(r *http.Request, adapter string) (done func(), ok bool) {
	s.count(func() { s.waiting++ })
	select {
	case s.slots <- struct{}{}:
	case <-s.cut:
		s.count(func() { s.waiting-- })
		return nil, false
	case <-r.Context().Done():
		s.count(func() { s.waiting-- })
		return nil, false
	}
	s.count(func() { s.waiting--; s.running++; s.using[adapter]++ })
	return func() {
		<-s.slots
		s.count(func() { s.running--; s.using[adapter]-- })
	}, true
}

func (s *server) count(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// A generation is one answer.
type generation struct {
	*server
	*request

	watch   *stopwatch
	chat    bool
	id      string
	created int64
	params  any
}

// word is one of the generated tokens. The first one names the pod and the model.
func (g *generation) word(i int) string {
	if i == 0 {
		return fmt.Sprintf("%s serves %s:", g.pod, g.Model)
	}
	return fmt.Sprintf(" %d", i)
}

// next takes the time of a token. It tells whether to go on.
func (g *generation) next(r *http.Request) bool {
	select {
	case <-time.After(g.token):
		g.watch.next()
		return true
	case <-g.cut:
	case <-r.Context().Done():
	}
	return false
}

// whole answers once all tokens are there. It tells whether they are.
func (g *generation) whole(w http.ResponseWriter, r *http.Request) bool {
	text := strings.Builder{}
	for i := range g.request.tokens() {
		if !g.next(r) {
			refuse(w, http.StatusInternalServerError, "InternalServerError", "the engine has ended")
			return false
		}
		text.WriteString(g.word(i))
	}
	body := g.object(map[string]any{"role": "assistant", "content": text.String()}, text.String(), "message", "length")
	if g.chat {
		body["object"] = "chat.completion"
	}
	body["usage"] = g.usage()
	body["kv_transfer_params"] = g.params
	answer(w, body)
	return true
}

// stream sends each token when it is there. An answer that is cut has no end, so that the client sees
// that something is missing.
func (g *generation) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(v any) bool {
		b, err := json.Marshal(v)
		if err != nil {
			return false
		}
		_, err = fmt.Fprintf(w, "data: %s\n\n", b)
		return err == nil && out.Flush() == nil
	}
	n := g.request.tokens()
	for i := range n {
		var reason any
		if i == n-1 {
			reason = "length"
		}
		if !g.next(r) || !send(g.object(map[string]any{"role": "assistant", "content": g.word(i)}, g.word(i), "delta", reason)) {
			panic(http.ErrAbortHandler)
		}
	}
	if g.StreamOptions.IncludeUsage {
		last := g.object(nil, "", "delta", nil)
		last["choices"], last["usage"] = []any{}, g.usage()
		send(last)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func (g *generation) object(said map[string]any, text, part string, reason any) map[string]any {
	choice := map[string]any{"index": 0, "finish_reason": reason}
	object := "text_completion"
	if g.chat {
		choice[part], object = said, "chat.completion.chunk"
	} else {
		choice["text"] = text
	}
	return map[string]any{"id": g.id, "object": object, "created": g.created, "model": g.Model, "choices": []any{choice}}
}

func (g *generation) usage() map[string]any {
	in, out := g.words(), g.request.tokens()
	return map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}
