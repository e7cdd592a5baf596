package simulation

import "time"

// A cache is what one process has seen of each kind: a prefix of its changes.
type cache struct {
	server *server
	views  map[kindOf]*view
}

type view struct {
	seen    int
	objects map[name]*stored
}

func newCache(s *server) *cache { return &cache{server: s, views: map[kindOf]*view{}} }

func (c *cache) view(k kindOf) *view {
	v := c.views[k]
	if v == nil {
		v = &view{objects: map[name]*stored{}}
		c.views[k] = v
	}
	return v
}

// behind returns the number of changes of a kind that the cache has not seen.
func (c *cache) behind(k kindOf) int {
	t := c.server.table(k)
	return t.dropped + len(t.history) - c.view(k).seen
}

// advance shows the cache the next changes of a kind, and returns them.
func (c *cache) advance(k kindOf, n int) []change {
	v, t := c.view(k), c.server.table(k)
	at := v.seen - t.dropped
	next := t.history[at:min(at+n, len(t.history))]
	for _, ch := range next {
		if ch.current == nil {
			delete(v.objects, ch.old.name)
		} else {
			v.objects[ch.current.name] = ch.current
		}
	}
	v.seen += len(next)
	return next
}

func (c *cache) get(k kindOf, n name) *stored { return c.view(k).objects[n] }

// since returns how much of a kind a cache has seen that is older than the cache before, by at most some changes and some time.
func (c *cache) since(k kindOf, changes int, age time.Duration, now time.Time) int {
	t, n := c.server.table(k), c.view(k).seen
	for i := 0; i < changes && n > t.dropped && t.history[n-t.dropped-1].at.After(now.Add(-age)); i++ {
		n--
	}
	return n
}

// forget drops the changes of a kind that all of these caches have seen. No cache can start with an older state afterwards.
func (s *server) forget(k kindOf, caches ...*cache) {
	t := s.table(k)
	seen := t.dropped + len(t.history)
	for _, c := range caches {
		seen = min(seen, c.view(k).seen)
	}
	clear(t.history[:seen-t.dropped])
	t.history, t.dropped = t.history[seen-t.dropped:], seen
}
