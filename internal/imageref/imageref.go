// Package imageref reads references of container images.
package imageref

import (
	"path"
	"strings"
)

// Split returns the last part of an image's repository, and its tag. The tag is empty if the image has
// none. A digest is neither.
func Split(image string) (name, tag string) {
	name, _, _ = strings.Cut(path.Base(image), "@")
	name, tag, _ = strings.Cut(name, ":")
	return name, tag
}
