package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A kindOf is an apiVersion and a kind.
type kindOf struct{ apiVersion, kind string }

// A name is a namespace and a name.
type name struct{ namespace, name string }

func (n name) String() string {
	if n.namespace == "" {
		return n.name
	}
	return n.namespace + "/" + n.name
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// A stored object never changes. What is read often is beside its body.
type stored struct {
	kind   kindOf
	name   name
	body   document
	labels map[string]string
	uid    string
	// version is the resourceVersion, generation that of the spec.
	version, generation int64
	// owner is the UID of the controller.
	owner      string
	deleting   bool
	finalizers []string
	// encoded is the body as requests have it, nil until the first one.
	encoded *fnv1.Resource
}

// resource returns the object as a part of a request. It is encoded once, since a request has many objects that seldom change:
// what a message does not know, it encodes as it is.
func (o *stored) resource() *fnv1.Resource {
	if o.encoded == nil {
		encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(&fnv1.Resource{Resource: o.body})
		if err != nil {
			panic(err) // A mistake in the simulation.
		}
		o.encoded = &fnv1.Resource{}
		o.encoded.ProtoReflect().SetUnknown(encoded)
	}
	return o.encoded
}

func (o *stored) String() string { return o.kind.kind + " " + o.name.String() }

// A change is one write of an object. Old is nil for a creation, current for a removal.
type change struct {
	old, current *stored
	at           time.Time
}

func (c change) either() *stored {
	if c.current != nil {
		return c.current
	}
	return c.old
}

// A table has the objects of one kind, and all changes so far.
type table struct {
	kind    kindOf
	objects map[name]*stored
	// history are the changes so far, without the first ones that were dropped.
	history []change
	dropped int
}

// Errors of the API server.
var (
	errConflict = errors.New("409: the object has been modified")
	errNotFound = errors.New("404: not found")
	errRefused  = errors.New("refused")
)

// A server is a model of an API server.
type server struct {
	tables map[kindOf]*table
	// kinds are those of tables, in the order of their first object.
	kinds   []kindOf
	version int64
	now     func() time.Time
	// changed is told each change.
	changed func(change)
	// scaled are the UIDs of objects whose number of replicas an autoscaler owns.
	scaled map[string]bool
}

func newServer(now func() time.Time, changed func(change)) *server {
	return &server{tables: map[kindOf]*table{}, now: now, changed: changed, scaled: map[string]bool{}}
}

func (s *server) table(k kindOf) *table {
	t := s.tables[k]
	if t == nil {
		t = &table{kind: k, objects: map[name]*stored{}}
		s.tables[k] = t
		s.kinds = append(s.kinds, k)
	}
	return t
}

func (s *server) get(k kindOf, n name) *stored { return s.table(k).objects[n] }

// list returns the objects of a kind in the order of their names.
func (s *server) list(k kindOf) []*stored { return sorted(s.table(k).objects) }

func sorted(of map[name]*stored) []*stored {
	all := make([]*stored, 0, len(of))
	for _, o := range of {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *stored) int { return compareNames(a.name, b.name) })
	return all
}

// write stores an object with a body. Old is the object before, or nil.
func (s *server) write(old *stored, k kindOf, n name, body document) {
	s.version++
	o := &stored{kind: k, name: n, version: s.version, uid: fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version), generation: 1}
	created := s.now().UTC().Format(time.RFC3339)
	if old != nil {
		o.uid, o.generation, created = old.uid, old.generation, text(old.body, "metadata", "creationTimestamp")
		if !equal(at(old.body, "spec"), at(body, "spec")) {
			o.generation++
		}
	}
	meta := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for f, v := range object(body, "metadata").GetFields() {
		meta.Fields[f] = v
	}
	meta.Fields["name"] = structpb.NewStringValue(n.name)
	if n.namespace != "" {
		meta.Fields["namespace"] = structpb.NewStringValue(n.namespace)
	}
	meta.Fields["uid"] = structpb.NewStringValue(o.uid)
	meta.Fields["creationTimestamp"] = structpb.NewStringValue(created)
	meta.Fields["generation"] = structpb.NewNumberValue(float64(o.generation))
	meta.Fields["resourceVersion"] = structpb.NewStringValue(strconv.FormatInt(o.version, 10))
	o.body = with(body, structpb.NewStructValue(meta), "metadata")
	o.labels = texts(o.body, "metadata", "labels")
	o.deleting = text(o.body, "metadata", "deletionTimestamp") != ""
	for _, v := range at(o.body, "metadata", "finalizers").GetListValue().GetValues() {
		o.finalizers = append(o.finalizers, v.GetStringValue())
	}
	for _, r := range items(o.body, "metadata", "ownerReferences") {
		if at(r, "controller").GetBoolValue() {
			o.owner = text(r, "uid")
		}
	}
	if o.deleting && len(o.finalizers) == 0 {
		s.remove(old)
		return
	}
	s.table(k).objects[n] = o
	s.note(change{old: old, current: o})
}

