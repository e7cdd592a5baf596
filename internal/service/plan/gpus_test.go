package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestIsGPU tells GPUs from other devices of their vendors.
func TestIsGPU(t *testing.T) {
	cases := map[corev1.ResourceName]bool{
		"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "nvidia.com/mig-1g.10gb": true, "amd.com/gpu": true, "example.com/gpu": true,
		"habana.ai/gaudi": true, "google.com/tpu": true, "aws.amazon.com/neuron": true, "aws.amazon.com/neuroncore": true, "huawei.com/Ascend910": true,
		"nvidia.com/hostdev": false, "nvidia.com/rdma_shared_device_a": false, "nvidia.com/gpumem": false, "nvidia.com/gpucores": false,
		"huawei.com/Ascend910B-memory": false, "google.com/tpus": false, "amd.com/gpu-memory": false, "vpc.amazonaws.com/efa": false, "cpu": false, "gpu": false,
	}
	for name, want := range cases {
		if got := IsGPU(name); got != want {
			t.Errorf("%s: want %t, got %t", name, want, got)
		}
	}
}
