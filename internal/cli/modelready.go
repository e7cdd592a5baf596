package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// maxLoads is how often the function is called until the weights are loaded. It makes a claim first, then a
// Job, and then the replicas.
const maxLoads = 8

// plan adds what is composed once the weights are loaded.
func (r *rendered) plan(ctx context.Context, fn Runner, g *snapshot, rsp *fnv1.RunFunctionResponse) error {
	g, rsp, err := loaded(ctx, fn, g, rsp)
	if err != nil || isFatal(rsp) {
		return err
	}
	then, err := compose(g, rsp)
	if err != nil {
		return err
	}
	r.planned = then.composed
	return nil
}

// loaded returns what a service or a ModelCache becomes as if the Jobs that load its weights had succeeded.
func loaded(ctx context.Context, fn Runner, g *snapshot, rsp *fnv1.RunFunctionResponse) (*snapshot, *fnv1.RunFunctionResponse, error) {
	if ofCluster(g.xr) || ofModel(g.xr) || g.store != nil || isFatal(rsp) {
		return g, rsp, nil // In a simulation, Jobs have succeeded already.
	}
	then := *g
	then.observed = maps.Clone(g.observed)
	if then.observed == nil {
		then.observed = map[string]object{}
	}
	shared, err := then.loadShared(ctx, fn, rsp)
	if err != nil {
		return nil, nil, err
	}
	if shared {
		if rsp, err = call(ctx, fn, &then); err != nil {
			return nil, nil, err
		}
	}
	for range maxLoads {
		loading, err := then.load(rsp)
		if err != nil {
			return nil, nil, err
		}
		if !loading || isFatal(rsp) {
			break
		}
		if rsp, err = call(ctx, fn, &then); err != nil {
			return nil, nil, err
		}
	}
	return &then, rsp, nil
}

// sharedCache returns the ModelCaches that a service reads, and whether it names one.
func (g *snapshot) sharedCache(rsp *fnv1.RunFunctionResponse) (found []object, named bool) {
	sel, named := rsp.GetRequirements().GetResources()[require.ModelCache]
	if !named || ofCache(g.xr) {
		return nil, false
	}
	return find(g.cluster, sel), true
}

// missingCache says which ModelCache has to be among the required objects for the roles of a service to be there.
func (g *snapshot) missingCache(rsp *fnv1.RunFunctionResponse) string {
	if found, named := g.sharedCache(rsp); !named || len(found) > 0 {
		return ""
	}
	name, _, _ := unstructured.NestedString(g.xr.Object, "spec", "model", "cacheRef", "name")
	_, namespace := serviceOf(g.xr)
	return fmt.Sprintf("--required has no ModelCache %s/%s, so the roles wait for its weights, and are not here. Pass a file with the ModelCache by --required.", namespace, name)
}

// loadShared gives the ModelCache that a service names the status that it has with its weights loaded. It tells
// whether there is such a ModelCache among the required objects.
func (g *snapshot) loadShared(ctx context.Context, fn Runner, rsp *fnv1.RunFunctionResponse) (bool, error) {
	found, _ := g.sharedCache(rsp)
	if len(found) == 0 {
		return false, nil
	}
	i := slices.IndexFunc(g.cluster, func(o object) bool { return identityOf(o) == identityOf(found[0]) })
	cache := &snapshot{xr: asXR(*g.cluster[i].DeepCopy()), input: g.input, observed: map[string]object{}, cluster: g.cluster}
	rsp, err := call(ctx, fn, cache)
	if err != nil {
		return false, err
	}
	cache, rsp, err = loaded(ctx, fn, cache, rsp)
	if err != nil || isFatal(rsp) {
		return false, err
	}
	out, err := compose(cache, rsp)
	if err != nil {
		return false, err
	}
	g.cluster = slices.Clone(g.cluster)
	cache.xr.Object["status"] = out.xr.Object["status"]
	g.cluster[i] = cache.xr
	return true, nil
}

// load completes what loads weights among the composed resources. It tells whether there was any.
func (g *snapshot) load(rsp *fnv1.RunFunctionResponse) (bool, error) {
	out, err := compose(g, rsp)
	if err != nil {
		return false, err
	}
	now, found := latestTime(g.cluster), false
	for _, o := range out.composed {
		_, _, inner := unwrap(o)
		if inner.GetKind() != "Job" && inner.GetKind() != "PersistentVolumeClaim" {
			continue
		}
		key := keyOf(o)
		was := g.observed[key]
		if o.GetName() == "" {
			o.SetName(generatedName(o, g.xr, key))
		}
		if o = live(was, o, "", now); isObject(o) {
			o = synced(o, false, "", now)
		} else {
			o = running(o, now)
		}
		o.SetResourceVersion("1") // Whatever exists has one.
		if was.Object == nil || jsonOf(was.Object) != jsonOf(o.Object) {
			g.observed[key], found = o, true
		}
	}
	return found, nil
}
