/*
Command kube is kube-apiserver, kube-controller-manager, kube-scheduler or
kubectl, whichever name it is called by. They share most of their code, so one
program is linked in a fraction of the time of four.
*/
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // The time zones of CronJobs.

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // Ways to log in, of kubectl.
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// servers are made only when they are asked for: each sets flags and feature gates
// that are the process's own.
var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kubectl" {
		kubectl()
		return
	}
	server, ok := servers[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "kube: called as %q, which is none of kube-apiserver, kube-controller-manager, kube-scheduler and kubectl\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(server()))
}

func kubectl() {
	// How much it logs counts before its flags are parsed.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
