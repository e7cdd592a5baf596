package serve

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// defaultMemory is what the process takes where nothing limits it.
const defaultMemory = 512 << 20

// limitFiles have the memory limit of a container: that of cgroup v2, and of v1.
var limitFiles = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// Memory is how much the container may take, in bytes, by its cgroup's limit below a root
// directory. Without any it is defaultMemory.
func Memory(root string) int64 {
	for _, f := range limitFiles {
		b, err := os.ReadFile(filepath.Join(root, f)) //nolint:gosec // Fixed above.
		if err != nil {
			continue
		}
		// No limit is the word max, or in v1 a number that no machine has.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < 1<<50 {
			return n
		}
	}
	return defaultMemory
}

// LimitHeap has garbage collected before the process takes all of its memory. A limit in
// the environment (GOMEMLIMIT) counts instead.
func LimitHeap(memory int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory * 9 / 10)
	}
}
