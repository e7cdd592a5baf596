package simulation

// Cost counts what a simulation costs.
type Cost struct {
	// Reconciles are those of composite resources, by kind, and Timed those that a time to live or a back-off woke.
	Reconciles map[string]int
	Timed      int
	// Calls of the function, by the kind of the composite resource.
	Calls map[string]*Calls
	// Writes of the API server.
	Writes int
	// Violations of each invariant, whether or not it is checked.
	Violations map[string]int

	each map[xrKey]*one
}

// one is what one composite resource has cost.
type one struct{ reconciles, largest int }

// Calls are what the calls for a kind have cost.
type Calls struct {
	Count, Largest, LargestReply int
}

// reset counts from zero.
func (c *Cost) reset() {
	*c = Cost{Reconciles: map[string]int{}, Calls: map[string]*Calls{}, Violations: map[string]int{}, each: map[xrKey]*one{}}
}

func (c *Cost) of(xr xrKey) *one {
	if c.each[xr] == nil {
		c.each[xr] = &one{}
	}
	return c.each[xr]
}

func (c *Cost) add(xr xrKey, request, response int) {
	calls := c.Calls[xr.kind.kind]
	if calls == nil {
		calls = &Calls{}
		c.Calls[xr.kind.kind] = calls
	}
	c.of(xr).largest = max(c.of(xr).largest, request)
	calls.Count++
	calls.Largest, calls.LargestReply = max(calls.Largest, request), max(calls.LargestReply, response)
}

func (c *Cost) reconciled(xr xrKey) {
	c.Reconciles[xr.kind.kind]++
	c.of(xr).reconciles++
}
