package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A gpuResource is a resource by which pods get GPUs, or what else engines compute with.
type gpuResource struct {
	name string
	// begins tells that other names that begin with it are meant, too.
	begins bool
	// single tells that it is one device of the engines. A TPU may be several, and a part of a GPU is less. One of Intel's may be shared.
	single bool
}

// gpuResources are the known resources. IsGPU also accepts any name that ends in /gpu.
var gpuResources = []gpuResource{
	{name: "nvidia.com/gpu", single: true},
	{name: "amd.com/gpu", single: true},
	{name: "habana.ai/gaudi", single: true},
	{name: "nvidia.com/gpu", begins: true},
	{name: "nvidia.com/mig-", begins: true},
	{name: "google.com/tpu"},
	{name: "gpu.intel.com/i915"},
	{name: "gpu.intel.com/xe"},
	{name: "aws.amazon.com/neuron", begins: true},
	{name: "huawei.com/ascend-", begins: true}, // The device plugin of Huawei Cloud CCE has huawei.com/ascend-1980 and -310.
	{name: "huawei.com/Ascend", begins: true},
}

// amounts are in the names of resources that say how much of a GPU a pod gets, and not how many: nvidia.com/gpumem,
// nvidia.com/gpucores and huawei.com/Ascend910B-memory, which HAMi has.
var amounts = []string{"mem", "cores"}

// IsGPU tells whether an amount of a resource is a number of GPUs, or of what else engines compute with. Other devices, such as
// those for networks, may have names of the same vendor.
func IsGPU(resource corev1.ResourceName) bool {
	name := string(resource)
	return strings.HasSuffix(name, "/gpu") || slices.ContainsFunc(gpuResources, func(r gpuResource) bool {
		rest, begins := strings.CutPrefix(name, r.name)
		return begins && (rest == "" || r.begins && !slices.ContainsFunc(amounts, func(a string) bool { return strings.Contains(rest, a) }))
	})
}

// singleGPUs are the resources that are one device of the engines each.
func singleGPUs() []corev1.ResourceName {
	var all []corev1.ResourceName
	for _, r := range gpuResources {
		if r.single {
			all = append(all, corev1.ResourceName(r.name))
		}
	}
	return all
}

// topLevel are the last labels of the vendors' domains, which name no vendor.
var topLevel = []string{"com", "ai"}

// meantGPU returns the known resource that a name is, or that it stands for: with other upper and lower case, a plural, or one word of
// the domain. It is empty for other names. They may be someone's own, however near they are.
func meantGPU(resource corev1.ResourceName) string {
	domain, device, _ := strings.Cut(string(resource), "/")
	for _, r := range gpuResources {
		vendor, known, _ := strings.Cut(r.name, "/")
		ofVendor := domain == vendor || slices.Contains(strings.Split(vendor, "."), domain) && !slices.Contains(topLevel, domain)
		if !ofVendor || len(device) < len(known) || !strings.EqualFold(device[:len(known)], known) {
			continue
		}
		rest, meant := device[len(known):], r.name
		if r.begins && rest != "s" {
			meant += rest
		}
		// An amount of a GPU is none of these resources.
		if (r.begins || rest == "" || rest == "s") && IsGPU(corev1.ResourceName(meant)) {
			return meant
		}
	}
	return ""
}
