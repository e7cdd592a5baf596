package node

import (
	"fmt"
	"sync"
)

// addresses are those of pods: PREFIX.128.1 to PREFIX.254.254, each in turn. One that a pod had comes
// back as late as possible, because others may still call it.
type addresses struct {
	prefix string

	mu   sync.Mutex
	next int
	used map[string]bool
}

func newAddresses(prefix string) *addresses {
	return &addresses{prefix: prefix, used: map[string]bool{}}
}

func (a *addresses) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	const each, blocks = 254, 127
	for range each * blocks {
		at := fmt.Sprintf("%s.%d.%d", a.prefix, 128+a.next/each, 1+a.next%each)
		a.next = (a.next + 1) % (each * blocks)
		if !a.used[at] {
			a.used[at] = true
			return at
		}
	}
	return ""
}

func (a *addresses) give(at string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, at)
}
