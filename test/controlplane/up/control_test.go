package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A recorded remote cluster notes what is done to it.
type recorded struct {
	name string
	done []string
}

func (r *recorded) Name() string { return r.name }
func (r *recorded) CutOff()      { r.done = append(r.done, "cut off") }
func (r *recorded) Reconnect()   { r.done = append(r.done, "reconnected") }

// TestTell holds that the commands reach the cluster that they name, and only while a control plane is
// up.
func TestTell(t *testing.T) {
	t.Parallel()
	s, first, second := state(t.TempDir()), &recorded{name: "cluster-1"}, &recorded{name: "cluster-2"}
	if err := s.tell("cut-off", []string{"cluster-1"}); err == nil || !strings.Contains(err.Error(), "no control plane is up") {
		t.Errorf("without a control plane it says %v", err)
	}
	if err := s.serveControl(t.Context(), control([]*recorded{first, second})); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"cut-off", "reconnect"} {
		if err := s.tell(command, []string{"cluster-2"}); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([][]string{nil, {"cut off", "reconnected"}}, [][]string{first.done, second.done}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for name, args := range map[string][]string{"there is no remote cluster cluster-3": {"cluster-3"}, "takes the name": nil} {
		if err := s.tell("cut-off", args); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("of %q it says %v, want %s", args, err, name)
		}
	}
}
