package plan

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/engineflags"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A setting is what prefill and decode have to agree on.
type setting struct {
	// what it is, and why it has to be the same, for a message.
	what, why string
	// of returns the setting of an engine. Its index is -1, and its value empty, if the engine chooses it. It
	// is not ok if it is not known.
	of func(l *engineLine) (g engineflags.Given, ok bool)
	// fits tells whether two values go together, although they differ. It may be nil.
	fits func(l *engineLine, prefill, decode string) bool
}

const noTransfer = "decode cannot use the KV cache of prefill"

// The settings that prefill and decode have to agree on. The connectors of both engines compare them before
// they transfer a KV cache (vllm/distributed/kv_transfer/kv_connector/v1/nixl/metadata.py of vLLM v0.23.0,
// python/sglang/srt/disaggregation/common/conn.py of SGLang v0.5.18).
var settings = []setting{
	{what: "model", why: noTransfer, of: modelOf},
	{what: "name of the model", why: "one of the two knows no model of the name that clients ask for", of: nameOf},
	{what: "block size", why: noTransfer, of: flagOf("", "--block-size", "--page-size"), fits: fitsBlocks},
	{what: "KV cache dtype", why: noTransfer, of: flagOf("auto", "--kv-cache-dtype", "--kv-cache-dtype"), fits: fitsDtype},
	{what: "KV connector", why: noTransfer, of: connectorOf, fits: fitsConnector},
}

// modelOf returns the model that an engine loads.
func modelOf(l *engineLine) (engineflags.Given, bool) {
	g, ok := l.Get("--model", "--model-path")
	if !ok {
		g = engineflags.Given{Index: l.ModelAt, Value: l.Model}
	}
	return g, g.Known()
}

// nameOf returns the name by which an engine knows its model.
func nameOf(l *engineLine) (engineflags.Given, bool) {
	if g, ok := l.Get("--served-model-name"); ok {
		return g, g.Known()
	}
	return modelOf(l)
}

// flagOf reads a flag of vLLM or SGLang.
func flagOf(otherwise, vllm, sglang string) func(*engineLine) (engineflags.Given, bool) {
	return func(l *engineLine) (engineflags.Given, bool) {
		flag := vllm
		if l.engine == launch.EngineSGLang {
			flag = sglang
		}
		if g, ok := l.Get(flag); ok {
			return g, g.Known()
		}
		return engineflags.Given{Index: -1, Value: otherwise}, true
	}
}

// fitsBlocks tells whether one engine can use blocks of the other. vLLM's decode can put several blocks of
// prefill into one of its own.
func fitsBlocks(l *engineLine, prefill, decode string) bool {
	if l.engine == launch.EngineSGLang {
		return false
	}
	p, err1 := strconv.Atoi(prefill)
	d, err2 := strconv.Atoi(decode)
	return prefill == "" || err1 == nil && err2 == nil && p > 0 && d%p == 0
}

// fitsDtype tells whether two dtypes may be one. The engine takes the model's instead of auto.
func fitsDtype(_ *engineLine, prefill, decode string) bool {
	sixteen := []string{"auto", "bfloat16", "bf16", "float16"}
	return (prefill == "auto" || decode == "auto") && slices.Contains(sixteen, prefill) && slices.Contains(sixteen, decode)
}

// connectorOf returns the connector that transfers the KV cache.
func connectorOf(l *engineLine) (engineflags.Given, bool) {
	if l.engine == launch.EngineSGLang {
		return flagOf("mooncake", "", "--disaggregation-transfer-backend")(l)
	}
	return jsonValue(l, "--kv-transfer-config", "kv_connector")
}

// fitsConnector tells whether two connectors may be one. A MultiConnector has others inside.
func fitsConnector(_ *engineLine, prefill, decode string) bool {
	return prefill == "MultiConnector" || decode == "MultiConnector"
}

// jsonValue returns a key of a flag's JSON value, which may have a flag of its own.
func jsonValue(l *engineLine, flag, key string) (engineflags.Given, bool) {
	if g, ok := l.Get(flag + "." + key); ok {
		return g, g.Known()
	}
	g, given := l.Get(flag)
	if !given || !g.Known() {
		return g, false
	}
	values := map[string]any{}
	if err := json.Unmarshal([]byte(g.Value), &values); err != nil {
		return g, false
	}
	g.Value, given = values[key].(string)
	return g, given
}

