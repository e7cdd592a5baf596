/*
Command packages builds the three packages of the project with an SBOM for each,
and pushes them. It needs no Docker: the function is one static binary, which is all there is in its
image. From the root of the repository:

	go -C test/packages run . build --version v0.1.0
	go -C test/packages run . push --version v0.1.0 --registry ghcr.io/fusioninfer

The same source, version and Go give the same bytes. An SBOM also has the time
of SOURCE_DATE_EPOCH, or of the commit.
*/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// A project has the paths and names of what is built and pushed.
type project struct {
	// root of the repository.
	root string
	// dist is the directory of the packages.
	dist string
	// arch has the architectures that the function is built for.
	arch []string
	// version is the version of the release. It is empty between releases.
	version string
	// registry and organization that packages are pushed to.
	registry string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(args) == 0 {
		return errors.New("no command: use build or push")
	}
	p := project{}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&p.root, "root", filepath.Join("..", ".."), "`directory` of the repository")
	flags.StringVar(&p.dist, "dist", "", "`directory` of the packages (default dist in the repository)")
	arch := flags.String("arch", strings.Join(architectures, ","), "`architectures` that the function is built for")
	flags.StringVar(&p.version, "version", "", "`version` of the release, such as v0.1.0")
	flags.StringVar(&p.registry, "registry", home, "`registry` and organization to push to")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	p.arch = strings.Split(*arch, ",")
	if err := p.locate(); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		return p.build(ctx)
	case "push":
		return p.push(ctx, os.Stdout)
	}
	return fmt.Errorf("unknown command %q: use build or push", args[0])
}

// locate makes the paths absolute: commands run in other directories.
func (p *project) locate() error {
	var err error
	if p.root, err = filepath.Abs(p.root); err != nil {
		return fmt.Errorf("cannot find the repository: %w", err)
	}
	if p.dist == "" {
		p.dist = filepath.Join(p.root, "dist")
	}
	if p.dist, err = filepath.Abs(p.dist); err != nil {
		return fmt.Errorf("cannot find the directory of the packages: %w", err)
	}
	return nil
}
