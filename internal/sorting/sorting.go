// Package sorting compares items.
package sorting

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
