package launch

// Flags of vLLM that WithFlag adds.
const (
	ShutdownTimeout = "--shutdown-timeout"
	TracesEndpoint  = "--otlp-traces-endpoint"
)

// WithFlag gives vLLM a flag. ShutdownTimeout makes it finish the requests in progress for some seconds after SIGTERM, and
// TracesEndpoint makes it send traces to a collector. A command that has the flag itself, or to which no flag can be
// added, stays as it is.
func WithFlag(c Command, name, value string) Command {
	l := Parse(c)
	if l.program() && l.Engine() != EngineVLLM || has(l.engineWords(), name) {
		return c
	}
	if !l.append(flag{names: []string{name}, value: value}) {
		return c
	}
	return l.join()
}
