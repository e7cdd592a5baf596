// Benchfleet prints what a fleet costs, as a table in Markdown.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/fusioninfer/function-inferenceservice/test/simulation"
)

func main() {
	services := flag.Int("services", 1000, "how many services the fleet has")
	clusters := flag.Int("clusters", 20, "how many clusters the fleet has")
	flag.Parse()
	debug.SetGCPercent(400) // The simulation allocates much and keeps little.
	figures := simulation.Fleet(simulation.InProcess(), *services, *clusters, func(what string) { fmt.Fprintln(os.Stderr, what) })
	fmt.Printf("| with %d services on %d clusters | now | bar |\n|---|---|---|\n", *services, *clusters)
	for _, f := range figures {
		fmt.Printf("| %s | %s | %s |\n", f.Name, f.Value, f.Bar)
	}
}
