package router

import (
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// The fields of Istio's networking.istio.io/v1 that are used here. They are declared here,
// because Istio's Go module depends on many others.

type destinationRule struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Metadata   kube.Metadata       `json:"metadata"`
	Spec       destinationRuleSpec `json:"spec"`
}

type destinationRuleSpec struct {
	Host          string        `json:"host"`
	TrafficPolicy trafficPolicy `json:"trafficPolicy"`
}

type trafficPolicy struct {
	TLS tlsSettings `json:"tls"`
}

type tlsSettings struct {
	Mode               string `json:"mode"`
	InsecureSkipVerify bool   `json:"insecureSkipVerify"`
}

// destinationRule makes Istio use TLS to the endpoint picker, whose certificate is self-signed
// and cannot be verified. Istio completes the short name of the Service with the rule's namespace and with its own domain.
func (r *rendering) destinationRule() destinationRule {
	return destinationRule{
		APIVersion: plan.GroupIstio + "/v1",
		Kind:       "DestinationRule",
		Metadata:   r.meta(r.cluster.EPPName()),
		Spec: destinationRuleSpec{
			Host:          r.cluster.EPPName(),
			TrafficPolicy: trafficPolicy{TLS: tlsSettings{Mode: "SIMPLE", InsecureSkipVerify: true}},
		},
	}
}
