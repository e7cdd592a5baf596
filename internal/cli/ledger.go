package cli

import (
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// ledgerOf returns the ledger in a composed resource, and whether it is one.
func ledgerOf(o object) (reservation.Ledger, bool, error) {
	if keyOf(o) != key.Ledger.String() {
		return reservation.Ledger{}, false, nil
	}
	text, _, _ := unstructured.NestedString(o.Object, "binaryData", reservation.LedgerKey)
	compressed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return reservation.Ledger{}, true, err
	}
	ledger, err := reservation.DecodeLedger(compressed)
	return ledger, true, err
}

// withoutTimes leaves out of a rendered ledger since when services wait or are missing. The same
// files give the same output.
func withoutTimes(composed []object) error {
	for _, o := range composed {
		ledger, is, err := ledgerOf(o)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		ledger.Waiting = nil
		for i := range ledger.Services {
			ledger.Services[i].MissingSince = time.Time{}
		}
		compressed, _, err := reservation.Compress(&ledger)
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(compressed), "binaryData", reservation.LedgerKey); err != nil {
			return err
		}
	}
	return nil
}
