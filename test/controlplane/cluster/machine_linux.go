package cluster

import "syscall"

// attributes make the kernel end a process with the test that started it, even
// where the test is killed and cannot clean up.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// mainMemory is what this machine has, in bytes, or 0 if it does not tell.
func mainMemory() uint64 {
	s := &syscall.Sysinfo_t{}
	if err := syscall.Sysinfo(s); err != nil {
		return 0
	}
	return uint64(s.Totalram) * uint64(s.Unit) //nolint:unconvert // It is narrower on other processors.
}
