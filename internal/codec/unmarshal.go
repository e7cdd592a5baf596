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

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// errUnusual means that the protobuf module must decode the message.
var errUnusual = errors.New("not a common case")

const (
	// maxDepth limits nested values, which grow the stack. The protobuf module has the same
	// limit, but counts messages: a nested value is two.
	maxDepth = protowire.DefaultRecursionLimit
	// cutDepth is the depth below which the values of a document that the function reads are
	// skipped. It is far deeper than what kube.CheckBounds accepts. The function can then refuse a
	// deeper document with its path, where gRPC would only fail.
	cutDepth = 200
)

// unmarshal decodes a request. It skips the fields of observed and required objects that
// nobody reads.
func unmarshal(s string, req *fnv1.RunFunctionRequest) error {
	if err := newDecoder().request(s, req); err == nil {
		return nil
	}
	req.Reset()
	return proto.Unmarshal([]byte(s), req)
}

// A reader reads the fields of a message one after the other.
type reader struct{ s string }

// next returns the number of the next field, marked with its type, and its value: in content
// if the field is length-delimited, and otherwise in n.
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

// The marks of fields that are not varints, added to the number: one switch then checks number
// and type. The largest number that protobuf allows is below them.
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

	// composite are the fields to keep of the composite resource, and object those of observed
	// and required objects.
	composite, object kube.FieldSet
	// whole is true while the desired state is decoded. The response repeats it, so no part may
	// be skipped, however deep.
	whole bool
}

func newDecoder() *decoder {
	composite, object := incoming.Fields()
	return &decoder{composite: composite, object: object}
}

// skips reports whether values at a depth are skipped.
func (d *decoder) skips(depth int) (bool, error) {
	switch {
	case !d.whole:
		return depth > cutDepth, nil
	case depth > maxDepth:
		return false, errUnusual
	}
	return false, nil
}

// request decodes a RunFunctionRequest.
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
		return d.state(content, req.Observed, d.composite, d.object)
	case num == 3|bytesField && req.Desired == nil:
		req.Desired = &fnv1.State{}
		d.whole = true
		defer func() { d.whole = false }()
		return d.state(content, req.Desired, nil, nil)
	case num == 4|bytesField && req.Input == nil:
		req.Input, err = d.document(content, nil, 0)
		return err
	case num == 8|bytesField:
		return entry(content, func(key, value string) error { return d.requiredResources(req, key, value) })
	case num == 1|bytesField, num >= 5|bytesField && num <= 7|bytesField, num == 9|bytesField:
		// Meta, context, extra resources, credentials and schemas are small or not set.
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

// field returns a message that consists of one length-delimited field.
func field(num protowire.Number, content string) []byte {
	b := protowire.AppendTag(make([]byte, 0, len(content)+8), num, protowire.BytesType)
	return protowire.AppendString(b, content)
}

// state decodes a State: the given fields of its XR and of its composed resources.
func (d *decoder) state(s string, into *fnv1.State, xr, composed kube.FieldSet) error {
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
		if err := d.resource(content, res, d.object); err != nil {
			return err
		}
		into.Items = append(into.Items, res)
	}
	return nil
}

func (d *decoder) resource(s string, into *fnv1.Resource, keep kube.FieldSet) error {
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
			into.Resource, err = d.document(content, keep, 0)
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

// entry decodes an entry of a map whose values are length-delimited.
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

// document decodes a Struct.
func (d *decoder) document(s string, keep kube.FieldSet, depth int) (*structpb.Struct, error) {
	fields, err := d.fields(s, keep, depth)
	return &structpb.Struct{Fields: fields}, err
}

// fields decodes the fields of a Struct that are in keep.
func (d *decoder) fields(s string, keep kube.FieldSet, depth int) (fields map[string]*structpb.Value, err error) {
	if skip, err := d.skips(depth); skip || err != nil {
		return nil, err
	}
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return nil, errUnusual
		}
		err = entry(content, func(key, v string) error {
			below, ok := keep.Below(key)
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

// value decodes a Value. A Value has exactly one field.
func (d *decoder) value(s string, keep kube.FieldSet, depth int) (*structpb.Value, error) {
	r := reader{s}
	num, content, n, err := r.next()
	if err != nil || r.s != "" {
		return nil, errUnusual
	}
	switch num { //nolint:exhaustive // These are the fields of a Value.
	case 1:
		if n != 0 {
			return nil, errUnusual // The enum NullValue has only 0.
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

func (d *decoder) list(s string, keep kube.FieldSet, depth int) (*structpb.Value, error) {
	if skip, err := d.skips(depth); err != nil {
		return nil, err
	} else if skip {
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
