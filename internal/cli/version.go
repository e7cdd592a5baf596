package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is the version of a release. The linker sets it.
var version string

// A Version is a flag that prints the version and exits.
type Version bool

// BeforeReset prints the version and exits. Kong calls it before it validates other flags.
func (Version) BeforeReset(app *kong.Kong) error {
	if _, err := fmt.Fprintln(app.Stdout, versionOr(debug.ReadBuildInfo())); err != nil {
		return fmt.Errorf("cannot print the version: %w", err)
	}
	app.Exit(0)
	return nil
}

// versionOr returns the version of a release, or the one that the Go build recorded.
func versionOr(info *debug.BuildInfo, known bool) string {
	switch {
	case version != "":
		return version
	case known:
		return info.Main.Version
	}
	return "unknown"
}
