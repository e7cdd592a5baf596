package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// errUnusual hands a message over to the protobuf module.
var errUnusual = errors.New("not the common case")

const (
	// maxDepth keeps nested values from growing the stack without end. The protobuf
	// module has the same limit, but counts messages, of which a value has two.
	maxDepth = protowire.DefaultRecursionLimit
	// deepEnough is how deep values are read of which the function reads anything. It is far
	// deeper than what it takes, and than any object of Kubernetes. What is below is left
	// out, so that a document that is too deep is refused by its path rather than by gRPC.
	deepEnough = 200
)

// A kept tells which fields of an object are read, by name, and which below them.
// Nil keeps everything.
type kept map[string]kept

// metadata is what is read of any object's.
var metadata = kept{
	"name": nil, "namespace": nil, "uid": nil, "labels": nil, "ownerReferences": nil,
	"annotations": kept{"crossplane.io/composition-resource-name": nil},
	"generation":  nil, "creationTimestamp": nil, "deletionTimestamp": nil, "resourceVersion": nil,
}

// composite is what is read of the XR.
var composite = kept{
	"apiVersion": nil, "kind": nil, "metadata": metadata, "spec": nil,
	"status": kept{
		"conditions": nil, "unreachableSince": nil, "nodes": nil, "free": nil, "services": nil,
		"pools": nil, "allocations": nil, "waiting": nil, "gateway": nil,
	},
}

// observed is what is read of observed composed resources and of required
// resources: what they are, whose they are and how they are. The rest, which is
// nearly all of a request, is what the function or somebody else asked for.
var observed = func() kept {
	containers := kept{"name": nil, "state": nil}
	status := kept{
		"addresses": nil, "availableReplicas": nil, "conditions": nil, "observedGeneration": nil, "parents": nil,
		"phase": nil, "readyReplicas": nil, "reason": nil, "replicas": nil, "updatedReplicas": nil,
		"containerStatuses": containers, "initContainerStatuses": containers, "allocatable": nil, "membershipLabel": nil,
		"unreachableSince": nil, "pools": nil, "allocations": nil, "waiting": nil, "gateway": nil,
	}
	carried := kept{
		"apiVersion": nil, "kind": nil, "metadata": kept{"name": nil, "namespace": nil},
		"spec": kept{"leaderWorkerTemplate": kept{"size": nil}},
	}
	object := kept{
		"apiVersion": nil, "kind": nil, "metadata": metadata,
		"spec": kept{
			"replicas": nil, "minTaskMember": nil, "subGroupPolicy": nil, "managementPolicies": nil, "unschedulable": nil,
			"providerConfigRef": nil, "pools": nil, "taints": nil, "gateway": nil, "allowedNamespaces": nil,
			"rules": kept{"backendRefs": nil}, "parentRefs": nil,
			// Of the definition of a kind, which is large for its schemas.
			"versions": kept{"name": nil, "served": nil},
			// Of LeaderWorkerSets of others, which may be carried by Objects.
			"leaderWorkerTemplate": kept{"size": nil},
			"forProvider":          kept{"manifest": carried},
		},
		"status": status, "data": kept{fleet.AskKey: nil, fleet.GrantsKey: nil},
		// Of an EndpointSlice.
		"endpoints": kept{"addresses": nil}, "ports": kept{"port": nil},
	}
	// An Object of provider-kubernetes has the object of another cluster in its status.
	status["atProvider"] = kept{"manifest": object}
	return object
}()

// below returns what is kept below a field, and whether the field itself is.
func (k kept) below(name string) (kept, bool) {
	if k == nil {
		return nil, true
	}
	below, ok := k[name]
	return below, ok
}

// unmarshal reads a request. Of what is observed and required it leaves out the
// fields that nobody reads.
func unmarshal(s string, req *fnv1.RunFunctionRequest) error {
	if err := new(decoder).request(s, req); err == nil {
		return nil
	}
	req.Reset()
	return proto.Unmarshal([]byte(s), req)
}

// A reader reads fields off the front of a message.
type reader struct{ s string }

