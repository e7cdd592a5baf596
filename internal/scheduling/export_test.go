package scheduling

import "github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"

// MembersOf lists the members as "NAME is CLUSTER", with ", deselected" where that is so.
func MembersOf(demand *Demand, snapshot *Snapshot) (names, warnings []string) {
	all, warnings := newView(demand, snapshot).members()
	for _, m := range all {
		text := m.target.Cluster + " is " + m.inferenceCluster
		if m.deselected {
			text += ", deselected"
		}
		names = append(names, text)
	}
	return names, warnings
}

// ReadCluster returns a candidate with what an InferenceCluster says.
func ReadCluster(ic *v1alpha1.InferenceCluster) Candidate {
	c := Candidate{}
	readCluster(&c, ic)
	return c
}

// AddUnassigned is addUnassigned.
var AddUnassigned = addUnassigned

// StepsOf returns how many node classes the searches of a call look at, and how many they may.
func StepsOf(problem Problem) (steps, most int) {
	p := newScheduler(problem)
	p.assign()
	return searchSteps - p.steps, searchSteps
}
