package capacity

// Devices returns how many devices of all kinds are free, and how many there are.
func (f *Free) Devices() (free, total int64) {
	for i := range f.Pools {
		p := &f.Pools[i]
		for name, amount := range p.Total {
			if !device(name) {
				continue
			}
			total = Saturated(total, amount/1000, 1)
			for _, n := range p.Free {
				free = Saturated(free, n.Free[name]/1000, n.Count)
			}
		}
	}
	return free, total
}
