// Package sorting says what comes first: of two items, of two times, and of items in groups that take turns.
package sorting

import (
	"cmp"
	"slices"
	"time"
)

// First compares two items by whether something holds of them. That of which it holds comes first.
func First(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Earlier returns the earlier one of two times. The zero time is none.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// InTurn returns the indexes of some items so that their groups take turns: the first item of each group comes first, then the second
// ones, and so on.
func InTurn(items int, groupOf func(int) string) []int {
	turns, turn, all := map[string]int{}, make([]int, items), make([]int, items)
	for i := range items {
		all[i] = i
		group := groupOf(i)
		turn[i] = turns[group]
		turns[group]++
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(turn[i], turn[j]) })
	return all
}
