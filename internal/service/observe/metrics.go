package observe

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// endpoints are where a PodMonitor finds metrics.
var endpoints = remote.NewDesiredPath("spec", "podMetricsEndpoints")

// Metrics returns where a PodMonitor finds the metrics of engines, each once, in its order. One that cannot be read is left out.
func (r *ObservedState) Metrics(k key.Key) []plan.Metrics {
	var all []plan.Metrics
	seen := map[plan.Metrics]bool{} // There may be thousands.
	for _, e := range endpoints.In(r.composed(k)).GetListValue().GetValues() {
		if m, ok := metricsOf(e.GetStructValue()); ok && !seen[m] {
			seen[m] = true
			all = append(all, m)
		}
	}
	return all
}

// isOfContainer tells whether a relabeling goes by the name of the container.
func isOfContainer(sources *structpb.Value) bool {
	all := sources.GetListValue().GetValues()
	return len(all) == 1 && all[0].GetStringValue() == plan.LabelContainerOfPod
}

// metricsOf reads an endpoint as the PodMonitor of a role has it.
func metricsOf(endpoint *structpb.Struct) (plan.Metrics, bool) {
	m := plan.Metrics{HTTPS: endpoint.GetFields()["scheme"].GetStringValue() == "https"}
	for _, v := range endpoint.GetFields()["relabelings"].GetListValue().GetValues() {
		relabeling := v.GetStructValue().GetFields()
		switch {
		case isOfContainer(relabeling["sourceLabels"]):
			m.Container = relabeling["regex"].GetStringValue()
		case relabeling["targetLabel"].GetStringValue() == "__address__":
			address := relabeling["replacement"].GetStringValue()
			port, err := strconv.ParseInt(address[strings.LastIndex(address, ":")+1:], 10, 32)
			if err != nil {
				return m, false
			}
			m.Port = int32(port)
		}
	}
	return m, len(validation.IsDNS1123Label(m.Container)) == 0 && len(validation.IsValidPortNum(int(m.Port))) == 0
}
