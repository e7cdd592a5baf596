package fleet

/*
A service reads what it was granted some time after that was decided. Meanwhile it may have
withdrawn a replica, so that its room was given to somebody else, and ask for it again: the
grant that it reads is of the first time, and not worth anything any more. Serials tell the
two apart.

An ask has a serial that is raised with everything that is added to it, and each replica has
the serial with which it was added. A cluster answers with the highest serial of what it was
asked for. So an answer with the serial of a replica, or a higher one, was given to an ask that
had the replica already and has had it ever since: it still holds. One with a lower serial was
given before, and is waited out.

Other replicas of the service keep their grants meanwhile, and what is there stays whatever
was granted.
*/

// Renew gives an ask its serials: what was seen of it keeps those that it has, and what is
// added gets a new one. Answered is the highest serial that clusters are seen to have
// answered, for when the ask itself cannot be seen: it may have been deleted, and must not
// start with serials that were answered already.
func (a *Ask) Renew(seen *Ask, answered int64) {
	if seen == nil {
		seen = &Ask{Serial: answered}
	}
	next := max(seen.Serial, answered) + 1
	a.Serial = seen.Serial
	for name, at := range a.Clusters {
		before := map[string]int64{}
		for _, r := range all(seen.Clusters[name].Units) {
			before[r.Name] = r.Serial
		}
		units := make([]Unit, len(at.Units))
		for i, u := range at.Units {
			units[i] = Unit{Name: u.Name, Replicas: make([]Replica, len(u.Replicas))}
			for j, r := range u.Replicas {
				serial, asked := before[r.Name]
				if !asked {
					serial, a.Serial = next, next
				}
				r.Serial = serial
				units[i].Replicas[j] = r
			}
		}
		at.Units = units
		a.Clusters[name] = at
	}
}

// serial that an answer to this has.
func (at *AskedCluster) serial() int64 {
	var highest int64
	for _, r := range all(at.Units) {
		highest = max(highest, r.Serial)
	}
	return highest
}

// Granted are those replicas of an ask that an answer of the cluster, with a serial, is about
// and grants.
func (at *AskedCluster) Granted(serial int64, replicas []string) map[string]bool {
	answered := make(map[string]bool, len(replicas))
	for _, name := range replicas {
		answered[name] = true
	}
	granted := map[string]bool{}
	for _, r := range all(at.Units) {
		if answered[r.Name] && r.Serial <= serial {
			granted[r.Name] = true
		}
	}
	return granted
}
