package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Weights are those of a model that a Job loads into a claim before engines start.
type Weights struct {
	// Hash changes with the source, the revision and the cache. It is the same in all clusters.
	Hash string
	// ClaimName of the claim that has them. Own tells that the service makes the claim.
	ClaimName string
	Own       bool
	// LoaderName starts the names of the Jobs that load them, and is the label of their pods. Services
	// that share a claim have Jobs of their own.
	LoaderName string
	// Directory of the weights in the claim.
	Directory string
	// Size, StorageClassName and AccessMode of a claim of its own. An empty class is the cluster's.
	Size, StorageClassName string
	AccessMode             corev1.PersistentVolumeAccessMode
	// Loader is how they are loaded.
	Loader loader.Loader
}

// A loadedModel is a model as engines load it.
type loadedModel struct {
	*v1alpha1.Model

	// weights are nil if the engines load it from its source.
	weights *Weights
}

// loads is what all engines of a service load, besides what their templates say.
type loads struct {
	// model is nil without spec.model, and adapters without spec.adapterCache.
	model    *loadedModel
	adapters *Adapters
}

func loadsOf(spec *v1alpha1.InferenceServiceSpec, s naming.Identity) loads {
	l := loads{adapters: adaptersOf(spec.AdapterCache, s)}
	if m := spec.Model; m != nil {
		l.model = &loadedModel{Model: m, weights: weightsOf(m, s)}
	}
	return l
}

// source is where the engines find the weights: what is loaded into a claim, there.
func (m *loadedModel) source() v1alpha1.ModelSource {
	s := m.Source()
	if m.weights == nil {
		return s
	}
	return v1alpha1.ModelSource{Claim: m.weights.ClaimName, Path: m.weights.Directory, Name: s.Name}
}

// weightsOf returns the weights of a model with a cache, without what the Input says of them. A change
// of the Input thus changes no name.
func weightsOf(m *v1alpha1.Model, s naming.Identity) *Weights {
	c := m.Cache
	if c == nil {
		return nil
	}
	content := naming.Digest(m.URI, m.Revision)[:weightsLength]
	name := naming.DNSLabel(path.Base(m.URI))
	if name == "" && s.OfCache {
		name = "weights" // A prefix may have nothing that a label can have, such as "__". No service could use such a directory.
	}
	w := &Weights{Directory: name[:min(len(name), naming.MaxLabel)] + "-" + content, ClaimName: c.ClaimName}
	if c.ClaimName != "" {
		w.Hash = naming.Digest(c.ClaimName, content)[:weightsLength]
		w.LoaderName = w.name(s)
		return w
	}
	w.Own, w.AccessMode, w.StorageClassName = true, c.Mode(), c.StorageClassName
	if c.Size != nil {
		w.Size = c.Size.String()
	}
	w.Hash = naming.Digest(content, w.Size, string(w.AccessMode), w.StorageClassName)[:weightsLength]
	w.ClaimName = w.name(s)
	w.LoaderName = w.ClaimName
	return w
}

// name of what a service has for its weights. In another cluster, several tenants may share a namespace.
// A ModelCache that is recreated has another claim: that of the former one may be there until no pod
// uses it.
func (w *Weights) name(s naming.Identity) string {
	if s.OfCache {
		return naming.Shorten(s.Name+"-cache", s.Namespace+"/"+s.Name+"/"+s.UID+"/"+w.Hash, naming.MaxLabel-jobSuffix)
	}
	return naming.Shorten(s.Name+"-model", s.Namespace+"/"+s.Name+"/"+w.Hash, naming.MaxLabel-jobSuffix)
}

// weightsLength is the number of hex digits by which weights are told apart.
const weightsLength = 12

// jobSuffix is the length of what the name of a Job has after the loader's name: '-' and the hash of
// its pods. The name of a Job becomes a label.
const jobSuffix = 9

// withCache returns the spec with the cache that the platform team gives a model of a hub without one. The cache
// has no size here, so that the size is no part of the names: another default loads nothing again, and a claim
// that exists keeps its size. With adapters, engines have to keep the place of the weights.
func (p *tenantPolicy) withCache(spec *v1alpha1.InferenceServiceSpec) *v1alpha1.InferenceServiceSpec {
	m := spec.Model
	if p.ModelCaches.DefaultSize == nil || m == nil || m.CacheRef != nil || m.Cache != nil || m.Source().Hub == "" || spec.AdapterCache != nil {
		return spec
	}
	model, with := *m, *spec
	model.Cache = &v1alpha1.Cache{}
	with.Model = &model
	return &with
}

// defaultSize is the size of a claim that the platform team gives. A tenant may have a lower limit than the
// default, and has not set the size that is too much.
func (p *tenantPolicy) defaultSize() string {
	size := p.ModelCaches.DefaultSize
	if size == nil {
		return "" // Validation says what the service's own cache lacks.
	}
	if most := p.ModelCaches.MaxSize; most != nil && size.Cmp(*most) > 0 {
		size = most
	}
	return size.String()
}

