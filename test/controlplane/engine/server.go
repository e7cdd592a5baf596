package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A server answers requests as an engine does whose model is loaded.
type server struct {
	config

	// cut is closed when requests that run have to end.
	cut chan struct{}
	// slots limit how many requests run at once.
	slots  chan struct{}
	kv     *cache
	meters *meters

	mu       sync.Mutex
	draining bool
	running  int
	waiting  int
	loras    map[string]string
	// using counts the requests of each adapter.
	using map[string]int
}

func newServer(c config) *server {
	s := &server{config: c, cut: make(chan struct{}), slots: make(chan struct{}, c.maxRunning), loras: map[string]string{}, using: map[string]int{}}
	for name, path := range c.loras {
		s.loras[name] = path
	}
	s.kv = newCache(c)
	s.meters = newMeters(s)
	return s
}

// serve loads the model, waits for the other nodes of the replica, and serves until SIGTERM.
func serve(c config) (int, error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	fmt.Printf("%s %s of %s: model %v, port %d, group %+v\n", c.engine, c.version(), c.pod, c.models, c.port, c.group)
	if err := c.check(); err != nil {
		return 2, err
	}
	m, err := meet(ctx, c)
	if ctx.Err() != nil {
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	select {
	case <-ctx.Done():
		return 0, nil
	case <-time.After(c.startup):
	}
	if code, err := strconv.Atoi(c.exitCode); err == nil {
		return code, fmt.Errorf("STANDIN_EXIT_CODE is %d", code)
	}
	lost := make(chan struct{})
	if m != nil {
		go func() { m.lost(); close(lost) }()
	}
	if c.headless {
		select {
		case <-ctx.Done():
			return 0, nil
		case <-lost:
			return 1, errLost
		}
	}
	return newServer(c).run(ctx, lost)
}

// run serves until the context ends, or a node is lost.
func (s *server) run(ctx context.Context, lost <-chan struct{}) (int, error) {
	if err := s.kv.serve(); err != nil {
		return 1, err
	}
	l, err := s.listen()
	if err != nil {
		return 1, err
	}
	h := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() {
		if s.cert != "" {
			failed <- h.ServeTLS(l, s.cert, s.key)
		} else {
			failed <- h.Serve(l)
		}
	}()
	fmt.Printf("serving at %s\n", l.Addr())
	select {
	case err := <-failed:
		return 1, err
	case <-lost:
		// The engine is gone, and so is whatever it was generating.
		close(s.cut)
		_ = h.Close()
		return 1, errLost
	case <-ctx.Done():
		s.drain(h) //nolint:contextcheck // The context has ended, and the drain is what follows.
		return 0, nil
	}
}

func (s *server) listen() (net.Listener, error) {
	at := s.listenAt(s.port)
	if at == "" {
		at = "127.0.0.1:0" // A port that nobody knows: this is the pod's own localhost.
	}
	return net.Listen("tcp", at) //nolint:noctx // It returns at once.
}

/*
drain ends the server as the engine does after SIGTERM. vLLM stops listening and cuts the requests
that run, unless --shutdown-timeout gives them time, as it does from v0.18 on. SGLang goes on listening,
says at /health that it does not serve, and ends with the last request.
*/
func (s *server) drain(h *http.Server) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	if s.shutdown < 0 {
		for s.load() > 0 {
			time.Sleep(50 * time.Millisecond)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(s.shutdown, 0))
	defer cancel()
	if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	close(s.cut)
	// What is cut is told so, which takes no time.
	ctx, cancel = context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.Shutdown(ctx) != nil {
		_ = h.Close()
	}
}

// load is how many requests run or wait.
func (s *server) load() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running + s.waiting
}

func (s *server) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /health", s.health)
	if s.group.rank > 0 {
		return m // SGLang's other nodes answer nothing else.
	}
	m.HandleFunc("GET /v1/models", s.listModels)
	m.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	m.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	if s.metrics {
		m.Handle("GET /metrics", s.meters.handler)
	}
	switch s.engine {
	case vllm:
		m.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]any{"version": s.version()}) })
		m.HandleFunc("GET /load", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]any{"server_load": s.load()}) })
		m.HandleFunc("GET /ping", s.health)
		if s.runtimeLoras {
			m.HandleFunc("POST /v1/load_lora_adapter", s.loadLora)
			m.HandleFunc("POST /v1/unload_lora_adapter", s.unloadLora)
		}
	case sglang:
		m.HandleFunc("GET /health_generate", s.health)
		m.HandleFunc("GET /get_model_info", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, map[string]any{"model_path": s.models[0], "is_generation": true})
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-served-by", s.pod)
		m.ServeHTTP(w, r)
	})
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *server) listModels(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for _, m := range s.models {
		all = append(all, map[string]any{"id": m, "object": "model", "owned_by": s.engine, "root": s.models[0], "parent": nil})
	}
	for name, path := range s.loras {
		all = append(all, map[string]any{"id": name, "object": "model", "owned_by": s.engine, "root": path, "parent": s.models[0]})
	}
	answer(w, map[string]any{"object": "list", "data": all})
}

// loadLora loads an adapter, as vLLM's /v1/load_lora_adapter.
func (s *server) loadLora(w http.ResponseWriter, r *http.Request) {
	name, path := loraOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case name == "" || path == "":
		refuse(w, http.StatusBadRequest, "InvalidUserInput", "Both 'lora_name' and 'lora_path' must be provided.")
	case s.loras[name] != "":
		refuse(w, http.StatusBadRequest, "InvalidUserInput", fmt.Sprintf("The lora adapter '%s' has already been loaded.", name))
	default:
		s.loras[name] = path
		_, _ = fmt.Fprintf(w, "Success: LoRA adapter '%s' added successfully.", name)
	}
}

// unloadLora unloads an adapter, as vLLM's /v1/unload_lora_adapter.
func (s *server) unloadLora(w http.ResponseWriter, r *http.Request) {
	name, _ := loraOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loras[name] == "" {
		refuse(w, http.StatusNotFound, "NotFoundError", fmt.Sprintf("The lora adapter '%s' cannot be found.", name))
		return
	}
	delete(s.loras, name)
	_, _ = fmt.Fprintf(w, "Success: LoRA adapter '%s' removed successfully.", name)
}

func loraOf(r *http.Request) (name, path string) {
	var body struct {
		Name string `json:"lora_name"`
		Path string `json:"lora_path"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body.Name, body.Path
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // The client may have gone.
}

// refuse answers with an error in the form that OpenAI's clients expect.
func refuse(w http.ResponseWriter, code int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}}) //nolint:errchkjson // The client may have gone.
}
