package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// writeCaches writes where the weights of a ModelCache are, and how far each cluster is.
func writeCaches(b *strings.Builder, xr object) {
	c := v1alpha1.ModelCache{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(xr.Object, &c) != nil {
		return // It never fails for a status that the function wrote.
	}
	fmt.Fprintf(b, "\n  Model\t%s\n  Claim\t%s\n  Directory\t%s\n", c.Status.ModelName, c.Status.ClaimName, c.Status.Directory)
	for i, at := range c.Status.Caches {
		if i == 0 {
			fmt.Fprintln(b, "\n  CLUSTER\tSTATE\tWHY")
		}
		fmt.Fprintf(b, "  %s\t%s\t%s\n", text.Cluster(at.Cluster), at.State, at.Message)
	}
}
