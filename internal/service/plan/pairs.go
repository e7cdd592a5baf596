package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// pairKind is the kind of units of prefill and decode replicas.
const pairKind = ""

// ChangesInPairs tells whether prefill and decode replicas change together. They then have one
// revision, which changes with the template of each of these roles.
func (p *Plan) ChangesInPairs() bool {
	return p.most(v1alpha1.ComponentTypePrefiller) >= 0 && p.most(v1alpha1.ComponentTypeDecoder) >= 0
}

// InPair tells whether the replicas of a role change together with those of other roles. Workers
// answer requests by themselves, so they never do.
func (p *Plan) InPair(r *Role) bool {
	return r.Type != v1alpha1.ComponentTypeWorker && p.ChangesInPairs()
}

// most is the number of replicas of the largest role of a type. It is -1 if there is none.
func (p *Plan) most(t v1alpha1.ComponentType) int32 {
	n := int32(-1)
	for _, r := range p.Roles {
		if r.Type == t {
			n = max(n, r.Replicas)
		}
	}
	return n
}

// pairs is the number of units of prefill and decode replicas in a service without groups: each replica
// of the largest decode role is in another one. Decode whose revision has no prefill answers requests by
// itself, so one prefill replica does not make all decode replicas change at once. Where it does not, each
// unit has both. Without decode, each prefill replica is a unit.
func (p *Plan) pairs() int32 {
	prefill, decode := p.most(v1alpha1.ComponentTypePrefiller), p.most(v1alpha1.ComponentTypeDecoder)
	switch {
	case decode <= 0:
		return max(prefill, 1)
	case p.needBoth():
		return min(prefill, decode)
	}
	return decode
}

// needBoth tells whether prefill and decode need each other to answer, and there are both.
func (p *Plan) needBoth() bool {
	return p.most(v1alpha1.ComponentTypePrefiller) > 0 && p.most(v1alpha1.ComponentTypeDecoder) > 0 && needEachOther(p.Roles)
}

// needEachOther tells whether decode answers no request without prefill. SGLang's refuses a request without the room of a
// prefill engine ("without bootstrap room id", python/sglang/srt/disaggregation/decode.py).
func needEachOther(roles []*Role) bool {
	return slices.ContainsFunc(roles, func(r *Role) bool {
		return r.Type == v1alpha1.ComponentTypeDecoder && r.engine == launch.EngineSGLang
	})
}

// pair is the unit of a replica of a role: the replicas of each role are spread evenly. A single prefill
// replica is in the unit that changes last, so a change that fails leaves it to the others.
func (p *Plan) pair(r *Role, index int32) int32 {
	units := p.pairs()
	if index < r.Replicas {
		return index * units / r.Replicas
	}
	return units + (index-r.Replicas)/p.perPair(r)
}

// perPair is the most replicas of a role in one unit.
func (p *Plan) perPair(r *Role) int32 {
	units := p.pairs()
	return max((r.Replicas+units-1)/units, 1)
}
