package reservation

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLedgerBytes limits a ledger that is decompressed. 10,000 services take some 2 MiB.
const maxLedgerBytes = 32 << 20

// EncodeLedger encodes a ledger as compressed JSON. The same ledger gives the same bytes.
func EncodeLedger(l *Ledger) ([]byte, error) {
	b := &bytes.Buffer{}
	z := gzip.NewWriter(b)
	if err := errors.Join(json.NewEncoder(z).Encode(l), z.Close()); err != nil {
		return nil, fmt.Errorf("cannot encode the ledger: %w", err)
	}
	return b.Bytes(), nil
}

// DecodeLedger decodes and validates a ledger.
func DecodeLedger(compressed []byte) (Ledger, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return Ledger{}, fmt.Errorf("cannot decompress the ledger: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxLedgerBytes+1))
	if err != nil {
		return Ledger{}, fmt.Errorf("cannot decompress the ledger: %w", err)
	}
	if len(text) > maxLedgerBytes {
		return Ledger{}, fmt.Errorf("the ledger has more than %d bytes", maxLedgerBytes)
	}
	l := Ledger{}
	if err := json.Unmarshal(text, &l); err != nil {
		return Ledger{}, fmt.Errorf("cannot decode the ledger: %w", err)
	}
	for i := range l.Services {
		if err := l.Services[i].check(); err != nil {
			return Ledger{}, fmt.Errorf("invalid grants of %s/%s: %w", l.Services[i].Namespace, l.Services[i].Name, err)
		}
	}
	return l, nil
}

func (s *Service) check() error {
	for i := range s.Shapes {
		if err := checkRequests(s.Shapes[i].Requests); err != nil {
			return fmt.Errorf("shape %d: %w", i, err)
		}
	}
	for _, g := range s.Grants {
		if len(g.Pods) > len(s.Shapes) {
			return fmt.Errorf("%q have pods of %d shapes, and there are %d", g.Replicas, len(g.Pods), len(s.Shapes))
		}
		for _, n := range g.Pods {
			if n < 0 || n > maxPods {
				return fmt.Errorf("%q have %d pods", g.Replicas, n)
			}
		}
		if g.Generation < 0 || g.Generation > maxGeneration {
			return fmt.Errorf("%q have the generation %d", g.Replicas, g.Generation)
		}
	}
	return nil
}
