package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mounts makes the directories that stand for the volumes of a container, by the paths at which it
// has them. Memory and devices stay where they are on this machine.
func (r *pod) mounts(ctx context.Context, c *corev1.Container) (map[string]string, error) {
	all := map[string]string{}
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(r.spec.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || strings.HasPrefix(m.MountPath, "/dev/") || m.MountPath == "/" {
			continue
		}
		dir, err := r.directory(ctx, &r.spec.Spec.Volumes[i])
		if err != nil {
			return nil, err
		}
		if image := r.spec.Spec.Volumes[i].Image; image != nil {
			if err := r.pull(ctx, image.Reference, dir); err != nil {
				return nil, err
			}
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		files, err := r.files(ctx, &r.spec.Spec.Volumes[i])
		if err != nil {
			return nil, err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
		all[strings.TrimSuffix(m.MountPath, "/")] = filepath.Join(dir, m.SubPath)
	}
	return all, nil
}

// directory is what stands for a volume. That of a claim is there for all pods, as long as the claim.
func (r *pod) directory(ctx context.Context, v *corev1.Volume) (string, error) {
	if v.PersistentVolumeClaim == nil {
		return filepath.Join(r.volumes(), v.Name), nil
	}
	claim, err := r.Client.CoreV1().PersistentVolumeClaims(r.spec.Namespace).Get(ctx, v.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return filepath.Join(r.Dir, "claims", string(claim.UID)), nil
}

// files are the contents of a volume.
func (r *pod) files(ctx context.Context, v *corev1.Volume) (map[string]string, error) {
	switch {
	case v.ConfigMap != nil:
		data, err := r.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Optional)
		return items(data, v.ConfigMap.Items), err
	case v.Secret != nil:
		data, err := r.secret(ctx, v.Secret.SecretName, v.Secret.Optional)
		return items(data, v.Secret.Items), err
	}
	return nil, nil
}

// items chooses the files of a volume, and their names.
func items(data map[string]string, chosen []corev1.KeyToPath) map[string]string {
	if len(chosen) == 0 {
		return data
	}
	all := map[string]string{}
	for _, c := range chosen {
		all[c.Path] = data[c.Key]
	}
	return all
}

// errPull is why a container waits whose volume is an image that cannot be pulled.
var errPull = errors.New("cannot pull the image")

// pull makes the directory of a volume with the files of an image. They are pulled once for each pod.
func (r *pod) pull(ctx context.Context, image, dir string) error {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if r.Pull == nil {
		return fmt.Errorf("%w %s: the test bed has no registry", errPull, image)
	}
	// Beside its place first: half of it is not to be taken for all of it.
	part := dir + ".new"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o700)); err != nil {
		return err
	}
	if err := r.Pull(ctx, image, part); err != nil {
		return fmt.Errorf("%w %s: %w", errPull, image, err)
	}
	return os.Rename(part, dir)
}
