package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/plugins"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling/framework"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling/types"
)

const (
	oneRevisionType = "one-revision-filter"
	// blind is how long it knows no pods after the endpoint picker listens.
	blind = 3 * time.Second
)

// oneRevision leaves a request the pods of one revision. The first profile that runs for a request chooses
// it among the revisions that have pods of all required roles, and the others follow. As the later release
// does, it leaves none until it has seen the pods for the first time.
type oneRevision struct {
	name string

	// Scope selects the pods that count.
	Scope            string
	RevisionLabelKey string
	RoleLabelKey     string
	RequireRoles     struct{ Values []string }

	scope labels.Selector
	sees  atomic.Bool
}

var _ framework.Filter = &oneRevision{}

// newOneRevision makes one of the parameters of a plugin.
func newOneRevision(name string, parameters json.RawMessage, handle plugins.Handle) (plugins.Plugin, error) {
	r := &oneRevision{name: name}
	if err := json.Unmarshal(parameters, r); err != nil {
		return nil, err
	}
	var err error
	r.scope, err = labels.Parse(r.Scope)
	go r.look(handle.Context())
	return r, err
}

// look makes it see the pods a while after the endpoint picker has begun to listen.
func (r *oneRevision) look(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", grpcPort()))
		if err == nil {
			_ = conn.Close()
			time.Sleep(blind)
			r.sees.Store(true)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// grpcPort is the port for gateways.
func grpcPort() string {
	port := "9002"
	for _, a := range os.Args {
		if given, is := strings.CutPrefix(a, "--grpc-port="); is {
			port = given
		}
	}
	return port
}

// TypedName says what it is called.
func (r *oneRevision) TypedName() plugins.TypedName {
	return plugins.TypedName{Type: oneRevisionType, Name: r.name}
}

// A revision that was chosen for a request.
type revision string

// Clone returns a copy.
func (r revision) Clone() plugins.StateData { return r }

// Filter returns the pods of the revision of the request.
func (r *oneRevision) Filter(_ context.Context, state *types.CycleState, _ *types.LLMRequest, pods []types.Pod) []types.Pod {
	if !r.sees.Load() {
		return nil
	}
	chosen, err := types.ReadCycleStateKey[revision](state, oneRevisionType)
	if err != nil {
		chosen = r.choose(pods)
		state.Write(oneRevisionType, chosen)
	}
	var left []types.Pod
	for _, p := range pods {
		if r.of(p) == chosen {
			left = append(left, p)
		}
	}
	return left
}

func (r *oneRevision) of(p types.Pod) revision {
	return revision(p.GetPod().Labels[r.RevisionLabelKey])
}

// choose returns the revision of a pod in the scope. All pods there are equally likely whose revision has
// the required roles.
func (r *oneRevision) choose(pods []types.Pod) revision {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p types.Pod) bool { return !r.scope.Matches(labels.Set(p.GetPod().Labels)) })
	roles := map[revision]map[string]bool{}
	for _, p := range pods {
		if roles[r.of(p)] == nil {
			roles[r.of(p)] = map[string]bool{}
		}
		roles[r.of(p)][p.GetPod().Labels[r.RoleLabelKey]] = true
	}
	var from []revision
	for _, p := range pods {
		whole := true
		for _, role := range r.RequireRoles.Values {
			whole = whole && roles[r.of(p)][role]
		}
		if whole {
			from = append(from, r.of(p))
		}
	}
	if len(from) == 0 {
		return ""
	}
	return from[rand.IntN(len(from))] //nolint:gosec // Nobody gains by guessing it.
}
