package simulation

import "fmt"

// podsOf returns the pods of a LeaderWorkerSet.
func podsOf(manifest document) []pod {
	template := object(manifest, "spec", "leaderWorkerTemplate")
	size := max(1, number(template, "size"))
	worker := podOf(object(template, "workerTemplate", "spec"))
	leader := worker
	if d := object(template, "leaderTemplate", "spec"); d != nil {
		leader = podOf(d)
	}
	var all []pod
	replicas := 1
	if v := at(manifest, "spec", "replicas"); v != nil {
		replicas = int(v.GetNumberValue())
	}
	for range replicas {
		all = append(all, leader)
		for range size - 1 {
			all = append(all, worker)
		}
	}
	return all
}

func podOf(spec document) pod {
	p := pod{nodes: texts(spec, "nodeSelector")}
	for _, c := range items(spec, "containers") {
		v := at(c, "resources", "limits", "nvidia.com/gpu")
		if v == nil {
			v = at(c, "resources", "requests", "nvidia.com/gpu")
		}
		gpus := int(v.GetNumberValue())
		if s := v.GetStringValue(); s != "" {
			_, _ = fmt.Sscan(s, &gpus) // Anything else is none.
		}
		p.gpus += gpus
	}
	return p
}
