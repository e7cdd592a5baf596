package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

/*
A cache is the KV cache, as far as other engines are concerned. With vLLM's NIXL connector, a request
with do_remote_decode is prefilled, and its answer says where the blocks are. A request with
do_remote_prefill needs such blocks: the engine asks the other one at its side channel, compares
their hashes of compatibility, and takes the blocks. Engines of another version, another model or other
transfer settings have another hash. SGLang's engines meet at the port for bootstrapping instead.
*/
type cache struct {
	config
	id string

	mu     sync.Mutex
	blocks map[int]bool
	next   int
}

// A transfer is where the blocks of a request are, or that there should be some.
type transfer struct {
	DoRemoteDecode  bool   `json:"do_remote_decode"`
	DoRemotePrefill bool   `json:"do_remote_prefill"`
	RemoteEngineID  string `json:"remote_engine_id,omitempty"`
	RemoteBlockIDs  []int  `json:"remote_block_ids,omitempty"`
	RemoteHost      string `json:"remote_host,omitempty"`
	RemotePort      int    `json:"remote_port,omitempty"`
	TPSize          int    `json:"tp_size,omitempty"`
}

// A handshake is what an engine says at its side channel.
type handshake struct {
	EngineID string `json:"engineID"`
	Hash     string `json:"hash"`
	Taken    bool   `json:"taken"`
}

func newCache(c config) *cache { return &cache{config: c, id: rand.Text(), blocks: map[int]bool{}} }

// hash of what has to be the same on both sides.
func (k *cache) hash() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %s %s", k.engine, k.version(), k.models[0])))
}

// serve opens the side channel, if there is one that others reach.
func (k *cache) serve() error {
	at := ""
	switch {
	case k.engine == sglang && k.disaggregation == "prefill":
		at = net.JoinHostPort(k.address, strconv.Itoa(k.bootstrapPort))
	case k.engine == vllm && k.transfer && k.sideChannelHost != "localhost":
		at = net.JoinHostPort(k.sideChannelHost, strconv.Itoa(k.sideChannelPort))
	}
	if at == "" {
		return nil
	}
	l, err := net.Listen("tcp", at) //nolint:noctx // It returns at once.
	if err != nil {
		return err
	}
	h := &http.Server{Handler: k, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.Serve(l) }() // It ends with the process.
	return nil
}

// ServeHTTP answers a handshake. Blocks that it names are taken, and not there any more.
func (k *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := handshake{EngineID: k.id, Hash: k.hash(), Taken: true}
	if r.FormValue("hash") == s.Hash {
		k.mu.Lock()
		for _, b := range r.Form["block"] {
			n, _ := strconv.Atoi(b)
			s.Taken = s.Taken && k.blocks[n]
			delete(k.blocks, n)
		}
		k.mu.Unlock()
	}
	answer(w, s)
}

// take does what a request says about the KV cache, and returns what its answer says.
func (k *cache) take(ctx context.Context, r *request) (any, error) {
	if k.engine == sglang {
		return nil, k.bootstrap(ctx, r)
	}
	if !k.transfer || r.Transfer == nil {
		return nil, nil //nolint:nilnil // The answer says nothing.
	}
	if r.Transfer.DoRemotePrefill {
		return nil, k.pull(ctx, r.Transfer)
	}
	if !r.Transfer.DoRemoteDecode {
		return nil, nil //nolint:nilnil // The answer says nothing.
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	k.blocks[k.next] = true
	return &transfer{
		DoRemotePrefill: true, RemoteEngineID: k.id, RemoteBlockIDs: []int{k.next},
		RemoteHost: k.sideChannelHost, RemotePort: k.sideChannelPort, TPSize: 1,
	}, nil
}

// pull takes the blocks of a request from the engine that has them.
func (k *cache) pull(ctx context.Context, t *transfer) error {
	if t.RemoteEngineID == "" || len(t.RemoteBlockIDs) == 0 || t.RemoteHost == "" || t.RemotePort == 0 {
		return errors.New("do_remote_prefill without remote_engine_id, remote_block_ids, remote_host and remote_port")
	}
	q := url.Values{"hash": {k.hash()}}
	for _, b := range t.RemoteBlockIDs {
		q.Add("block", strconv.Itoa(b))
	}
	s, err := k.ask(ctx, t.RemoteHost, strconv.Itoa(t.RemotePort), q)
	switch {
	case err != nil:
		return fmt.Errorf("NIXL handshake failed: %w", err)
	case s.Hash != k.hash():
		return fmt.Errorf("NIXL compatibility hash mismatch: local %.8s, remote %.8s", k.hash(), s.Hash)
	case s.EngineID != t.RemoteEngineID:
		return fmt.Errorf("NIXL handshake failed: expected engine %s, got %s", t.RemoteEngineID, s.EngineID)
	case !s.Taken:
		return fmt.Errorf("blocks %v are not there", t.RemoteBlockIDs)
	}
	return nil
}

// bootstrap meets the engine that prefills, as SGLang's engines that decode do.
func (k *cache) bootstrap(ctx context.Context, r *request) error {
	if k.disaggregation != "decode" {
		return nil
	}
	if r.BootstrapHost == nil || r.BootstrapRoom == nil {
		return errors.New("disaggregated request received without bootstrap room id")
	}
	s, err := k.ask(ctx, fmt.Sprint(r.BootstrapHost), or(text(r.BootstrapPort), "8998"), url.Values{"hash": {k.hash()}})
	if err != nil {
		return fmt.Errorf("bootstrap failed: %w", err)
	}
	if s.Hash != k.hash() {
		return errors.New("the engine that prefills is another one")
	}
	return nil
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (k *cache) ask(ctx context.Context, host, port string, q url.Values) (*handshake, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.
	b, err := io.ReadAll(io.LimitReader(rsp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	s := &handshake{}
	return s, json.Unmarshal(b, s)
}
