package plan

// waitForGangKind holds what serves while its new pods would name a PodGroup that cannot exist, because the cluster lacks the kind. Volcano
// would never schedule them. Where Crossplane has not looked for the kind so far, it calls again with the answer. What other clusters
// lack is not known.
func (p *Plan) waitForGangKind(running *RunningView) {
	if !p.SkipsMissingKinds || running.HasGangKind == nil {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for j := range c.Groups {
			g := &c.Groups[j]
			if c.Target.Remote() || g.PodGroup == nil || running.Observed(g.PodGroup.Key) {
				continue
			}
			for k := range g.Replicas {
				r := &g.Replicas[k]
				s := running.Replica(r.Key)
				if !s.MayServe() || s.Updated(running.Revision[r.Role.Name]) || s.Replacing() {
					continue
				}
				if len(p.NewGangs) == 0 || p.NewGangs[len(p.NewGangs)-1] != g.PodGroup.Key {
					p.NewGangs = append(p.NewGangs, g.PodGroup.Key)
				}
				r.Held = r.Held || !running.HasGangKind()
			}
		}
	}
}
