//go:build !linux

package cluster

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }

func mainMemory() uint64 { return 0 }
