// Package naming has the rules for names: hashes, length limits, and the characters of a DNS
// label. It also has the labels and annotations that the function writes. Those of clusters are in
// internal/cluster and internal/profile.
package naming

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// MaxLabel is the maximum length of a DNS label and of a label value, in characters.
const MaxLabel = 63

const (
	// contentLength is the length, in hex digits, of a hash that detects changes.
	contentLength = 8
	// nameLength is the length, in hex digits, of a hash that keeps truncated names apart.
	// Among a million names, a collision is unlikely.
	nameLength = 12
)

// Hash returns a short, stable hash, which changes with the contents. It is too short to make
// names unique: see Shorten.
func Hash(parts ...string) string { return Digest(parts...)[:contentLength] }

// Number returns a stable hash as a number from 0 to 65535.
func Number(parts ...string) int { return int(binary.BigEndian.Uint16(sum(parts))) }

// Digest returns a stable hash of its parts. ("a", "bc") and ("ab", "c") differ.
func Digest(parts ...string) string { return hex.EncodeToString(sum(parts)) }

func sum(parts []string) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum(nil)
}

// Shorten truncates a name, and appends a hash of what it stands for. The result has at most
// limit characters.
func Shorten(name, identity string, limit int) string {
	if length := limit - nameLength - 1; len(name) > length {
		name = name[:length]
	}
	return strings.TrimRight(name, "-") + "-" + Digest(identity)[:nameLength]
}

// DNSLabel replaces characters that a DNS label cannot have.
func DNSLabel(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s), "-")
}

// FleetBackend is the name of a cluster's Service in the fleet route. It always has a hash,
// because different pairs of service and cluster could give the same text.
func FleetBackend(service, cluster string) string {
	return Shorten(service+"-at-"+cluster, service+"/"+cluster, MaxLabel)
}

// FleetHostname is the name of a backend of the fleet route that stands for a DNS name.
func FleetHostname(h key.HostnameBackend, service, cluster string) string {
	return Shorten(service+"-at-"+cluster, string(h)+"/"+service+"/"+cluster, MaxLabel)
}

// FleetHost is the host of a ServiceEntry, by which the fleet route references it. Its first
// label is the name of the ServiceEntry. Istio requires hosts to be unique among all namespaces.
func FleetHost(backend, namespace string) string {
	return backend + "." + namespace + ".fleet.internal"
}

// PoolSuffix ends the names of InferencePools.
const PoolSuffix = "-pool"

// ModelObject is the name of what an InferenceModel composes for an InferencePool. It always has a hash,
// because different pairs of pool and model could give the same text. The hash also keeps it apart from the
// names of what a router has for its own models.
func ModelObject(pool, model string) string {
	base := strings.TrimSuffix(pool, PoolSuffix)
	return Shorten(base+"-"+DNSLabel(model), "inferencemodel/"+base+"/"+model, MaxLabel)
}

// AdapterClaim is the name of the claim for adapters of a service. It is the same in all clusters: in
// another cluster, several tenants may share a namespace.
func AdapterClaim(service, namespace string) string {
	return Shorten(service+"-adapters", namespace+"/"+service, MaxLabel)
}

// AdapterDirectory is the name of an adapter in its claim, and the one that engines have for it. An adapter of
// another InferenceModel, of another source or for another model of the engines has another one. So none
// replaces another that serves.
func AdapterDirectory(owner, target string, source ...string) string {
	base := DNSLabel(target)
	if base == "" {
		base = "adapter"
	}
	// Owners choose what goes into the hash, so it is long enough that none finds the directory of another.
	hash := Digest(append([]string{owner, target}, source...)...)[:20]
	return strings.TrimRight(base[:min(len(base), MaxLabel-len(hash)-1)], "-") + "-" + hash
}

// AdapterJob is the name of a Job that loads an adapter. It has a hash of what its pods are made from, because
// the template of a Job cannot change. The claim is in the hash too, because one that is recreated is empty.
func AdapterJob(s Identity, directory, claimUID, pods string) string {
	return Shorten(s.Name+"-adapter", Digest("adapter", s.Namespace, s.Name, directory, claimUID, pods), MaxLabel)
}
