package capacity

// Search is the search below Allocate. Tests count its steps.
var Search = (*Free).search
