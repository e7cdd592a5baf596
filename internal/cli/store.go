package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// An identity tells the objects of a store apart.
type identity struct{ group, kind, namespace, name string }

func identityOf(o object) identity {
	gvk := o.GroupVersionKind()
	return identity{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}
}

func (i identity) compare(with identity) int {
	return strings.Compare(strings.Join([]string{i.group, i.kind, i.namespace, i.name}, "\x00"),
		strings.Join([]string{with.group, with.kind, with.namespace, with.name}, "\x00"))
}

// nice returns {namespace}/{name}, or the name of a cluster-scoped object.
func (i identity) nice() string { return strings.TrimPrefix(i.namespace+"/"+i.name, "/") }

// A stored object is one version of an object.
type stored struct {
	object   object
	revision int64
	// text is the object without its resourceVersion. Equal texts are equal versions.
	text []byte
	// resource is the object as a request has it. It is made when it is first needed.
	resource *fnv1.Resource
}

// A store has the objects of a control plane. It knows nothing of what is in them, except for
// the metadata, and for the times in ledgers.
type store struct {
	objects map[identity]*stored
	// kinds has the identities of each kind.
	kinds map[schema.GroupKind]map[identity]bool
	// composed has the composed resources of each XR by their keys.
	composed map[identity]map[string]identity
	revision int64
}

func newStore() *store {
	return &store{objects: map[identity]*stored{}, kinds: map[schema.GroupKind]map[identity]bool{}, composed: map[identity]map[string]identity{}}
}

// get returns an object, and whether it exists. Nobody may change it.
func (s *store) get(id identity) (object, bool) {
	if at := s.objects[id]; at != nil {
		return at.object, true
	}
	return object{}, false
}

// aTime is a time as Kubernetes writes it.
var aTime = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})`)

// put writes an object. It reports whether anything but times has changed. An object that
// only has newer times is written, and makes nobody wait for the next change.
func (s *store) put(o object) (bool, error) {
	id := identityOf(o)
	o = *o.DeepCopy()
	o.SetResourceVersion("")
	text, err := json.Marshal(o.Object)
	if err != nil {
		return false, fmt.Errorf("cannot store %s %s: %w", o.GetKind(), id.nice(), err)
	}
	before := s.objects[id]
	if before != nil && bytes.Equal(before.text, text) {
		return false, nil
	}
	s.revision++
	o.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.objects[id] = &stored{object: o, revision: s.revision, text: text}
	kind := schema.GroupKind{Group: id.group, Kind: id.kind}
	if s.kinds[kind] == nil {
		s.kinds[kind] = map[identity]bool{}
	}
	s.kinds[kind][id] = true
	return before == nil || !bytes.Equal(timeless(before.object, before.text), timeless(o, text)), nil
}

// timeless returns the text of an object without times, and without the generation, which counts what has only newer times,
// too. The ledger of a cluster has times as well: since when the request of a service is missing is noted anew as long as
// Objects of the service are there. It is compressed.
func timeless(o object, text []byte) []byte {
	o = *o.DeepCopy()
	o.SetResourceVersion("")
	o.SetGeneration(0)
	// A ledger that cannot be read is compared as it is: the function says what is wrong with it.
	if ledger, is, err := ledgerOf(o); is && err == nil {
		o.Object["binaryData"] = ledger
	}
	if known, err := json.Marshal(o.Object); err == nil {
		text = known
	}
	return aTime.ReplaceAll(text, nil)
}

// remove removes an object.
func (s *store) remove(id identity) {
	delete(s.objects, id)
	delete(s.kinds[schema.GroupKind{Group: id.group, Kind: id.kind}], id)
}

// own notes that an XR has composed an object under a key.
func (s *store) own(xr identity, key string, id identity) {
	if s.composed[xr] == nil {
		s.composed[xr] = map[string]identity{}
	}
	s.composed[xr][key] = id
}

// observed returns the composed resources of an XR by their keys.
func (s *store) observed(xr identity) map[string]object {
	all := make(map[string]object, len(s.composed[xr]))
	for key, id := range s.composed[xr] {
		if o, exists := s.get(id); exists {
			all[key] = o
		}
	}
	return all
}

// ofKind returns the objects of a kind, sorted by namespace and name.
func (s *store) ofKind(group, kind string) []object {
	ids := slices.SortedFunc(maps.Keys(s.kinds[schema.GroupKind{Group: group, Kind: kind}]), identity.compare)
	all := make([]object, 0, len(ids))
	for _, id := range ids {
		all = append(all, s.objects[id].object)
	}
	return all
}

// selected returns the objects that a requirement selects.
func (s *store) selected(sel *fnv1.ResourceSelector) []*stored {
	gv, _ := schema.ParseGroupVersion(sel.GetApiVersion()) // One that cannot be parsed selects nothing.
	if name := sel.GetMatchName(); name != "" {
		at := s.objects[identity{gv.Group, sel.GetKind(), sel.GetNamespace(), name}]
		if at == nil || at.object.GetAPIVersion() != sel.GetApiVersion() {
			return nil
		}
		return []*stored{at}
	}
	var all []*stored
	for _, o := range find(s.ofKind(gv.Group, sel.GetKind()), sel) {
		all = append(all, s.objects[identityOf(o)])
	}
	return all
}

// resources returns what a requirement selects, as a request has it.
func (s *store) resources(sel *fnv1.ResourceSelector) ([]*fnv1.Resource, error) {
	found := s.selected(sel)
	all := make([]*fnv1.Resource, 0, len(found))
	for _, at := range found {
		if at.resource == nil {
			r, err := asStruct(at.object)
			if err != nil {
				return nil, err
			}
			at.resource = &fnv1.Resource{Resource: r}
		}
		all = append(all, at.resource)
	}
	return all, nil
}

// seen describes the versions of everything that an XR's next call reads: the XR, what it has
// composed, and what it requires. Two calls at one time that see the same answer the same.
func (s *store) seen(xr identity, reqs *fnv1.Requirements) string {
	var b strings.Builder
	note := func(name string, revision int64) { fmt.Fprintf(&b, "%s=%d;", name, revision) }
	note("", s.objects[xr].revision)
	for _, key := range slices.Sorted(maps.Keys(s.composed[xr])) {
		if at := s.objects[s.composed[xr][key]]; at != nil {
			note(key, at.revision)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reqs.GetResources())) {
		note(name, 0)
		for _, at := range s.selected(reqs.GetResources()[name]) {
			note("", at.revision)
		}
	}
	return b.String()
}