// next returns the number of a field, marked with its type, and its content.
// Fields that are not length-delimited have their value in n.
func (r *reader) next() (num protowire.Number, content string, n uint64, err error) {
	tag, err := r.varint()
	if err != nil {
		return 0, "", 0, err
	}
	if tag>>3 > uint64(protowire.MaxValidNumber) {
		return 0, "", 0, errUnusual
	}
	num = protowire.Number(tag >> 3)
	switch protowire.Type(tag & 7) {
	case protowire.VarintType:
		n, err = r.varint()
	case protowire.Fixed64Type:
		if len(r.s) < 8 {
			return 0, "", 0, errUnusual
		}
		n, r.s = binary.LittleEndian.Uint64([]byte(r.s[:8])), r.s[8:]
		num |= fixedField
	case protowire.BytesType:
		if n, err = r.varint(); err != nil || n > uint64(len(r.s)) {
			return 0, "", 0, errUnusual
		}
		content, r.s = r.s[:n], r.s[n:]
		return num | bytesField, content, 0, nil
	default:
		return 0, "", 0, errUnusual
	}
	return num, "", n, err
}

// The marks of fields that are no varints, so that one switch tells number and
// type. No field has so large a number.
const (
	fixedField = 1 << 29
	bytesField = 1 << 30
)

func (r *reader) varint() (uint64, error) {
	var v uint64
	for i := 0; i < len(r.s) && i < binary.MaxVarintLen64; i++ {
		c := r.s[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 && (i < binary.MaxVarintLen64-1 || c <= 1) {
			r.s = r.s[i+1:]
			return v, nil
		}
	}
	return 0, errUnusual
}

// A decoder reads one request.
type decoder struct {
	kube.Values

	// whole tells that everything is read, however deep it is: it goes on to others.
	whole bool
}

// leavesOut tells whether what is so deep is not read.
func (d *decoder) leavesOut(depth int) (bool, error) {
	switch {
	case !d.whole:
		return depth > deepEnough, nil
	case depth > maxDepth:
		return false, errUnusual
	}
	return false, nil
}

// request reads the fields of a RunFunctionRequest.
func (d *decoder) request(s string, req *fnv1.RunFunctionRequest) error {
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil {
			return err
		}
		if err := d.requestField(num, content, req); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) requestField(num protowire.Number, content string, req *fnv1.RunFunctionRequest) (err error) {
	switch {
	case num == 2|bytesField && req.Observed == nil:
		req.Observed = &fnv1.State{}
		return d.state(content, req.Observed, composite, observed)
	case num == 3|bytesField && req.Desired == nil:
		req.Desired = &fnv1.State{}
		d.whole = true
		defer func() { d.whole = false }()
		return d.state(content, req.Desired, nil, nil)
	case num == 4|bytesField && req.Input == nil:
		req.Input, err = d.object(content, nil, 0)
		return err
	case num == 8|bytesField:
		return entry(content, func(key, value string) error { return d.requiredResources(req, key, value) })
	case num == 1|bytesField, num >= 5|bytesField && num <= 7|bytesField, num == 9|bytesField:
		// Meta, context, extra resources, credentials, schemas: small, if there at all.
		return proto.UnmarshalOptions{Merge: true}.Unmarshal(field(num&^bytesField, content), req)
	}
	return errUnusual
}

func (d *decoder) requiredResources(req *fnv1.RunFunctionRequest, key, value string) error {
	if req.GetRequiredResources() == nil {
		req.RequiredResources = map[string]*fnv1.Resources{}
	}
	res := &fnv1.Resources{}
	req.RequiredResources[key] = res
	return d.items(value, res)
}

// field is a message that has nothing but one length-delimited field.
func field(num protowire.Number, content string) []byte {
	b := protowire.AppendTag(make([]byte, 0, len(content)+8), num, protowire.BytesType)
	return protowire.AppendString(b, content)
}

// state reads a State, of its XR and of its composed resources what is kept.
func (d *decoder) state(s string, into *fnv1.State, xr, composed kept) error {
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil {
			return err
		}
		switch num {
		case 1 | bytesField:
			if into.Composite != nil {
				return errUnusual
			}
			into.Composite = &fnv1.Resource{}
			err = d.resource(content, into.Composite, xr)
		case 2 | bytesField:
			err = entry(content, func(key, value string) error {
				if into.Resources == nil {
					into.Resources = map[string]*fnv1.Resource{}
				}
				res := &fnv1.Resource{}
				into.Resources[key] = res
				return d.resource(value, res, composed)
			})
		default:
			return errUnusual
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) items(s string, into *fnv1.Resources) error {
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return errUnusual
		}
		res := &fnv1.Resource{}
		if err := d.resource(content, res, observed); err != nil {
			return err
		}
		into.Items = append(into.Items, res)
	}
	return nil
}

