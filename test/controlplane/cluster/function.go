package cluster

import (
	"path/filepath"
)

// Function builds the function, and returns the program.
func Function() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, ".cache", "bin", "function-inferenceservice")
	_, err = output("go", "-C", root, "build", "-o", bin, ".")
	return bin, err
}
