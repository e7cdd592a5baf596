package cluster

import "syscall"

// attributes make the kernel end a process with the test that started it, even
// where the test is killed and cannot clean up.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