// warnOfDisagreement warns of prefill and decode engines that cannot use each other's KV cache.
func (p *Plan) warnOfDisagreement() {
	i := slices.IndexFunc(p.Roles, func(r *Role) bool { return r.Type == v1alpha1.ComponentTypePrefiller && r.line != nil })
	if i < 0 {
		return
	}
	prefill := p.Roles[i]
	there := valuesOf(prefill.line)
	for _, r := range p.Roles {
		if r.Type != v1alpha1.ComponentTypeDecoder || r.line == nil {
			continue
		}
		if r.line.engine != prefill.line.engine {
			p.warn(r.path.Child("template"),
				"decode runs %s, which cannot use the KV cache of the role %s, which runs %s: use one engine for both", r.line.engine, prefill.Name, prefill.line.engine)
			continue
		}
		p.warnOfEngineVersions(prefill, r)
		if r.line.Open || prefill.line.Open {
			continue
		}
		for j, s := range settings {
			if there[j].known {
				p.warnOfSetting(s, there[j].Given, prefill.Name, r)
			}
		}
	}
}

// A value is what an engine has for a setting, if that is known.
type value struct {
	engineflags.Given
	known bool
}

// valuesOf reads all settings of an engine. Reading those of prefill once matters, because one can be a megabyte of JSON.
func valuesOf(l *engineLine) []value {
	all := make([]value, len(settings))
	for i, s := range settings {
		all[i].Given, all[i].known = s.of(l)
	}
	return all
}

// handshakeFrom is a release of vLLM whose NIXL connector refuses engines of another version, unless
// enforce_handshake_compat is false (vllm/distributed/kv_transfer/kv_connector/v1/nixl/base_worker.py).
var handshakeFrom = imageref.Version{0, 13, 0}

// warnOfEngineVersions warns of two versions of vLLM that exchange KV caches by NIXL.
func (p *Plan) warnOfEngineVersions(prefill, decode *Role) {
	there, known := vllmVersion(prefill.Leader.engine())
	here, alsoKnown := vllmVersion(decode.Leader.engine())
	connector, _ := connectorOf(decode.line)
	if !known || !alsoKnown || here == there || here.Compare(handshakeFrom) < 0 || there.Compare(handshakeFrom) < 0 ||
		connector.Value != "NixlConnector" || decode.Leader.mentions("enforce_handshake_compat") {
		return
	}
	p.warn(decode.path.Child("template"),
		"vLLM is v%s here and v%s in the role %s, and its NIXL connector refuses another version: use one image for both", here, there, prefill.Name)
}

// warnOfSetting warns of a setting of decode that does not go together with that of the role prefill.
func (p *Plan) warnOfSetting(s setting, there engineflags.Given, prefill string, decode *Role) {
	here, known := s.of(decode.line)
	if !known || here.Value == there.Value || s.fits != nil && s.fits(decode.line, there.Value, here.Value) {
		return
	}
	at := decode.line.args
	if here.Index >= 0 {
		at = decode.line.at(here.Index)
	}
	shown := func(g engineflags.Given) string {
		if g.Value == "" {
			return "what the engine chooses"
		}
		return strconv.Quote(text.Value(g.Value))
	}
	p.warn(at, "the %s is %s here and %s in the role %s, so %s: set the same in both", s.what, shown(here), shown(there), prefill, s.why)
}

// warnOfContext warns of engines whose context is longer than the serving profile allows.
func (p *Plan) warnOfContext(profile string, in *inputv1alpha1.Input) {
	i := slices.IndexFunc(in.Profiles, func(of inputv1alpha1.Profile) bool { return profile != "" && of.Name == profile })
	if i < 0 || in.Profiles[i].MaxContextLength == nil {
		return
	}
	limit := int64(*in.Profiles[i].MaxContextLength)
	for _, r := range p.Roles {
		if r.line == nil {
			continue
		}
		g, given := r.line.Get("--max-model-len", "--context-length")
		n, ok := tokens(g.Value)
		if !given || !ok || n <= limit {
			continue
		}
		p.warn(r.line.at(g.Index),
			"%s %s is more than the %d tokens for which profile %s has room: set at most that, or name another profile", g.Flag, text.Value(g.Value), limit, profile)
	}
}

// multipliers of the engines: 1k is 1000, and 1K is 1024.
var multipliers = map[byte]int64{'k': 1e3, 'm': 1e6, 'g': 1e9, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// tokens reads a length as the engines do: 32768, 32k or 25.6k.
func tokens(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	times, ok := multipliers[s[len(s)-1]]
	if !ok {
		times = 1
	}
	if ok {
		s = s[:len(s)-1]
	}
	const most = 1e9
	if ok && strings.Contains(s, ".") {
		f, err := strconv.ParseFloat(s, 64)
		return int64(f * float64(times)), err == nil && f > 0 && f <= most
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * times, err == nil && n > 0 && n <= most
}