// planWeights completes the weights by the Input, and refuses claims that the tenant may not have.
func (p *Plan) planWeights(in *inputv1alpha1.Input, policy *tenantPolicy) field.ErrorList {
	model := p.spec.Model
	if model == nil || model.Cache == nil || len(p.Roles) == 0 {
		p.Downloads = model != nil && model.CacheRef == nil && model.Source().Hub != ""
		return nil
	}
	at := field.NewPath("spec", "model", "cache")
	w := weightsOf(model, p.Service)
	w.Loader = loaderOf(model, w, p.Roles[0], &in.ModelLoader)
	errs := policy.checkCache(at, model.Cache)
	if !w.Own {
		errs = append(errs, refuseSharedNamespaces(at.Child("claimName"), p.Service, p.spec)...)
	} else {
		w.StorageClassName = cmp.Or(w.StorageClassName, policy.ModelCaches.StorageClassName)
		if model.Cache.Size == nil {
			w.Size = policy.defaultSize()
		}
	}
	if w.AccessMode == corev1.ReadWriteOnce && p.severalPods() {
		p.warn(at.Child("accessMode"), "lets only one node mount the claim, and the service may have several pods: those on other nodes stay Pending. "+
			"Use ReadWriteMany with a class that nodes can share, or leave out spec.model.cache, so that each engine downloads the model")
	}
	p.Weights = w
	return errs
}

// severalPods tells whether the service may have more than one pod with the weights in a cluster.
func (p *Plan) severalPods() bool {
	n := int64(0)
	for _, r := range p.Roles {
		n = plus(n, times(int64(r.Most())+int64(p.mostExtraOf(r)), int64(r.Nodes)))
	}
	return times(n, p.mostGroups()) > 1
}

// checkCache refuses a claim of a class or a size that the platform team does not allow.
func (p *tenantPolicy) checkCache(at *field.Path, c *v1alpha1.Cache) field.ErrorList {
	return append(p.checkClass(at.Child("storageClassName"), c.StorageClassName), p.checkSize(at.Child("size"), c.Size)...)
}

func (p *tenantPolicy) checkClass(at *field.Path, class string) field.ErrorList {
	allowed := p.ModelCaches
	return p.checkName(at, class, allowed.StorageClassName, allowed.AllowedStorageClassNames, "modelCaches.allowedStorageClassNames")
}

func (p *tenantPolicy) checkSize(at *field.Path, size *resource.Quantity) field.ErrorList {
	m := p.ModelCaches.MaxSize
	if m == nil || size == nil || size.Cmp(*m) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, text.Value(size.String()), fmt.Sprintf("must be at most %s%s", m.String(), setBy("modelCaches.maxSize")))}
}

// refuseSharedNamespaces refuses to fill a claim in a namespace that is not that of the tenant's name,
// because the claim may be another tenant's.
func refuseSharedNamespaces(at *field.Path, s naming.Identity, spec *v1alpha1.InferenceServiceSpec) field.ErrorList {
	for _, t := range scheduling.OutsideFleet(s.Namespace, spec.Placement) {
		if t.Namespace != s.Namespace {
			return field.ErrorList{field.Forbidden(at, fmt.Sprintf("must be left out while cluster %q runs the service in another namespace than %s: the claim there may be somebody else's", t.Cluster, s.Namespace))}
		}
	}
	return nil
}

// secrets returns the names of the Secrets that loading needs.
func (w *Weights) secrets() []string {
	all := slices.Clone(w.Loader.ImagePullSecrets)
	for _, e := range w.Loader.Env {
		if f := e.ValueFrom; f != nil && f.SecretKeyRef != nil && !ptr.Deref(f.SecretKeyRef.Optional, false) {
			all = append(all, f.SecretKeyRef.Name)
		}
	}
	return all
}

// loaderOf returns how weights are loaded. The pods of a role say who will read them, and where.
func loaderOf(m *v1alpha1.Model, w *Weights, r *Role, in *inputv1alpha1.ModelLoaderSettings) loader.Loader {
	pod := &r.Leader.Spec
	l := loader.New(&in.LoaderSettings)
	l.NodeSelector, l.Tolerations, l.Users = pod.NodeSelector, slices.Clone(pod.Tolerations), usersOf(pod, *in.RunAsUser)
	if pod.Affinity != nil {
		l.NodeAffinity = pod.Affinity.NodeAffinity
	}
	// Nodes with devices often have a taint of the device's name. Kubernetes lets pods that request
	// the device pass it (plugin/pkg/admission/extendedresourcetoleration).
	for _, name := range slices.Sorted(maps.Keys(r.leaderRequests)) {
		if capacity.IsDevice(name) {
			l.Tolerations = append(l.Tolerations, corev1.Toleration{Key: string(name), Operator: corev1.TolerationOpExists})
		}
	}
	s := m.Source()
	l.Weights(path.Join(ModelsPath, w.Directory), loader.Source{
		Hub: s.Hub, Revision: m.Revision, Bucket: s.Bucket, Path: s.Path, TokenSecretRef: m.TokenSecretRef, CredentialsSecretRef: m.CredentialsSecretRef,
	}, &in.LoaderSettings, w.Own)
	return l
}

// usersOf returns the user, the group and the volumes' group of a Job that loads what the engines of a pod
// read: those of the engines, as far as the pod says. It never runs as root, which can read what anybody
// else has written.
func usersOf(pod *corev1.PodSpec, otherwise int64) loader.Users {
	of := loader.Users{User: otherwise, Group: otherwise, VolumeGroup: otherwise}
	s := pod.SecurityContext
	if s == nil {
		return of
	}
	if u := ptr.Deref(s.RunAsUser, 0); u > 0 {
		of.User, of.Group = u, u
	}
	if g := ptr.Deref(s.RunAsGroup, 0); g > 0 {
		of.Group = g
	}
	of.VolumeGroup = ptr.Deref(s.FSGroup, of.Group)
	return of
}
