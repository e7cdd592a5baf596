package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
)

// A remote is a cluster that can be made unreachable.
type remote interface {
	Name() string
	CutOff()
	Reconnect()
}

// control is how the commands cut-off and reconnect reach the supervisor.
func control[R remote](all []R) http.Handler {
	mux := http.NewServeMux()
	for _, r := range all {
		mux.HandleFunc("POST /cut-off/"+r.Name(), func(http.ResponseWriter, *http.Request) { r.CutOff() })
		mux.HandleFunc("POST /reconnect/"+r.Name(), func(http.ResponseWriter, *http.Request) { r.Reconnect() })
	}
	return mux
}

// serveControl serves it on loopback until the context ends, and says where.
func (s state) serveControl(ctx context.Context, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return os.WriteFile(s.file("control"), []byte(l.Addr().String()), 0o600)
}

// tell has the supervisor cut off or reconnect a remote cluster.
func (s state) tell(command string, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes the name of a remote cluster, such as cluster-1", command)
	}
	at, err := os.ReadFile(s.file("control"))
	if err != nil {
		return errors.New("no control plane is up: start it with make up CLUSTERS=2")
	}
	url := "http://" + path.Join(strings.TrimSpace(string(at)), command, args[0])
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, nil) //nolint:gosec // The file is the supervisor's.
	if err != nil {
		return err
	}
	rsp, err := http.DefaultClient.Do(r) //nolint:gosec // The file is the supervisor's.
	if err != nil {
		return err
	}
	defer rsp.Body.Close() //nolint:errcheck // Its status says all.
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("there is no remote cluster %s", args[0])
	}
	return nil
}
