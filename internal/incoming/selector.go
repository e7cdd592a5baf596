package incoming

import fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

// ByName selects the object of a kind with a name. The namespace is empty for kinds without namespaces.
func ByName(apiVersion, kind, namespace, name string) *fnv1.ResourceSelector {
	return in(namespace, &fnv1.ResourceSelector{ApiVersion: apiVersion, Kind: kind, Match: &fnv1.ResourceSelector_MatchName{MatchName: name}})
}

// ByLabels selects the objects of a kind with some labels, or all of them without any. An empty namespace selects
// them in all namespaces.
func ByLabels(apiVersion, kind, namespace string, labels map[string]string) *fnv1.ResourceSelector {
	return in(namespace, &fnv1.ResourceSelector{ApiVersion: apiVersion, Kind: kind, Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}}})
}

func in(namespace string, s *fnv1.ResourceSelector) *fnv1.ResourceSelector {
	if namespace != "" {
		s.Namespace = &namespace
	}
	return s
}
