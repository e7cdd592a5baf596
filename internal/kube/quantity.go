package kube

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// What a quantity is written with at most. Its library counts with as many digits as the
// exponent says, so that a few bytes could keep it busy for ever.
const (
	maxQuantity = 64
	maxExponent = 30
)

// ParseQuantity reads a quantity. Nothing else in this module may call the library's
// function for a text that somebody else wrote.
func ParseQuantity(text string) (resource.Quantity, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxQuantity {
		return resource.Quantity{}, fmt.Errorf("it has %d characters, and at most %d are taken", len(text), maxQuantity)
	}
	// E and Ei are suffixes, and no exponents.
	if at := strings.IndexAny(text, "eE"); at >= 0 && text[at:] != "E" && text[at:] != "Ei" {
		n, err := strconv.Atoi(text[at+1:])
		if err != nil || n < -maxExponent || n > maxExponent {
			return resource.Quantity{}, fmt.Errorf("its exponent must be a whole number from -%d to %d", maxExponent, maxExponent)
		}
	}
	return resource.ParseQuantity(text)
}
