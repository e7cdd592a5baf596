package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Asks and grants travel in ConfigMaps: a service composes one with what it asks for,
// which is labelled for every cluster that it asks, and a cluster composes one with
// what it granted.
const (
	// AskKey is the key of the data of an ask's ConfigMap.
	AskKey = "ask"
	// GrantsKey is the key of the data of a ledger.
	GrantsKey = "grants"
	// AskLabelValue is the value of the label that names a cluster.
	AskLabelValue = "true"
)

// AskLabel is the label of the asks that a cluster reads.
func AskLabel(cluster string) string { return "ask.fusioninfer.io/" + cluster }

// maxPods bounds the pods of one replica. It keeps sums of them far from overflow.
const maxPods = 1 << 20

// maxRequests bounds the resources that one pod requests.
const maxRequests = 64

// What an ask has at most. A service has no more roles, replicas and labels than these
// leave room for, but a ConfigMap is whatever its author wrote.
const (
	maxAsk      = 1 << 20
	maxIdentity = 253
	maxSince    = 64
	maxShapes   = 128
	maxLabels   = 256
	maxReplicas = 4096
	maxHeld     = 2 * maxReplicas
)

// maxReplicaName bounds the name of a replica: a role's name and two numbers.
const maxReplicaName = 100

// maxSerial is far above what an ask ever gets to, and what a status keeps exactly.
const maxSerial = 1 << 50

// EncodeAsk writes an ask. The same ask gives the same text.
func EncodeAsk(a *Ask) (string, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("cannot write the ask of %s/%s: %w", a.Namespace, a.Name, err)
	}
	return string(b), nil
}

// DecodeAsk reads an ask. Nobody else looks at what is in it: whoever may write a
// ConfigMap may write an ask.
func DecodeAsk(text string) (*Ask, error) {
	if len(text) > maxAsk {
		return nil, fmt.Errorf("cannot read an ask of %d bytes, and none has more than %d", len(text), maxAsk)
	}
	a := &Ask{}
	if err := json.Unmarshal([]byte(text), a); err != nil {
		return nil, fmt.Errorf("cannot read an ask: %w", err)
	}
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("cannot use an ask: %w", err)
	}
	return a, nil
}

func (a *Ask) check() error {
	for _, text := range []string{a.UID, a.Namespace, a.Name} {
		if len(text) > maxIdentity {
			return fmt.Errorf("a UID, a namespace or a name of %d characters is none", len(text))
		}
	}
	if len(a.Since) > maxSince {
		return fmt.Errorf("its time has %d characters, and none has more than %d", len(a.Since), maxSince)
	}
	if a.UID == "" || a.Namespace == "" || a.Name == "" {
		return fmt.Errorf("it is of a service with the UID %q, namespace %q and name %q, and needs all of them", a.UID, a.Namespace, a.Name)
	}
	if a.Serial < 0 || a.Serial > maxSerial {
		return fmt.Errorf("its serial is %d, and none is above %d", a.Serial, maxSerial)
	}
	if len(a.Shapes) > maxShapes {
		return fmt.Errorf("there are %d shapes of pods, and at most %d are counted", len(a.Shapes), maxShapes)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Shapes)) {
		if n := len(a.Shapes[name].NodeSelector); n > maxLabels {
			return fmt.Errorf("shape %q selects nodes by %d labels, and none does by more than %d", name, n, maxLabels)
		}
	}
	if err := checkShapes(a.Shapes); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Clusters)) {
		if err := a.checkCluster(name, a.Clusters[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkShapes(shapes map[string]Shape) error {
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		requests := shapes[name].Requests
		if len(requests) > maxRequests {
			return fmt.Errorf("shape %q requests %d resources, and none requests more than %d", name, len(requests), maxRequests)
		}
		for _, resource := range slices.Sorted(maps.Keys(requests)) {
			if requests[resource] < 0 {
				return fmt.Errorf("shape %q requests less than nothing of %s", name, resource)
			}
		}
	}
	return nil
}

func (a *Ask) checkCluster(cluster string, at AskedCluster) error {
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		return fmt.Errorf("%q is no name of a cluster", cluster)
	}
	if len(validation.IsDNS1123Label(at.Namespace)) > 0 {
		return fmt.Errorf("%q is no name of a namespace", at.Namespace)
	}
	replicas := all(at.Units)
	if n := max(len(replicas), len(at.Units)); n > maxReplicas {
		return fmt.Errorf("it is for %d replicas of cluster %q, and none is for more than %d", n, cluster, maxReplicas)
	}
	if n := len(at.Held); n > maxHeld {
		return fmt.Errorf("it has %d replicas in cluster %q already, and none has more than %d", n, cluster, maxHeld)
	}
	return a.checkReplicas(replicas)
}

func (a *Ask) checkReplicas(replicas []Replica) error {
	known := map[string]bool{}
	for _, r := range replicas {
		if r.Name == "" || known[r.Name] {
			return fmt.Errorf("each replica has a name of its own, and one is called %q", r.Name)
		}
		if len(r.Name) > maxReplicaName {
			return fmt.Errorf("the name of a replica has %d characters, and none has more than %d", len(r.Name), maxReplicaName)
		}
		known[r.Name] = true
		if r.Serial < 0 || r.Serial > a.Serial {
			return fmt.Errorf("replica %q has the serial %d, and the ask %d", r.Name, r.Serial, a.Serial)
		}
		pods := int64(0)
		for _, shape := range slices.Sorted(maps.Keys(r.Pods)) {
			n := r.Pods[shape]
			if _, ok := a.Shapes[shape]; !ok || n < 0 || n > maxPods {
				return fmt.Errorf("replica %q has %d pods of shape %q", r.Name, n, shape)
			}
			pods += n
		}
		// It would be granted without room.
		if pods == 0 {
			return fmt.Errorf("replica %q has no pods", r.Name)
		}
	}
	return nil
}

// EncodeGrants writes what a ledger has. The same grants give the same text.
func EncodeGrants(grants []Grant) (string, error) {
	if grants == nil {
		grants = []Grant{}
	}
	b, err := json.Marshal(grants)
	if err != nil {
		return "", fmt.Errorf("cannot write grants: %w", err)
	}
	return string(b), nil
}

// DecodeGrants reads what a ledger has.
func DecodeGrants(text string) ([]Grant, error) {
	var grants []Grant
	if err := json.Unmarshal([]byte(text), &grants); err != nil {
		return nil, fmt.Errorf("cannot read grants: %w", err)
	}
	for _, g := range grants {
		if err := checkShapes(g.Shapes); err != nil {
			return nil, fmt.Errorf("cannot use the grant of %s/%s: %w", g.Namespace, g.Name, err)
		}
	}
	return grants, nil
}
