package cli

import (
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// withoutTimes leaves out of a rendered ledger since when services wait or are missing. The same
// files give the same output.
func withoutTimes(composed []object) error {
	for _, o := range composed {
		if o.GetAnnotations()[composite.AnnotationResourceName] != key.Ledger.String() {
			continue
		}
		text, _, _ := unstructured.NestedString(o.Object, "binaryData", reservation.LedgerKey)
		compressed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return err
		}
		ledger, err := reservation.DecodeLedger(compressed)
		if err != nil {
			return err
		}
		ledger.Waiting = nil
		for i := range ledger.Services {
			ledger.Services[i].MissingSince = time.Time{}
		}
		if compressed, _, err = reservation.EncodeLedger(&ledger); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(compressed), "binaryData", reservation.LedgerKey); err != nil {
			return err
		}
	}
	return nil
}
