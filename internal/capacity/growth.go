package capacity

import "fmt"

// A Growth is what pods request in addition to what they requested before, and the node
// selector of these pods.
type Growth struct {
	More         Resources
	NodeSelector map[string]string
}

// Shortage says of which resource the nodes together have too little for the growth, or returns
// nothing. If the sums suffice, the pods may still not fit onto single nodes.
func (f *Free) Shortage(grown []Growth) string {
	for _, g := range grown {
		pools := f.poolsFor(&PodRequirements{NodeSelector: g.NodeSelector})
		if len(pools) == 0 {
			return "no pool has the labels " + labelText(g.NodeSelector)
		}
		for _, name := range sortedNames(g.More) {
			if free, total, unlimited := f.sum(pools, name); !unlimited && free < g.More[name] {
				return fmt.Sprintf("%s of %s %s free in %s, and %s more are needed", quantityText(free), quantityText(total), name, f.names(pools), quantityText(g.More[name]))
			}
		}
	}
	return ""
}