func (d *decoder) resource(s string, into *fnv1.Resource, keep kept) error {
	for r := (reader{s}); r.s != ""; {
		num, content, n, err := r.next()
		if err != nil {
			return err
		}
		switch num {
		case 1 | bytesField:
			if into.Resource != nil {
				return errUnusual
			}
			into.Resource, err = d.object(content, keep, 0)
		case 2 | bytesField:
			err = proto.UnmarshalOptions{Merge: true}.Unmarshal(field(2, content), into)
		case 3:
			into.Ready = fnv1.Ready(n) //nolint:gosec // An enum.
		default:
			return errUnusual
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry reads an entry of a map whose values are length-delimited.
func entry(s string, do func(key, value string) error) error {
	r := reader{s}
	num, key, _, err := r.next()
	if err != nil || num != 1|bytesField || !utf8.ValidString(key) {
		return errUnusual
	}
	num, value, _, err := r.next()
	if err != nil || num != 2|bytesField || r.s != "" {
		return errUnusual
	}
	return do(key, value)
}

// object reads a Struct.
func (d *decoder) object(s string, keep kept, depth int) (*structpb.Struct, error) {
	fields, err := d.fields(s, keep, depth)
	return &structpb.Struct{Fields: fields}, err
}

// fields reads those of a Struct that are kept.
func (d *decoder) fields(s string, keep kept, depth int) (fields map[string]*structpb.Value, err error) {
	if out, err := d.leavesOut(depth); out || err != nil {
		return nil, err
	}
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return nil, errUnusual
		}
		err = entry(content, func(key, v string) error {
			below, ok := keep.below(key)
			if !ok {
				return nil
			}
			e, err := d.value(v, below, depth+1)
			if err != nil {
				return err
			}
			if fields == nil {
				fields = map[string]*structpb.Value{}
			}
			fields[key] = e
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// value reads a Value. It has exactly one field.
func (d *decoder) value(s string, keep kept, depth int) (*structpb.Value, error) {
	r := reader{s}
	num, content, n, err := r.next()
	if err != nil || r.s != "" {
		return nil, errUnusual
	}
	switch num { //nolint:exhaustive // The numbers of a Value.
	case 1:
		if n != 0 {
			return nil, errUnusual // There is one null.
		}
		return structpb.NewNullValue(), nil
	case 2 | fixedField:
		return d.Number(math.Float64frombits(n)), nil
	case 3 | bytesField:
		if !utf8.ValidString(content) {
			return nil, errUnusual
		}
		return d.String(content), nil
	case 4:
		return structpb.NewBoolValue(n != 0), nil
	case 5 | bytesField:
		fields, err := d.fields(content, keep, depth)
		return d.Object(fields), err
	case 6 | bytesField:
		return d.list(content, keep, depth)
	}
	return nil, errUnusual
}

func (d *decoder) list(s string, keep kept, depth int) (*structpb.Value, error) {
	if out, err := d.leavesOut(depth); err != nil {
		return nil, err
	} else if out {
		return d.List(nil), nil
	}
	var values []*structpb.Value
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return nil, errUnusual
		}
		e, err := d.value(content, keep, depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, e)
	}
	return d.List(values), nil
}
