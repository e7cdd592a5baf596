package launch

const tracesEndpoint = "--otlp-traces-endpoint"

// WithTracing makes vLLM send traces to a collector. A command that says so itself, or to which no flag can be
// added, stays as it is.
func WithTracing(c Command, endpoint string) Command {
	l := Parse(c)
	if l.program() && l.Engine() != EngineVLLM || has(l.engineWords(), tracesEndpoint) {
		return c
	}
	if !l.append(flag{names: []string{tracesEndpoint}, value: endpoint}) {
		return c
	}
	return l.join()
}
