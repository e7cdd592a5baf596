package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Labels that the function puts on what it renders.
const (
	LabelService       = "fusioninfer.io/service"
	LabelComponentType = "fusioninfer.io/component-type"
	LabelRoleName      = "fusioninfer.io/role-name"
	LabelReplicaIndex  = "fusioninfer.io/replica-index"
	LabelGroupIndex    = "fusioninfer.io/group-index"
	LabelSpecHash      = "fusioninfer.io/spec-hash"
)

const (
	// maxLabel is the limit of a DNS label and of a label's value.
	maxLabel = 63
	// contentLength is the number of hex digits that tell what was written from what was
	// written before.
	contentLength = 8
	// nameLength is the number of those that keep apart what a limit would make equal: of a
	// million names, no two are equal by chance.
	nameLength = 12
	// tenantLength is that of a tenant's namespace. There are fewer tenants than names,
	// and the workloads' names have little room.
	tenantLength = 10
)

// baseName is the name that everything in one place starts with. In the
// tenant's own namespace it is the service's name. In another one, which several
// tenants may share, it also carries a hash of the tenant's namespace: two
// tenants' services of one name stay apart, in names as in selectors.
func baseName(s Service, t Target) string {
	if t.Namespace == s.Namespace {
		return s.Name
	}
	return s.Name + "-" + digest(s.Namespace)[:tenantLength]
}

// workloadName is {service}-{role}-{replica}, or
// {service}-{group}-{role}-{replica} in a grouped service.
func workloadName(base string, s Service, group int32, role string, replica int32) string {
	return base + "-" + scoped(s, group, "-", role, index(replica))
}

// LeaderWorkerSet has a StatefulSet of its own name for its leaders, and one for the
// workers of each group, called {name}-{group}. Ours have one group each. So two of them
// meet where one is called like the other's workers: service s with role a on two nodes,
// and service s-a with role 1, both have s-a-1-0.

// WorkersName is the name of the StatefulSet of the replica's workers. It is empty where
// there are none.
func (r *Replica) WorkersName() string {
	if r.Role.Nodes < 2 {
		return ""
	}
	return r.Name + workersSuffix
}

// NameAbove is the name of the LeaderWorkerSet whose workers' StatefulSet would have the
// replica's name. It is empty where none could: all of ours end with a number.
func (r *Replica) NameAbove() string {
	above, ok := strings.CutSuffix(r.Name, workersSuffix)
	if i := strings.LastIndexByte(above, '-'); !ok || i < 0 || !digits(above[i+1:]) {
		return ""
	}
	return above
}

const workersSuffix = "-0"

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// podGroupName is {service}, or {service}-{group} in a grouped service.
func podGroupName(base string, s Service, group int32) string {
	if s.Grouped {
		return base + "-" + index(group)
	}
	return base
}

// taskName is the name of a replica in its gang.
func taskName(role string, replica int32) string { return role + "-" + index(replica) }

// Names of the router's objects. All of them start with the base, which leaves
// them below 63 characters because the workloads' names are below 50.

// PoolName is the name of the InferencePool.
func (d *Deployment) PoolName() string { return d.Base + "-pool" }

// EPPName is the name of the endpoint picker's Deployment, Service,
// ServiceAccount, Role, RoleBinding and PodDisruptionBudget.
func (d *Deployment) EPPName() string { return d.Base + eppSuffix }

// eppSuffix ends the names of what the endpoint picker runs as.
const eppSuffix = "-epp"

// EPPConfigName is the name of the endpoint picker's ConfigMap.
func (d *Deployment) EPPConfigName() string { return d.Base + "-epp-config" }

// SidecarName is the name of the Role and the RoleBinding of the routing sidecars.
func (d *Deployment) SidecarName() string { return d.Base + "-routing-sidecar" }

// NetworkPolicyName is the name of the NetworkPolicy of the engines' pods.
func (d *Deployment) NetworkPolicyName() string { return d.Base + "-engines" }

// RouteName is the name of the HTTPRoute.
func (d *Deployment) RouteName() string { return d.Base + "-httproute" }

// GatewayName is the name of the Gateway.
func (d *Deployment) GatewayName() string { return d.Base + "-gateway" }

// ModelName is the name of the objects of a model. Clients write it in the
// header x-llm-d-inference-objective. Models are named in ways that Kubernetes does
// not allow (org/model:tag), so what had to be changed is made up for by a hash.
func (d *Deployment) ModelName(model string) string {
	slug := dnsLabel(model)
	name := d.Base + "-" + slug
	if slug == model && len(name) <= maxLabel {
		return name
	}
	return Shorten(name, model, maxLabel)
}

// Keys. A key is a composed resource's identity for Crossplane: one that
// changes means that the object is deleted and made anew. It starts with the
// kind, because changing the kind under one key would leave the old object
// behind. Role and cluster names have no '/', so keys cannot meet.

// inCluster starts the keys of objects in other clusters.
const inCluster = "cluster/"

// Key of an object in this place: {kind}, then what tells it apart.
func (d *Deployment) Key(kind string, parts ...string) string {
	k := strings.Join(append([]string{kind}, parts...), "/")
	if d.Target.Remote() {
		return inCluster + d.Target.Cluster + "/" + k
	}
	return k
}

// SplitKey returns the cluster that a key is about, or nothing for one beside the
// XR, and the key as it would be there.
func SplitKey(key string) (cluster, local string) {
	k, remote := strings.CutPrefix(key, inCluster)
	if !remote {
		return "", key
	}
	cluster, local, _ = strings.Cut(k, "/")
	return cluster, local
}

// ClusterOf returns the cluster that a key is about, or nothing for one beside
// the XR.
func ClusterOf(key string) string {
	cluster, _ := SplitKey(key)
	return cluster
}

// ObjectName is the name of the provider-kubernetes Object that carries an
// object to its cluster. It follows from what is carried and not from who wants
// it: two services that want the same remote object meet at one name, where the
// second is refused, instead of fighting over it. The API version is left out,
// because all versions of a kind are one object.
func ObjectName(s Service, t Target, group, kind, name string) string {
	config := []string{t.ProviderConfig.Kind, t.ProviderConfig.Name}
	if s.Claimed {
		// Cluster-scoped Objects know one kind of configuration.
		config = config[1:]
	}
	of := strings.Join(append(config, t.Namespace, group, kind, name), "/")
	return Shorten(name+"-"+strings.ToLower(kind), of, maxLabel)
}

// scoped joins parts, with the group in front where the service is grouped.
func scoped(s Service, group int32, sep string, parts ...string) string {
	if s.Grouped {
		parts = append([]string{index(group)}, parts...)
	}
	return strings.Join(parts, sep)
}

func index(i int32) string { return strconv.FormatInt(int64(i), 10) }

// Hash is a short, stable hash of contents. It tells a change, and is no name.
func Hash(parts ...string) string { return digest(parts...)[:contentLength] }

// digest is a stable hash of its parts. ("a", "bc") and ("ab", "c") differ.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Shorten cuts a name to a limit and ends it with a hash of what it stands for.
func Shorten(name, of string, limit int) string {
	if room := limit - nameLength - 1; len(name) > room {
		name = name[:room]
	}
	return strings.TrimRight(name, "-") + "-" + digest(of)[:nameLength]
}

// dnsLabel replaces what a DNS label cannot have.
func dnsLabel(s string) string {
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
