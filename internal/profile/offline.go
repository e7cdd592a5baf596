package profile

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// Offline returns the ConfigMaps that services would read of an InferenceCluster with this status.
// The status has what is free exactly, so the estimates do, too.
func Offline(namespace string, cluster map[string]any) ([]map[string]any, error) {
	o := unstructured.Unstructured{Object: cluster}
	status, _, _ := unstructured.NestedMap(cluster, "status")
	status = maps.Clone(status)
	told := v1alpha1.InferenceCluster{}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"reservations": status["reservations"], "pending": status["pending"]}})
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the status of InferenceCluster %s: %w", o.GetName(), err)
	}
	delete(status, "reservations")
	delete(status, "pending")
	var estimates []map[string]any
	if pools, is := status["pools"].([]any); is {
		text, err := json.Marshal(pools)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the pools of InferenceCluster %s: %w", o.GetName(), err)
		}
		estimates = append(estimates, configMap(namespace, EstimatesName(o.GetName()), map[string]any{EstimatesLabel: LabelValue}, "data", map[string]any{poolsKey: string(text)}))
		status["pools"] = withoutFree(pools)
	}
	metadata := map[string]any{"name": o.GetName()}
	for _, field := range []string{"labels", "creationTimestamp"} {
		if v, has, _ := unstructured.NestedFieldNoCopy(cluster, "metadata", field); has {
			metadata[field] = v
		}
	}
	text, err = json.Marshal(map[string]any{"metadata": metadata, "spec": cluster["spec"], "status": status})
	if err != nil {
		return nil, fmt.Errorf("cannot encode InferenceCluster %s: %w", o.GetName(), err)
	}
	profile := configMap(namespace, Name(o.GetName()), map[string]any{Label: LabelValue}, "data", map[string]any{clusterKey: string(text)})
	all := append([]map[string]any{profile}, estimates...)
	answers := Answers{Reservations: told.Status.Reservations, Pending: told.Status.Pending}
	for i, part := range answers.Split() {
		if part == nil {
			continue
		}
		encoded, err := part.Encode()
		if err != nil {
			return nil, err
		}
		all = append(all, configMap(namespace, PartName(o.GetName(), i), nil, "binaryData", map[string]any{AnswersKey: base64.StdEncoding.EncodeToString(encoded)}))
	}
	return all, nil
}

// withoutFree returns pools as a profile has them.
func withoutFree(pools []any) []any {
	all := make([]any, 0, len(pools))
	for _, p := range pools {
		pool, is := p.(map[string]any)
		if !is {
			continue
		}
		pool = maps.Clone(pool)
		for _, field := range []string{"nodeCount", "capacity", "free"} {
			delete(pool, field)
		}
		all = append(all, pool)
	}
	return all
}

func configMap(namespace, name string, labels map[string]any, field string, data map[string]any) map[string]any {
	metadata := map[string]any{"name": name, "namespace": namespace}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, field: data}
}
