//go:build !unix

package process

// lock does nothing, because this system has no file locks. Run one test package at a time here.
func lock(string) (unlock func(), err error) { return func() {}, nil }
