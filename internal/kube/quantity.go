package kube

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of a quantity's text. The library computes with as many digits as the exponent says,
// so a text of a few bytes could keep it busy for hours.
const (
	maxQuantity = 64 // Characters.
	maxExponent = 30
)

// ParseQuantity parses a quantity of at most 64 characters, with an exponent from -30 to 30.
// For text from a request, call it rather than resource.ParseQuantity, which has no limits.
func ParseQuantity(text string) (resource.Quantity, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxQuantity {
		return resource.Quantity{}, fmt.Errorf("it has %d characters, and must have at most %d", len(text), maxQuantity)
	}
	// E and Ei alone are suffixes, not exponents.
	if at := strings.IndexAny(text, "eE"); at >= 0 && text[at:] != "E" && text[at:] != "Ei" {
		n, err := strconv.Atoi(text[at+1:])
		if errors.Is(err, strconv.ErrSyntax) {
			return resource.Quantity{}, resource.ErrFormatWrong
		}
		if err != nil || n < -maxExponent || n > maxExponent {
			return resource.Quantity{}, fmt.Errorf("its exponent must be a whole number from -%d to %d", maxExponent, maxExponent)
		}
	}
	return resource.ParseQuantity(text)
}
