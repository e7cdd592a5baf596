package launch

import "strconv"

const shutdownTimeout = "--shutdown-timeout"

// WithShutdown makes vLLM finish the requests in progress for some seconds after SIGTERM. A command that says
// so itself, or to which no flag can be added, stays as it is.
func WithShutdown(c Command, seconds int32) Command {
	l := Parse(c)
	if l.program() && l.Engine() != EngineVLLM || has(l.engineWords(), shutdownTimeout) {
		return c
	}
	if !l.append(flag{names: []string{shutdownTimeout}, value: strconv.Itoa(int(seconds))}) {
		return c
	}
	return l.join()
}
