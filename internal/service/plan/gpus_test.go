package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestIsGPU tells GPUs from other devices of their vendors.
func TestIsGPU(t *testing.T) {
	cases := map[corev1.ResourceName]bool{
		"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "nvidia.com/mig-1g.10gb": true, "amd.com/gpu": true, "example.com/gpu": true,
		"habana.ai/gaudi": true, "gpu.intel.com/i915": true, "gpu.intel.com/xe": true, "gpu.intel.com/i915_monitoring": false, "google.com/tpu": true, "aws.amazon.com/neuron": true, "aws.amazon.com/neuroncore": true, "huawei.com/Ascend910": true, "huawei.com/ascend-1980": true, "huawei.com/ascend-310": true,
		"nvidia.com/hostdev": false, "nvidia.com/rdma_shared_device_a": false, "nvidia.com/gpumem": false, "nvidia.com/gpucores": false,
		"huawei.com/Ascend910B-memory": false, "google.com/tpus": false, "amd.com/gpu-memory": false, "vpc.amazonaws.com/efa": false, "cpu": false, "gpu": false,
	}
	for name, want := range cases {
		if got := IsGPU(name); got != want {
			t.Errorf("%s: want %t, got %t", name, want, got)
		}
	}
}

// TestMeantGPU finds the resource that a mistyped name stands for.
func TestMeantGPU(t *testing.T) {
	cases := map[corev1.ResourceName]string{
		"nvidia.com/gpus": "nvidia.com/gpu", "nvidia.com/GPU": "nvidia.com/gpu", "nvidia/gpu": "nvidia.com/gpu", "nvidia/GPUs": "nvidia.com/gpu", "nvidia/mig-1g.5gb": "nvidia.com/mig-1g.5gb",
		"nvidia.com/MIG-1g.5gb": "nvidia.com/mig-1g.5gb", "amd/gpu": "amd.com/gpu", "intel/i915": "gpu.intel.com/i915", "gpu.intel.com/XE": "gpu.intel.com/xe", "habana.ai/gaudis": "habana.ai/gaudi",
		"google.com/tpus": "google.com/tpu", "aws/neuron": "aws.amazon.com/neuron", "aws.amazon.com/Neuroncore": "aws.amazon.com/neuroncore", "huawei.com/ascend310P": "huawei.com/Ascend310P", "huawei/ascend-1980": "huawei.com/ascend-1980",
	}
	for name, want := range cases {
		if got := meantGPU(name); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}

// TestMeantGPUItself shows that nothing else is meant by names that device plugins have, nor by those of someone's own.
func TestMeantGPUItself(t *testing.T) {
	for _, name := range []corev1.ResourceName{
		"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.shared", "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage", "nvidia.com/vgpu",
		"nvidia.com/hostdev", "nvidia.com/GA102GL_A10", "nvidia.com/pgpu", "nvidia.com/rdma_shared_device_a", "amd.com/gpu", "amd.com/npu", "amd.com/cpx_nps4", "gpu.intel.com/i915", "gpu.intel.com/i915_monitoring",
		"gpu.intel.com/xe", "gpu.intel.com/xe_monitoring", "gpu.intel.com/millicores", "gpu.intel.com/tiles", "habana.ai/gaudi", "habana.ai/gaudi2", "google.com/tpu", "cloud-tpus.google.com/v3",
		"aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice", "huawei.com/Ascend910", "huawei.com/Ascend910B3", "huawei.com/Ascend910B-memory", "huawei.com/ascend-1980", "huawei.com/ascend-310", "huawei.com/npu",
		"example.com/gpu", "example.com/gpus", "team/gpu", "volcano.sh/vgpu-number", "tencent.com/vcuda-core", "hygon.com/dcunum", "cambricon.com/vmlu", "metax-tech.com/gpu", "metax-tech.com/sgpu",
		"nvidia/gpumem", "com/gpu", "ai/gaudi", "vpc.amazonaws.com/efa", "rdma/hca_shared_devices_a", "cpu", "hugepages-2Mi",
	} {
		if got := meantGPU(name); got != "" && got != string(name) {
			t.Errorf("%s: want nothing else, got %q", name, got)
		}
	}
}
