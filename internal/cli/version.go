package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version of a release, which the linker sets.
var version string

// A Version flag prints the version and ends.
type Version bool

// BeforeReset comes before any other flag is looked at.
func (Version) BeforeReset(app *kong.Kong) error {
	if _, err := fmt.Fprintln(app.Stdout, versionOr(debug.ReadBuildInfo())); err != nil {
		return fmt.Errorf("cannot print the version: %w", err)
	}
	app.Exit(0)
	return nil
}

// versionOr is the release's version, or what the compiler knows of the source.
func versionOr(info *debug.BuildInfo, known bool) string {
	switch {
	case version != "":
		return version
	case known:
		return info.Main.Version
	}
	return "unknown"
}
