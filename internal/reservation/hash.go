package reservation

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// hashLength is the length of a hash of pods, in hex digits. These are 128 bits: a tenant who
// finds two sets of pods with one hash could have one of them granted and start the other.
const hashLength = 32

// PodsHashes returns a hash of the pods of each replica: of what they request, of the nodes that
// they select, and of how many there are. It does not depend on the names of the requirements.
func PodsHashes(requirements map[string]capacity.PodRequirements, groups []ReplicaGroup) map[key.ReplicaID]string {
	textOf := podTexts(requirements)
	hashes, all := map[string]string{}, map[key.ReplicaID]string{}
	for _, r := range Replicas(groups) {
		text := textOf(r.Pods)
		if _, known := hashes[text]; !known {
			hashes[text] = hashOf(text)
		}
		all[r.Name] = hashes[text]
	}
	return all
}

// Hasher returns a function that returns the same hash of the pods that one of the service's grants is for. It is empty if
// the ledger does not have them. A tenant may have thousands of grants, and many long shapes.
func (s *Service) Hasher() func(*Grant) string {
	quoted := make([]string, len(s.Shapes))
	return func(g *Grant) string {
		pods := g.Pods
		if len(g.Requested) > 0 {
			pods = g.Requested
		}
		if len(pods) == 0 {
			return ""
		}
		counts := map[string]int64{}
		for i, n := range pods {
			if n == 0 {
				continue
			}
			if quoted[i] == "" {
				quoted[i] = strconv.Quote(withPin(&s.Shapes[i], nil).Key())
			}
			counts[quoted[i]] += n
		}
		return hashOf(podsText(counts))
	}
}

func hashOf(text string) string { return naming.Digest(text)[:hashLength] }

// podTexts returns a function that returns the same text for equal pods, whatever the names of
// their requirements.
func podTexts(requirements map[string]capacity.PodRequirements) func(map[string]int64) string {
	texts := map[string]string{}
	for name, r := range requirements {
		texts[name] = strconv.Quote(r.Key())
	}
	return func(pods map[string]int64) string {
		counts := map[string]int64{}
		for name, n := range pods {
			counts[texts[name]] += n
		}
		return podsText(counts)
	}
}

// podsText returns a text of the numbers of pods, by the quoted keys of their requirements.
func podsText(counts map[string]int64) string {
	var b strings.Builder
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[text]; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10) + " x " + text + "\n")
		}
	}
	return b.String()
}
