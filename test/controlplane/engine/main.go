/*
Command engine stands in for the programs in the images of engines. It does what the name says by
which it is called:

	vllm serve MODEL ...                              vLLM's server
	python3 -m vllm.entrypoints.openai.api_server ... the same
	python3 -m sglang.launch_server ...               SGLang's server
	sglang serve ...                                  the same
	ray start --head | --address=HOST:PORT [--block]  a node of a Ray cluster
	hf download MODEL --local-dir DIR [--revision R]  huggingface_hub's command line
	aws s3 sync s3://BUCKET/PREFIX DIR [--delete]     AWS's command line

It answers OpenAI's requests as they do, streams too, with words that name the pod and the model. It
knows the flags that matter to a control plane and ignores all others: names of models, address and
port, the nodes of a replica, LoRA adapters, how the KV cache is transferred, and how to shut down. It
finds adapters at run time by the variables of vLLM.

These environment variables are its own:

	STANDIN_ADDRESS             the address of the pod, at which it listens in place of 0.0.0.0
	STANDIN_POD                 the name of the pod
	STANDIN_IMAGE               the image of the container; its tag is the version of the engine
	STANDIN_DIR                 a directory that the programs of a container share
	STANDIN_MOUNTS              lines of DIRECTORY=PATH: what a container calls PATH
	STANDIN_LIFELINE            the number of a file: when it ends, so does the program
	STANDIN_STARTUP_SECONDS     how long it takes to load the model, 0.5 by default
	STANDIN_JOIN_SECONDS        how long a leader waits for the other nodes of its replica, 600 by default
	STANDIN_TOKEN_MILLISECONDS  how long it takes to generate a token, 20 by default
	STANDIN_EXIT_CODE           with this code it ends once the model is loaded
*/
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	holdLifeline()
	code, err := run(filepath.Base(os.Args[0]), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run is the program of a name. It returns the code to exit with.
func run(name string, args []string) (int, error) {
	switch name {
	case "ray":
		return ray(args)
	case "hf":
		return hf(args, os.Getenv)
	case "aws":
		return awsCLI(context.Background(), args, os.Getenv)
	case "vllm", "sglang":
		if len(args) == 0 || args[0] != "serve" {
			return 2, fmt.Errorf("%s: the stand-in knows serve only", name)
		}
		return serve(parse(engineOf(name), args[1:], os.Getenv))
	case "python", "python3":
		if i := moduleAt(args); i >= 0 {
			e, rest := module(args[i]), args[i+1:]
			return serve(parse(e, rest, os.Getenv))
		}
		if len(args) > 1 && args[0] == "-c" && strings.Contains(args[1], ofLibrary) {
			return hubSize(args[2:], os.Getenv)
		}
		return python(name, args)
	}
	return 2, fmt.Errorf("the stand-in is not called %s", name)
}

// moduleAt returns where in Python's arguments the module of an engine is, or -1.
func moduleAt(args []string) int {
	for i, a := range args {
		if i > 0 && args[i-1] == "-m" && module(a) != "" {
			return i
		}
	}
	return -1
}

func module(name string) engine {
	switch {
	case strings.HasPrefix(name, "vllm.entrypoints."):
		return vllm
	case name == "sglang.launch_server":
		return sglang
	}
	return ""
}

func engineOf(program string) engine { return engine(program) }

// python runs the machine's own Python.
func python(name string, args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		file := filepath.Join(dir, name)
		if program, err := filepath.EvalSymlinks(file); err != nil || program == self {
			continue
		}
		return 1, syscall.Exec(file, append([]string{name}, args...), os.Environ()) //nolint:gosec // The user's own command.
	}
	return 127, fmt.Errorf("%s: not found", name)
}

// holdLifeline ends this process when the file ends that STANDIN_LIFELINE names: whoever started it
// is gone.
func holdLifeline() {
	fd, err := strconv.Atoi(os.Getenv("STANDIN_LIFELINE"))
	if err != nil {
		return
	}
	line := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		if _, err := line.Read(make([]byte, 1)); err != nil && !errors.Is(err, syscall.EBADF) {
			os.Exit(1)
		}
	}()
}

// background starts this program once more, with other arguments, and does not wait for it.
func background(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // It outlives this process.
	cmd.Args[0] = "ray"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if fd, err := strconv.Atoi(os.Getenv("STANDIN_LIFELINE")); err == nil {
		// The child has it as the file of the same number.
		for len(cmd.ExtraFiles) < fd-2 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "lifeline"))
		}
	}
	return cmd, cmd.Start()
}

// duration reads a duration from an environment variable, as a number of a unit.
func duration(env func(string) string, name string, unit, or time.Duration) time.Duration {
	if n, err := strconv.ParseFloat(env(name), 64); err == nil && n >= 0 {
		return time.Duration(n * float64(unit))
	}
	return or
}
