//go:build unix

package process

import (
	"fmt"
	"os"
	"syscall"
)

// lock waits until no other process has a file locked, and locks it.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // A file of the cache.
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}
