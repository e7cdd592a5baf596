// Package sorting compares items.
package sorting

import "time"

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
