package node

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// forward passes on connections, from each of these addresses to another, until end is called.
// Nobody listens at the former before the latter answers.
func forward(all map[string]string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for from, to := range all {
		group.Go(func() { forwardOne(ctx, from, to) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func forwardOne(ctx context.Context, from, to string) {
	d := net.Dialer{}
	for {
		conn, err := d.DialContext(ctx, "tcp", to)
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", from)
	if err != nil {
		return // The pod has that port already: its own process listens there.
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		a, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			b, err := d.DialContext(ctx, "tcp", to)
			if err != nil {
				if t, ok := a.(*net.TCPConn); ok {
					_ = t.SetLinger(0) // The caller sees that nobody is there.
				}
				_ = a.Close()
				return
			}
			between(a, b)
		}()
	}
}

// between passes on what two say to each other. Each may say that it says no more.
func between(a, b net.Conn) {
	var both sync.WaitGroup
	for _, d := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(d[0], d[1])
			if t, ok := d[0].(*net.TCPConn); ok && err == nil {
				_ = t.CloseWrite()
				return
			}
			_ = errors.Join(a.Close(), b.Close())
		})
	}
	both.Wait()
	_ = errors.Join(a.Close(), b.Close())
}
