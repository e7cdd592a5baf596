package serve

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// defaultMemory is how much memory the process takes if nothing limits it, in bytes.
const defaultMemory = 512 << 20

// limitFiles have the memory limit of a container: the first in cgroup v2, the second in v1.
var limitFiles = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// Memory returns how much memory the container may take, in bytes: its cgroup's limit, below
// a root directory. Without a limit it returns defaultMemory.
func Memory(root string) int64 {
	for _, f := range limitFiles {
		b, err := os.ReadFile(filepath.Join(root, f)) //nolint:gosec // Fixed above.
		if err != nil {
			continue
		}
		// No limit is the word max in v2, and in v1 a number that no machine has.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < 1<<50 {
			return n
		}
	}
	return defaultMemory
}

// LimitHeap sets Go's memory limit to nine tenths of the process's memory, so that garbage is
// collected in time. GOMEMLIMIT in the environment takes precedence.
func LimitHeap(memory int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory * 9 / 10)
	}
}
