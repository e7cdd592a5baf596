package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// joinTimeout is how long a node waits for the others by default.
const joinTimeout = 10 * time.Minute

var errLost = errors.New("a node of the replica is lost")

/*
A hub is where the nodes of a replica meet. Each of them connects, says who it is, and stays
connected. The hub writes "all" to everybody once all are there. It closes every connection if one
of them is lost after that.
*/
type hub struct {
	mu sync.Mutex
	// members are the nodes that are connected, by their names.
	members map[string]net.Conn
	// waiting are the connections that want so many nodes, and node connections.
	waiting map[net.Conn]int
	met     map[net.Conn]bool
}

func newHub() *hub {
	return &hub{members: map[string]net.Conn{}, waiting: map[net.Conn]int{}, met: map[net.Conn]bool{}}
}

func (h *hub) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go h.handle(conn)
	}
}

// handle reads one line: "node NAME SIZE" of a node, or "wait SIZE" of whoever waits for all of them.
// A size of 0 waits for nobody.
func (h *hub) handle(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // The other side sees it.
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return
	}
	var name string
	var size int
	if _, err := fmt.Sscanf(line, "node %s %d\n", &name, &size); err != nil {
		if _, err := fmt.Sscanf(line, "wait %d\n", &size); err != nil {
			return
		}
	}
	h.enter(conn, name, size)
	_, _ = io.Copy(io.Discard, r)
	h.leave(conn, name)
}

func (h *hub) enter(conn net.Conn, name string, size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name != "" {
		h.members[name] = conn
	}
	h.waiting[conn] = size
	for c, n := range h.waiting {
		if n > 0 && len(h.members) >= n && !h.met[c] {
			h.met[c] = true
			_, _ = io.WriteString(c, "all\n")
		}
	}
}

func (h *hub) leave(conn net.Conn, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, conn)
	delete(h.met, conn)
	if name == "" || h.members[name] != conn {
		return
	}
	delete(h.members, name)
	// Those that were all there are not any more.
	for c := range h.met {
		_ = c.Close()
	}
}

// A membership is a connection with a hub.
type membership struct {
	conn net.Conn
	r    *bufio.Reader
}

// join connects with a hub and says something. It tries again until the hub is there.
func join(ctx context.Context, at, line string) (*membership, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err == nil {
			if _, err = io.WriteString(conn, line+"\n"); err == nil {
				return &membership{conn: conn, r: bufio.NewReader(conn)}, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot connect to %s: %w", at, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// all waits until all nodes are there.
func (m *membership) all(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = m.conn.Close() })()
	if _, err := m.r.ReadString('\n'); err != nil {
		return errLost
	}
	return nil
}

// lost waits until a node is lost.
func (m *membership) lost() { _, _ = io.Copy(io.Discard, m.r) }

// meet waits until all nodes of the replica are there, and returns a membership that ends when one of
// them is lost. It is nil for a replica of one node.
func meet(ctx context.Context, c config) (*membership, error) {
	g := c.group
	at := g.at
	if file, err := os.ReadFile(filepath.Join(c.dir, rayFile)); c.engine == vllm && g.at == "" && err == nil {
		// A Ray cluster is there, which vLLM uses for a replica of several nodes.
		g.ray, at = true, string(file)
		if g.nodes < 2 {
			_, _ = fmt.Sscan(os.Getenv("LWS_GROUP_SIZE"), &g.nodes)
		}
	}
	if g.nodes < 2 {
		return nil, nil //nolint:nilnil // There is nobody to wait for.
	}
	ctx, cancel := context.WithTimeout(ctx, c.join)
	defer cancel()
	line := fmt.Sprintf("node %d %d", g.rank, g.nodes)
	switch {
	case g.ray && at == "":
		return nil, errors.New("no Ray cluster is running here")
	case g.ray:
		line = fmt.Sprintf("wait %d", g.nodes)
	case g.rank == 0:
		l, err := net.Listen("tcp", at) //nolint:noctx // It returns at once.
		if err != nil {
			return nil, err
		}
		go newHub().serve(l)
	}
	m, err := join(ctx, at, line)
	if err != nil {
		return nil, err
	}
	fmt.Printf("waiting for %d nodes at %s\n", g.nodes, at)
	return m, m.all(ctx)
}

// rayFile has the address of the Ray cluster that was started in a container.
const rayFile = "ray-address"

// ray starts a node of a Ray cluster. As the real one it goes on in the background, unless it is told
// to block.
func ray(args []string) (int, error) {
	if len(args) == 0 || args[0] != "start" && args[0] != "node" {
		return 2, errors.New("ray: the stand-in knows start only")
	}
	f := read(args[1:])
	address, dir := or(os.Getenv("STANDIN_ADDRESS"), "127.0.0.1"), or(os.Getenv("STANDIN_DIR"), ".")
	at := f.text("", "--address")
	if f.has("--head") {
		at = net.JoinHostPort(address, f.text("6379", "--port"))
	}
	if at == "" {
		return 2, errors.New("ray: neither --head nor --address")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if args[0] == "start" && !f.has("--block") {
		if _, err := background(append([]string{"node"}, args[1:]...)...); err != nil {
			return 1, err
		}
		m, err := join(ctx, at, "wait 0")
		if err != nil {
			return 1, err
		}
		_ = m.conn.Close()
		fmt.Println("Ray runtime started.")
		return 0, os.WriteFile(filepath.Join(dir, rayFile), []byte(at), 0o600) //nolint:gosec // The directory is this pod's own.
	}
	if f.has("--head") {
		l, err := net.Listen("tcp", at) //nolint:noctx // It returns at once.
		if err != nil {
			return 1, err
		}
		go newHub().serve(l)
	}
	m, err := join(ctx, at, fmt.Sprintf("node %s 0", strings.ReplaceAll(address, ":", "-")))
	if err != nil {
		return 1, err
	}
	gone := make(chan struct{})
	go func() { m.lost(); close(gone) }()
	select {
	case <-ctx.Done():
		return 0, nil
	case <-gone:
		return 1, errLost
	}
}
