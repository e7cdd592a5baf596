// The modules whose custom resource definitions the tests install. Nothing is
// built here.
module github.com/fusioninfer/function-inferenceservice/test/tools/crds

go 1.26.5

require (
	github.com/envoyproxy/gateway v1.8.1
	github.com/kedacore/keda/v2 v2.21.0
	github.com/prometheus-operator/prometheus-operator v0.88.0
	istio.io/api v1.27.0
	sigs.k8s.io/gateway-api v1.6.1
	sigs.k8s.io/gateway-api-inference-extension v1.6.0
)
