package plan

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestVolumeSecrets proves that the Secrets of every kind of volume are known, without which a pod does not start elsewhere.
func TestVolumeSecrets(t *testing.T) {
	cases := map[string]struct {
		volume string
		want   []string
	}{
		"Secret":     {`secret: {secretName: s}`, []string{"s"}},
		"Optional":   {`secret: {secretName: s, optional: true}`, nil},
		"Projected":  {`projected: {sources: [{secret: {name: s}}, {secret: {name: o, optional: true}}, {secret: {name: t}}]}`, []string{"s", "t"}},
		"CSI":        {`csi: {driver: d, nodePublishSecretRef: {name: s}}`, []string{"s"}},
		"CSIWithout": {`csi: {driver: d}`, nil},
		"AzureFile":  {`azureFile: {secretName: s, shareName: x}`, []string{"s"}},
		"CephFS":     {`cephfs: {monitors: [m], secretRef: {name: s}}`, []string{"s"}},
		"RBD":        {`rbd: {monitors: [m], image: i, secretRef: {name: s}}`, []string{"s"}},
		"ISCSI":      {`iscsi: {targetPortal: p, iqn: i, lun: 0, secretRef: {name: s}}`, []string{"s"}},
		"Flex":       {`flexVolume: {driver: d, secretRef: {name: s}}`, []string{"s"}},
		"ScaleIO":    {`scaleIO: {gateway: g, system: x, secretRef: {name: s}}`, []string{"s"}},
		"StorageOS":  {`storageos: {volumeName: v, secretRef: {name: s}}`, []string{"s"}},
		"EmptyDir":   {`emptyDir: {}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, found := corev1.Volume{}, map[string]bool{}
			if err := yaml.Unmarshal([]byte(`{`+tc.volume+`}`), &v); err != nil {
				t.Fatal(err)
			}
			addSecrets(found, &corev1.PodSpec{Volumes: []corev1.Volume{v}})
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(found))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
