package node

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaderAddress is the variable in which LeaderWorkerSet gives pods the DNS name of their leader.
const leaderAddress = "LWS_LEADER_ADDRESS"

// expand replaces $(NAME) as Kubernetes does: $$ is one $, and names that are not known stay.
func expand(s string, env map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		rest := s[i:]
		if strings.HasPrefix(rest, "$$") {
			b.WriteByte('$')
			i++
			continue
		}
		if end := strings.IndexByte(rest, ')'); strings.HasPrefix(rest, "$(") && end > 0 {
			if v, ok := env[rest[2:end]]; ok {
				b.WriteString(v)
			} else {
				b.WriteString(rest[:end+1])
			}
			i += end
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// within replaces the paths of mounts in a text by the directories that stand for them.
func within(s string, mounts map[string]string) string {
	// The longest first, for a mount inside another.
	// Nothing is replaced twice: a directory may begin with the path of another mount.
	var dirs []string
	for i, at := range slices.SortedFunc(maps.Keys(mounts), func(a, b string) int { return len(b) - len(a) }) {
		path, mark := regexp.MustCompile(`(^|[^\w./-])`+regexp.QuoteMeta(at)+`($|[^\w.-])`), fmt.Sprintf("\x00%d\x00", i)
		s = path.ReplaceAllString(s, "${1}"+mark+"${2}")
		dirs = append(dirs, mark, mounts[at])
	}
	return strings.NewReplacer(dirs...).Replace(s)
}

var keyed = regexp.MustCompile(`^metadata\.(labels|annotations)\['(.*)'\]$`)

// field is the value of a field of a pod, for its environment. The pod has its address.
func field(p *corev1.Pod, path, nodeIP string) (string, error) {
	if m := keyed.FindStringSubmatch(path); m != nil {
		return map[string]map[string]string{"labels": p.Labels, "annotations": p.Annotations}[m[1]][m[2]], nil
	}
	v, ok := map[string]string{
		"metadata.name":           p.Name,
		"metadata.namespace":      p.Namespace,
		"metadata.uid":            string(p.UID),
		"spec.nodeName":           p.Spec.NodeName,
		"spec.serviceAccountName": p.Spec.ServiceAccountName,
		"status.podIP":            p.Status.PodIP,
		"status.podIPs":           p.Status.PodIP,
		"status.hostIP":           nodeIP,
		"status.hostIPs":          nodeIP,
	}[path]
	if !ok {
		return "", fmt.Errorf("the field %s is not known", path)
	}
	return v, nil
}

// environment is that of a container: what its pod says, and no more.
func (r *pod) environment(ctx context.Context, c *corev1.Container, mounts map[string]string) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		data, err := r.envFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		for k, v := range data {
			env[from.Prefix+k] = v
		}
	}
	for _, e := range c.Env {
		v := expand(e.Value, env)
		if e.ValueFrom != nil {
			var err error
			if v, err = r.valueFrom(ctx, c, e.ValueFrom); err != nil {
				return nil, fmt.Errorf("variable %s: %w", e.Name, err)
			}
		}
		if name, _, ok := strings.Cut(v, "."); e.Name == leaderAddress && ok {
			var err error
			if v, err = r.leader(ctx, name); err != nil {
				return nil, err
			}
		}
		env[e.Name] = within(v, mounts)
	}
	return env, nil
}

// leader waits for the address of the pod of the replica's leader.
func (r *pod) leader(ctx context.Context, name string) (string, error) {
	if name == r.spec.Name {
		return r.ip, nil
	}
	return r.addressOf(ctx, r.spec.Namespace, name)
}

func (r *pod) envFrom(ctx context.Context, from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		return r.configMap(ctx, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		return r.secret(ctx, from.SecretRef.Name, from.SecretRef.Optional)
	}
	return nil, nil
}

func (r *pod) valueFrom(ctx context.Context, c *corev1.Container, from *corev1.EnvVarSource) (string, error) {
	var data map[string]string
	var err error
	key, optional := "", false
	switch {
	case from.FieldRef != nil:
		return field(r.withAddress(), from.FieldRef.FieldPath, r.NodeIP)
	case from.ResourceFieldRef != nil:
		resource, name, _ := strings.Cut(from.ResourceFieldRef.Resource, ".")
		q := map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests}[resource][corev1.ResourceName(name)]
		return strconv.FormatInt(q.Value(), 10), nil
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		key, optional = ref.Key, ref.Optional != nil && *ref.Optional
		data, err = r.configMap(ctx, ref.Name, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		key, optional = ref.Key, ref.Optional != nil && *ref.Optional
		data, err = r.secret(ctx, ref.Name, ref.Optional)
	}
	if v, ok := data[key]; ok || err != nil || optional {
		return v, err
	}
	return "", fmt.Errorf("there is no key %s", key)
}

// configMap reads a ConfigMap of the pod's namespace. It is empty if it is optional and not there.
func (r *pod) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	m, err := r.Client.CoreV1().ConfigMaps(r.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func (r *pod) secret(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	s, err := r.Client.CoreV1().Secrets(r.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data := map[string]string{}
	for k, v := range s.Data {
		data[k] = string(v)
	}
	return data, nil
}
