package modelroute

// KnownNames are the names of models that engines answer.
type KnownNames map[string]bool

// Known returns the names of an engine's model and of its adapters.
func Known(served, adapters []string) KnownNames {
	all := make(KnownNames, len(served)+len(adapters))
	for _, names := range [][]string{served, adapters} {
		for _, n := range names {
			all[n] = true
		}
	}
	return all
}

// Unknown returns the targets of a model that no engine answers, in their order.
func (k KnownNames) Unknown(m *Model) []string {
	var unknown []string
	for _, t := range m.Targets {
		if !k[t.Name] {
			unknown = append(unknown, t.Name)
		}
	}
	return unknown
}

// InCacheOnly says of targets that engines answer only with an adapter that is loaded at run time.
const InCacheOnly = "only if its spec.adapterCache has directories of these names: give each target an adapter, or "

// Routers says which routers go by the names of models.
const Routers = "it needs servedModels, prefill and decode, an endpointPickerConfig of " + Group + ", or an endpoint picker of dialect LLMD in the Composition's input"

// Remedy says what to do about a target that no engine answers.
const Remedy = "write the name of an adapter in --lora-modules, or the name of the engines' own model"
