package capacity

// Search is the search below Allocate. Tests count its steps.
func Search(f *Free, podSets []PodSet, steps *int) bool { return f.pack().search(podSets, steps) }

// Looks returns how many rows pods look at when they are put onto nodes.
func Looks(f *Free, podSets []PodSet) int {
	p := f.pack()
	p.fill(Merged(podSets))
	return p.looks
}
