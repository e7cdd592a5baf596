package upgrade

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
)

// compare returns what an upgrade does to the pods of a release. New workloads are no problem.
// The changelog may announce that pods are replaced, but not that they are lost.
func compare(released, now []Workload, excused bool) ([]string, error) {
	byKey := make(map[string]Workload, len(now))
	for _, w := range now {
		byKey[w.Key] = w
	}
	var changes []string
	for _, was := range released {
		is, still := byKey[was.Key]
		if !still {
			changes = append(changes, fmt.Sprintf("%s (%s) is deleted with its pods: nothing has its key any more", was.Key, was.Object))
			continue
		}
		before, err := encode([]Workload{was})
		if err != nil {
			return nil, err
		}
		after, err := encode([]Workload{is})
		if err != nil {
			return nil, err
		}
		if diff := cmp.Diff(string(before), string(after)); diff != "" && !excused {
			changes = append(changes, fmt.Sprintf("%s (%s): the pods are replaced: -released, +now:\n%s", was.Key, was.Object, diff))
		}
	}
	return changes, nil
}
