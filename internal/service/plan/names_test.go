package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestNamesApart compares the names of many tenants, services and clusters. Two names in one
// namespace are equal only if they stand for the same object.
func TestNamesApart(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	// Few parts, so that joining them in another way gives the same often.
	label := func(limit int) string {
		parts := []string{"a", "b", "llama", "pool", "epp", "0", "-", "-"}
		all := []string{"x"}
		for range random.IntN(8) {
			all = append(all, parts[random.IntN(len(parts))])
		}
		s := strings.Join(all, "")
		return strings.Trim(s[:min(len(s), limit)], "-")
	}
	kinds := []string{"LeaderWorkerSet", "PodGroup", "Service", "InferencePool"}
	seen := map[string]string{}
	apart := func(in, name, of string) {
		t.Helper()
		at := in + " " + name
		if other, taken := seen[at]; taken && other != of {
			t.Fatalf("%s: %q stands for %q and for %q", in, name, other, of)
		}
		seen[at] = of
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Fatalf("%s: %q: %v", in, name, errs)
		}
	}
	for i := range 100000 {
		s := naming.Identity{Name: label(24), Namespace: fmt.Sprintf("%s-%d", label(30), i), Claimed: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			s.Name = "llama" // Everybody has one.
		}
		to := scheduling.Target{
			Cluster: label(20), Namespace: "models",
			ProviderConfig: v1alpha1.ProviderConfigRef{Kind: v1alpha1.KindClusterProviderConfig, Name: label(20)},
		}
		if random.IntN(2) == 0 {
			to.Namespace = s.Namespace
		}
		// In a shared namespace, the tenant's name is part of a service's name.
		base := baseName(s, to)
		if to.Namespace != s.Namespace {
			apart("shared namespace", base, s.Namespace+"/"+s.Name)
		}
		// Cluster-scoped Objects of all tenants share one scope. Others are in the tenant's namespace.
		scope := "objects of " + s.Namespace
		if s.Claimed {
			scope = "cluster-scoped objects"
		}
		kind := kinds[random.IntN(len(kinds))]
		name := workloadName(base, s, 0, label(10), random.Int32N(3))
		of := strings.Join([]string{to.ProviderConfig.Name, to.Namespace, kind, name}, "/")
		apart(scope, remote.ObjectName(s, to, "example.com", kind, name), of)
		// The Services of the fleet route are in the tenant's namespace of the control plane.
		apart("services of "+s.Namespace, naming.FleetBackend(s.Name, to.Cluster), s.Name+" at "+to.Cluster)
		for _, h := range key.HostnameBackends() {
			apart("services of "+s.Namespace, naming.FleetHostname(h, s.Name, to.Cluster), s.Name+" at "+to.Cluster+" by "+string(h))
		}
	}
}
