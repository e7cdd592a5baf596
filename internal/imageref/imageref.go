// Package imageref reads and checks references of container images.
package imageref

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kubernetes/pkg/util/parsers"
)

// Split returns the last part of an image's repository, and its tag. The tag is empty if the image has
// none. A digest is neither.
func Split(image string) (name, tag string) {
	name, _, _ = strings.Cut(path.Base(image), "@")
	name, tag, _ = strings.Cut(name, ":")
	return name, tag
}

// Valid tells whether a kubelet can pull an image of this name. It reads names with the same library.
func Valid(image string) bool {
	_, _, _, err := parsers.ParseImageName(image)
	return err == nil
}

// A Version is that of a release: major, minor and patch.
type Version [3]int

var versionTag = regexp.MustCompile(`^v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})($|[.-])`)

// ParseVersion returns the version that a tag begins with, with or without a leading v. What follows the
// version does not count, such as the rc1 of a release candidate.
func ParseVersion(tag string) (Version, bool) {
	v := Version{}
	m := versionTag.FindStringSubmatch(tag)
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // The expression has digits only.
	}
	return v, true
}

// Compare returns -1, 0 or 1 if the version is older than the other one, the same, or newer.
func (v Version) Compare(other Version) int { return slices.Compare(v[:], other[:]) }

// String is the version as tags have it, without a leading v.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }
