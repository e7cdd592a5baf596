package plan

// waitForGangKind holds what exists while its new pods would name a PodGroup that cannot exist, because the cluster lacks the kind. Volcano
// would never schedule them. What is not ready now may be again, with the pods that it has. Where Crossplane has not looked for the kind so far, it calls again with the answer. What other clusters
// lack is not known.
func (p *Plan) waitForGangKind(running *RunningView) {
	if !p.SkipsMissingKinds || running.HasGangKind == nil {
		return
	}
	for i := range p.Clusters {
		if c := &p.Clusters[i]; !c.Target.Remote() {
			for j := range c.Groups {
				p.holdForGangKind(&c.Groups[j], running)
			}
		}
	}
}

// holdForGangKind holds what exists in a group while its PodGroup cannot be made, and notes the PodGroup.
func (p *Plan) holdForGangKind(g *Group, running *RunningView) {
	if g.PodGroup == nil || running.Observed(g.PodGroup.Key) {
		return
	}
	needed := false
	for k := range g.Replicas {
		r := &g.Replicas[k]
		s := running.Replica(r.Key)
		if s.Exists && !s.Updated(running.Revision[r.Role.Name]) && !s.Replacing() {
			r.Held, needed = r.Held || !running.HasGangKind(), true
		}
	}
	if needed {
		p.NewGangs = append(p.NewGangs, g.PodGroup.Key)
	}
}
