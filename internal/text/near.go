package text

import (
	"fmt"
	"strings"
)

// Nearest returns the known name that a misspelt one resembles most, or nothing. Short names have to
// resemble it more than long ones. Upper and lower case do not count. Names without a common letter never resemble each other.
func Nearest(name string, known []string) string {
	if len(name) > maxValue {
		return "" // The effort grows with the length, and nobody misspells a name of that length.
	}
	best, found := 2+len(name)/5, ""
	for _, k := range known {
		if d := Distance(strings.ToLower(name), strings.ToLower(k), best); d < min(best, max(len(name), len(k))) {
			best, found = d, k
		}
	}
	return found
}

// DidYouMean asks in brackets whether something is meant, for the end of a phrase. The format is %q or %s.
// It is empty if nothing is near.
func DidYouMean(format, near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean "+format+"?)", near)
}

// Distance returns how many characters have to be added, left out or replaced to make one text of the
// other, or the limit, if that is less.
func Distance(a, b string, limit int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal, least := row[0], i
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
			least = min(least, row[j])
		}
		if least >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}