func (s *server) remove(o *stored) {
	delete(s.table(o.kind).objects, o.name)
	s.version++
	s.note(change{old: o})
}

func (s *server) note(c change) {
	c.at = s.now()
	t := s.table(c.either().kind)
	t.history = append(t.history, c)
	s.changed(c)
}

// create stores a new object.
func (s *server) create(body document) {
	k, n := identify(body)
	if s.get(k, n) != nil {
		panic(fmt.Sprintf("%s %s exists", k.kind, n)) // A mistake in the simulation.
	}
	s.write(nil, k, n, body)
}

func identify(body document) (kindOf, name) {
	return kindOf{text(body, "apiVersion"), text(body, "kind")}, name{text(body, "metadata", "namespace"), text(body, "metadata", "name")}
}

// edit changes an object unconditionally, as a user or a controller that reads the newest version does. It changes nothing
// if the object does not exist.
func (s *server) edit(k kindOf, n name, change func(document) document) {
	old := s.get(k, n)
	if old == nil {
		return
	}
	if body := change(old.body); !equalDocuments(body, old.body) {
		s.write(old, k, n, body)
	}
}

// serverOwned are the fields of an object's metadata that an apply keeps.
var serverOwned = []string{"finalizers", "deletionTimestamp", "uid", "creationTimestamp", "generation", "resourceVersion"}

// apply applies an object as its only field manager besides those of its status, its finalizers and its scale. With a
// resourceVersion it is a compare-and-swap.
func (s *server) apply(body document, controller string) error {
	k, n := identify(body)
	old, version := s.get(k, n), text(body, "metadata", "resourceVersion")
	if old == nil {
		if version != "" {
			return errNotFound
		}
		s.write(nil, k, n, body)
		return nil
	}
	if version != "" && version != strconv.FormatInt(old.version, 10) {
		return errConflict
	}
	if old.owner != "" && old.owner != controller {
		return fmt.Errorf("%w: another object controls it", errRefused)
	}
	meta := object(body, "metadata")
	for _, f := range serverOwned {
		meta = with(meta, at(old.body, "metadata", f), f)
	}
	body = with(body, structpb.NewStructValue(meta), "metadata")
	body = with(body, at(old.body, "status"), "status")
	body = s.keepScale(old, body)
	if !equalDocuments(body, old.body) {
		s.write(old, k, n, body)
	}
	return nil
}

// setStatus writes the status of an object, if it differs.
func (s *server) setStatus(k kindOf, n name, status document) {
	s.edit(k, n, func(d document) document { return with(d, structpb.NewStructValue(status), "status") })
}

// delete deletes an object. It stays as long as it has finalizers.
func (s *server) delete(k kindOf, n name) {
	o := s.get(k, n)
	switch {
	case o == nil || o.deleting:
	case len(o.finalizers) == 0:
		s.remove(o)
	default:
		s.write(o, k, n, withText(o.body, s.now().UTC().Format(time.RFC3339), "metadata", "deletionTimestamp"))
	}
}

// setFinalizer adds or removes a finalizer. Without finalizers, an object that is being deleted goes.
func (s *server) setFinalizer(k kindOf, n name, finalizer string, want bool) {
	o := s.get(k, n)
	if o == nil || slices.Contains(o.finalizers, finalizer) == want {
		return
	}
	all := slices.DeleteFunc(slices.Clone(o.finalizers), func(f string) bool { return f == finalizer })
	if want {
		all = append(all, finalizer)
	}
	var v *structpb.Value
	if len(all) > 0 {
		v = value(list(all...))
	}
	s.write(o, k, n, with(o.body, v, "metadata", "finalizers"))
}
