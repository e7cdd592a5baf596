package cluster

import "testing"

// TestPorts holds that no program gets the port of another one that does not listen yet.
func TestPorts(t *testing.T) {
	seen := map[int]bool{}
	for range 500 {
		free, err := ports(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range free {
			if seen[p] {
				t.Errorf("ports returned %d twice", p)
			}
			seen[p] = true
		}
	}
}
