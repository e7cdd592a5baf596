package launch

import (
	"slices"
	"strings"
)

// A Listener says how an engine takes requests, as far as its command says it. A script counts if its last
// command is the engine.
type Listener struct {
	// Host to which the engine binds. It is empty if no flag says it.
	Host string
	// TLS tells that the engine serves TLS, and ClientCertificates that it wants certificates of its clients.
	TLS, ClientCertificates bool
	// Socket tells that it listens on a Unix socket.
	Socket bool
	// GRPC tells that it speaks gRPC in place of HTTP.
	GRPC bool
	// Headless tells that it is a part of an engine whose head is elsewhere, and takes no requests.
	Headless bool
	// File tells that it reads more flags from a file.
	File bool
}

// Listener returns how the command's engine takes requests.
func (l Line) Listener() Listener {
	words := l.words()
	certificates := valueOf(words, "--ssl-cert-reqs")
	module := slices.Index(words, "-m") + 1
	return Listener{
		Host:               valueOf(words, "--host"),
		TLS:                has(words, "--ssl-certfile"),
		ClientCertificates: certificates != "" && certificates != "0",
		Socket:             has(words, "--uds"),
		GRPC:               has(words, "--grpc", "--grpc-mode", "--smg-grpc-mode") || module > 0 && module < len(words) && strings.Contains(words[module], "grpc"),
		Headless:           has(words, "--headless"),
		File:               has(words, "--config"),
	}
}

// Local tells whether a host is that of the pod alone.
func (l Listener) Local() bool {
	return l.Host == "localhost" || strings.HasPrefix(l.Host, "127.") || l.Host == "::1"
}
