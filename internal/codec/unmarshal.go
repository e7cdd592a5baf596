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
)

// errUnusual hands a message over to the protobuf module.
var errUnusual = errors.New("not the common case")

// maxDepth keeps nested values from growing the stack without end. It is the
// protobuf module's own limit.
const maxDepth = protowire.DefaultRecursionLimit

// unread are the fields of observed composed resources that nobody reads. They
// are most of a request.
var unread = map[string]bool{
	"managedFields":        true, // Of every object.
	"leaderWorkerTemplate": true, // Of a LeaderWorkerSet's spec.
	"template":             true, // Of a Deployment's spec.
	"forProvider":          true, // Of an Object's spec.
}

// Unmarshal reads a request. Of observed composed resources it leaves out the
// fields that nobody reads, and of required schemas everything but whether they
// are there.
func Unmarshal(b []byte, req *fnv1.RunFunctionRequest) error {
	// One copy of the whole message, of which all strings are parts.
	if err := request(string(b), req); err == nil {
		return nil
	}
	req.Reset()
	return proto.Unmarshal(b, req)
}

// A reader reads fields off the front of a message.
type reader struct{ s string }

// next returns the number and content of a field. Fields that are not
// length-delimited have their value in n.
func (r *reader) next() (num protowire.Number, content string, n uint64, err error) {
	tag, err := r.varint()
	if err != nil {
		return 0, "", 0, err
	}
	num = protowire.Number(tag >> 3) //nolint:gosec // Unknown numbers are unusual anyway.
	switch protowire.Type(tag & 7) {
	case protowire.VarintType:
		n, err = r.varint()
	case protowire.Fixed64Type:
		if len(r.s) < 8 {
			return 0, "", 0, errUnusual
		}
		n, r.s = binary.LittleEndian.Uint64([]byte(r.s[:8])), r.s[8:]
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

// bytesField marks the number of a length-delimited field, so that one switch
// tells number and type. No field has so large a number.
const bytesField = 1 << 30

func (r *reader) varint() (uint64, error) {
	var v uint64
	for i := 0; i < len(r.s) && i < binary.MaxVarintLen64; i++ {
		c := r.s[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.s = r.s[i+1:]
			return v, nil
		}
	}
	return 0, errUnusual
}

// request reads the fields of a RunFunctionRequest.
func request(s string, req *fnv1.RunFunctionRequest) error {
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil {
			return err
		}
		if err := requestField(num, content, req); err != nil {
			return err
		}
	}
	return nil
}

func requestField(num protowire.Number, content string, req *fnv1.RunFunctionRequest) (err error) {
	switch {
	case num == 2|bytesField && req.Observed == nil:
		req.Observed = &fnv1.State{}
		return state(content, req.Observed, unread)
	case num == 3|bytesField && req.Desired == nil:
		req.Desired = &fnv1.State{}
		return state(content, req.Desired, nil)
	case num == 4|bytesField && req.Input == nil:
		req.Input, err = object(content, nil, 0)
		return err
	case num == 8|bytesField:
		return entry(content, func(key, value string) error { return requiredResources(req, key, value) })
	case num == 9|bytesField:
		return entry(content, func(key, value string) error { return requiredSchema(req, key, value) })
	case num == 1|bytesField, num >= 5|bytesField && num <= 7|bytesField:
		// Meta, context, extra resources, credentials: small, if there at all.
		return proto.UnmarshalOptions{Merge: true}.Unmarshal(field(num&^bytesField, content), req)
	}
	return errUnusual
}

func requiredResources(req *fnv1.RunFunctionRequest, key, value string) error {
	if req.GetRequiredResources() == nil {
		req.RequiredResources = map[string]*fnv1.Resources{}
	}
	res := &fnv1.Resources{}
	req.RequiredResources[key] = res
	return items(value, res)
}

func requiredSchema(req *fnv1.RunFunctionRequest, key, value string) error {
	if req.GetRequiredSchemas() == nil {
		req.RequiredSchemas = map[string]*fnv1.Schema{}
	}
	schema := &fnv1.Schema{}
	if value != "" {
		schema.OpenapiV3 = &structpb.Struct{}
	}
	req.RequiredSchemas[key] = schema
	return nil
}

// field is a message that has nothing but one length-delimited field.
func field(num protowire.Number, content string) []byte {
	b := protowire.AppendTag(make([]byte, 0, len(content)+8), num, protowire.BytesType)
	return protowire.AppendString(b, content)
}

// state reads a State. Skip applies to its composed resources only.
func state(s string, into *fnv1.State, skip map[string]bool) error {
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
			err = resource(content, into.Composite, nil)
		case 2 | bytesField:
			err = entry(content, func(key, value string) error {
				if into.Resources == nil {
					into.Resources = map[string]*fnv1.Resource{}
				}
				res := &fnv1.Resource{}
				into.Resources[key] = res
				return resource(value, res, skip)
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

func items(s string, into *fnv1.Resources) error {
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return errUnusual
		}
		res := &fnv1.Resource{}
		if err := resource(content, res, unread); err != nil {
			return err
		}
		into.Items = append(into.Items, res)
	}
	return nil
}

func resource(s string, into *fnv1.Resource, skip map[string]bool) error {
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
			into.Resource, err = object(content, skip, 0)
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
func object(s string, skip map[string]bool, depth int) (*structpb.Struct, error) {
	if depth > maxDepth {
		return nil, errUnusual
	}
	o := &structpb.Struct{}
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return nil, errUnusual
		}
		err = entry(content, func(key, v string) error {
			if skip[key] {
				return nil
			}
			e, err := value(v, skip, depth+1)
			if err != nil {
				return err
			}
			if o.Fields == nil {
				o.Fields = map[string]*structpb.Value{}
			}
			o.Fields[key] = e
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

// value reads a Value. It has exactly one field.
func value(s string, skip map[string]bool, depth int) (*structpb.Value, error) {
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
	case 2:
		return structpb.NewNumberValue(math.Float64frombits(n)), nil
	case 3 | bytesField:
		if !utf8.ValidString(content) {
			return nil, errUnusual
		}
		return structpb.NewStringValue(content), nil
	case 4:
		return structpb.NewBoolValue(n != 0), nil
	case 5 | bytesField:
		o, err := object(content, skip, depth)
		return structpb.NewStructValue(o), err
	case 6 | bytesField:
		return list(content, skip, depth)
	}
	return nil, errUnusual
}

func list(s string, skip map[string]bool, depth int) (*structpb.Value, error) {
	if depth > maxDepth {
		return nil, errUnusual
	}
	l := &structpb.ListValue{}
	for r := (reader{s}); r.s != ""; {
		num, content, _, err := r.next()
		if err != nil || num != 1|bytesField {
			return nil, errUnusual
		}
		e, err := value(content, skip, depth+1)
		if err != nil {
			return nil, err
		}
		l.Values = append(l.Values, e)
	}
	return structpb.NewListValue(l), nil
}
