package reservation

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
)

const (
	// MaxDecompressed limits what is decompressed. A ledger of 10,000 services takes some 2 MiB.
	MaxDecompressed = 32 << 20
	// MaxPlain is how many bytes a ledger may have before it is compressed, so that it takes further grants. The rest is for
	// what is noted later on of replicas that have grants.
	MaxPlain = MaxDecompressed / 8 * 7
)

// compressors are reused: a new one takes most of a MiB, and a cluster needs one for each part of its answers.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Compress encodes a value as compressed JSON, and returns the length of the JSON too. The same value gives the same
// bytes. The line break has always been there, and without it every ledger would be written once more.
func Compress(v any) (compressed []byte, plain int, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot compress: %w", err)
	}
	text = append(text, '\n')
	b := &bytes.Buffer{}
	z, _ := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(b)
	_, err = z.Write(text)
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, 0, fmt.Errorf("cannot compress: %w", err)
	}
	return b.Bytes(), len(text), nil
}

// Decompress decodes what Compress has encoded.
func Decompress(compressed []byte, into any) error {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return fmt.Errorf("cannot decompress: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, MaxDecompressed+1))
	if err != nil {
		return fmt.Errorf("cannot decompress: %w", err)
	}
	if len(plain) > MaxDecompressed {
		return fmt.Errorf("it has more than %d bytes when decompressed", MaxDecompressed)
	}
	if err := decodeJSON(plain, into); err != nil {
		return fmt.Errorf("cannot decode: %w", err)
	}
	return nil
}

// decodeJSON decodes with the module that became encoding/json/v2. A cluster decodes thousands of requests
// in a call, which takes half as long as with encoding/json. The texts of its errors differ from process to
// process (errors.go: errorModalVerb), and a condition must not. So encoding/json says what is wrong.
func decodeJSON(text []byte, into any) error {
	if jsonv2.Unmarshal(text, into) == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return err //nolint:wrapcheck // The callers do.
	}
	return errors.New("it repeats a name, or is not UTF-8")
}

// DecodeLedger decodes and validates a ledger.
func DecodeLedger(compressed []byte) (Ledger, error) {
	l := Ledger{}
	if err := Decompress(compressed, &l); err != nil {
		return Ledger{}, fmt.Errorf("cannot read the ledger: %w", err)
	}
	for i := range l.Services {
		if err := l.Services[i].check(); err != nil {
			return Ledger{}, fmt.Errorf("invalid grants of %s/%s: %w", l.Services[i].Namespace, l.Services[i].Name, err)
		}
		for j := range l.Services[i].Shapes {
			l.Services[i].Shapes[j].Normalize()
		}
	}
	return l, nil
}

func (s *Service) check() error {
	for i := range s.Shapes {
		if err := errors.Join(checkRequests(s.Shapes[i].Requests), checkTolerations(s.Shapes[i].Tolerations)); err != nil {
			return fmt.Errorf("shape %d: %w", i, err)
		}
	}
	for _, g := range s.Grants {
		if n := max(len(g.Pods), len(g.Requested)); n > len(s.Shapes) {
			return fmt.Errorf("%q have pods of %d shapes, and there are %d", g.Replicas, n, len(s.Shapes))
		}
		for _, n := range slices.Concat(g.Pods, g.Requested) {
			if n < 0 || n > maxGranted {
				return fmt.Errorf("%q have %d pods", g.Replicas, n)
			}
		}
		if g.Generation < 0 || g.Generation > maxGeneration {
			return fmt.Errorf("%q have the generation %d", g.Replicas, g.Generation)
		}
	}
	return nil
}
