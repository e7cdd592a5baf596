// Package main writes the encoded hostile requests to files.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fusioninfer/function-inferenceservice/test/hostile"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// write writes each case to a file, which is named by the case's number and name.
func write(dir string) error {
	for i, c := range hostile.Cases() {
		b, err := c.Wire()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%03d %s", i, c.Name)
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil { //nolint:gosec // The caller names the folder.
			return fmt.Errorf("cannot write %s: %w", c.Name, err)
		}
	}
	return nil
}
