package remote

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// ObjectName is the name of the provider-kubernetes Object for a remote object. It depends on
// the remote object, and not on the service. So if two services want the same remote object,
// both want the same Object, and the second is refused. The API version is left out, because an
// object is the same in all versions.
func ObjectName(s naming.Identity, t scheduling.Target, group, kind, name string) string {
	return objectName(s, t, group, kind, name, naming.MaxLabel)
}

// MaxCollectionName is the longest name of a collection. It is a label of the collection's Objects, and
// provider-kubernetes appends a '-' and 7 digits to it.
const MaxCollectionName = naming.MaxLabel - 8

func objectName(s naming.Identity, t scheduling.Target, group, kind, name string, limit int) string {
	config := []string{t.ProviderConfig.Kind, t.ProviderConfig.Name}
	if s.Claimed {
		// Cluster-scoped Objects do not name the kind of their configuration.
		config = config[1:]
	}
	identity := strings.Join(append(config, t.Namespace, group, kind, name), "/")
	return naming.Shorten(name+"-"+strings.ToLower(kind), identity, limit)
}
