package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

/*
Adapters are loaded into a claim by the Jobs of InferenceModels. The engines mount it from the start, and
vLLM reads an adapter when the first request asks for it: each adapter is a directory of its name, whose
adapter_config.json has the engines' model in base_model_name_or_path
(vllm/plugins/lora_resolvers/filesystem_resolver.py of vLLM v0.9.0 and later).

vLLM loads the resolver's plugin by itself. Naming it in VLLM_PLUGINS would turn off all other plugins, such
as those of hardware.
*/

// Adapters is the claim for LoRA adapters that the engines of a service mount.
type Adapters struct {
	// ClaimName is the same in all clusters.
	ClaimName string
	// Size, StorageClassName and AccessMode of a new claim. An empty class is the cluster's.
	Size, StorageClassName string
	AccessMode             corev1.PersistentVolumeAccessMode
	// ModelName is the model that all engines load, as their commands have it.
	ModelName string
	// MaxRank is the highest rank of adapters that all engines serve. It is 0 if a command does not say.
	MaxRank int32
	// Users are those of the Jobs that load adapters.
	loader.Users

	// TokenSecretRef and CredentialsSecretRef are those of the spec.
	TokenSecretRef       *v1alpha1.SecretKeyRef
	CredentialsSecretRef *v1alpha1.SecretRef
}

const (
	// adaptersPath is where the claim is mounted.
	adaptersPath = loader.AdaptersPath
	// adaptersVolume is the name of its volume, unless the template has one of that name.
	adaptersVolume = "adapters"
	// forAdapters is the name in the claim's key.
	forAdapters = "adapters"

	// The variables by which vLLM finds adapters at run time (vllm/envs.py of vLLM v0.9.0).
	loraUpdating = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
	loraCacheDir = "VLLM_LORA_RESOLVER_CACHE_DIR"
	vllmPlugins  = "VLLM_PLUGINS"
	loraResolver = "lora_filesystem_resolver"
)

// listAdapters is the remedy where engines cannot load adapters at run time.
const listAdapters = "leave spec.adapterCache out, and list adapters in the engine's args, which spec.rollout paces"

// IsForAdapters tells whether a key is that of a claim for adapters.
func IsForAdapters(k key.Key) bool {
	return k.Kind == key.PersistentVolumeClaim && k.Name == forAdapters
}

// claimName is the name of a claim that a service makes.
func claimName(s naming.Identity, k key.Key) string {
	if IsForAdapters(k) {
		return naming.AdapterClaim(s.Name, s.Namespace)
	}
	return (&Weights{Hash: k.Name}).name(s)
}

// adaptersOf returns what templates need of the claim, or nil without one.
func adaptersOf(c *v1alpha1.AdapterCache, s naming.Identity) *Adapters {
	if c == nil {
		return nil
	}
	return &Adapters{
		ClaimName: claimName(s, key.Key{Kind: key.PersistentVolumeClaim, Name: forAdapters}),
		Size:      c.Size.String(), StorageClassName: c.StorageClassName, AccessMode: c.Mode(),
		TokenSecretRef: c.TokenSecretRef, CredentialsSecretRef: c.CredentialsSecretRef,
	}
}

// planAdapters completes the claim by the Input and the roles, and refuses what cannot work.
func (p *Plan) planAdapters(in *inputv1alpha1.Input, policy *tenantPolicy) field.ErrorList {
	c := p.spec.AdapterCache
	if c == nil || len(p.Roles) == 0 {
		return nil
	}
	at := field.NewPath("spec", "adapterCache")
	a := adaptersOf(c, p.Service)
	errs := policy.checkCache(at, &v1alpha1.Cache{Size: &c.Size, StorageClassName: c.StorageClassName})
	a.StorageClassName = cmp.Or(a.StorageClassName, policy.ModelCaches.StorageClassName)
	a.Users = usersOf(&p.Roles[0].Leader.Spec, *in.ModelLoader.RunAsUser)
	errs = append(errs, a.findModel(p.Roles)...)
	errs = append(errs, refuseRootPath(p.Roles)...)
	a.MaxRank = maxRank(p.Roles)
	if p.Router != nil {
		errs = append(errs, p.Router.close()...)
	}
	if a.AccessMode == corev1.ReadWriteOnce {
		p.warn(at.Child("accessMode"),
			"lets only one node mount the claim: engines, and Jobs that load adapters, stay Pending on other nodes. Use ReadWriteMany with a class that nodes can share")
	}
	p.Adapters = a
	return errs
}

// findModel finds the model that all engines load. An adapter names it, and so fits one only.
func (a *Adapters) findModel(roles []*Role) field.ErrorList {
	var errs field.ErrorList
	for _, r := range roles {
		switch {
		case a.ModelName == "":
			a.ModelName = r.model
		case r.model != "" && r.model != a.ModelName:
			errs = append(errs, field.Invalid(r.path.Child("template"), text.Value(r.model), fmt.Sprintf(
				"must have the same model as all roles, because an adapter in spec.adapterCache fits one: another role has %s", text.Value(a.ModelName))))
		}
	}
	return errs
}

// OtherModel returns a model that a role loads, if its command has another name for it. Paths of weights that are mounted do not tell
// which model is there.
func (p *Plan) OtherModel(name string) string {
	mounted := func(m string) bool { return m == ModelsPath || strings.HasPrefix(m, ModelsPath+"/") }
	for _, r := range p.Roles {
		if r.model != "" && r.model != name && !mounted(name) && !mounted(r.model) {
			return r.model
		}
	}
	return ""
}

// defaultRank is the highest rank that vLLM serves without --max-lora-rank (vllm/config/lora.py).
const defaultRank = 16

// maxRank returns the highest rank of adapters that all engines serve, or 0 if that is not known. Engines refuse
// requests for adapters of a higher one.
func maxRank(roles []*Role) int32 {
	least := 0
	for _, r := range roles {
		if r.line == nil || r.line.Has("--config") {
			return 0
		}
		n, ok := r.line.number(defaultRank, "--max-lora-rank")
		if !ok {
			return 0
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return int32(least)
}

// secrets returns the names of the Secrets that loading adapters may need.
func (a *Adapters) secrets() []string {
	var all []string
	if r := a.TokenSecretRef; r != nil {
		all = append(all, r.Name)
	}
	if r := a.CredentialsSecretRef; r != nil {
		all = append(all, r.Name)
	}
	return all
}

// adapterClaim is the claim for adapters in a cluster. It is there from the first replica on. It goes with
// the cluster, or without spec.adapterCache once no pod can have it. What it was made with stays.
func (p *Plan) adapterClaim(c *ClusterPlan, exists *ClaimView, named map[string]bool, running *RunningView) *Cache {
	switch {
	case exists != nil && (p.Adapters != nil || c.usesFormer(running) || named[exists.cache(p.Service).ClaimName]):
		claim := exists.cache(p.Service)
		return &claim
	case exists != nil || p.Adapters == nil || !c.hasReplicas():
		return nil
	}
	a := p.Adapters
	return &Cache{Key: c.Key(key.PersistentVolumeClaim, forAdapters), ClaimName: a.ClaimName, Size: a.Size, StorageClassName: a.StorageClassName, AccessMode: string(a.AccessMode)}
}

// RefuseOtherClaim refuses a spec that says something else than what the claim for adapters was made with. The
// schema refuses such a change, too. A claim may have grown.
func (p *Plan) RefuseOtherClaim(claim *ClaimView) field.ErrorList {
	c := p.spec.AdapterCache
	if c == nil {
		return nil
	}
	at := field.NewPath("spec", "adapterCache")
	const again = " has it: remove adapterCache, wait until the rollout is complete, and add it again. Requests for adapters fail meanwhile"
	var errs field.ErrorList
	if size, err := kube.ParseQuantity(claim.Size); err == nil && c.Size.Cmp(size) > 0 {
		errs = append(errs, field.Invalid(at.Child("size"), text.Value(c.Size.String()), fmt.Sprintf(
			"must be at most %s, as the claim %s has it: to grow it, change the PersistentVolumeClaim itself, in each cluster", size.String(), claim.Name)))
	}
	for _, f := range []struct{ name, want, has string }{
		{"storageClassName", c.StorageClassName, claim.StorageClassName},
		{"accessMode", string(c.Mode()), claim.AccessMode},
	} {
		if f.want != "" && f.has != "" && f.want != f.has {
			errs = append(errs, field.Invalid(at.Child(f.name), text.Value(f.want), fmt.Sprintf("must be %q, as the claim %s", text.Value(f.has), claim.Name)+again))
		}
	}
	return errs
}

// firstRelease is the first release of vLLM that has the resolver.
var firstRelease = imageref.Version{0, 9, 0}

// withAdapters returns a template whose engine loads adapters of the claim. It is the template as if the
// user had written all of it, so everything else holds for it, too.
func (p *rolePlanner) withAdapters(t *PodTemplate, at *field.Path) (*kube.Document, *field.Error) {
	engine := t.enginePath(at)
	name, tag := imageref.Split(t.engine().Image)
	v, known := imageref.ParseVersion(tag)
	switch {
	case p.engineOf(t) != launch.EngineVLLM:
		return nil, field.Invalid(engine.Child("image"), text.Value(t.engine().Image), "must be vLLM, because only vLLM is known to load adapters of spec.adapterCache at run time: "+listAdapters)
	case known && slices.Contains(releaseImages, name) && v.Compare(firstRelease) < 0:
		return nil, field.Invalid(engine.Child("image"), text.Value(t.engine().Image), fmt.Sprintf("must be vLLM v%s or later, which loads adapters of spec.adapterCache at run time: or %s", firstRelease, listAdapters))
	}
	command, err := launch.WithAdapters(t.command())
	if err != nil {
		return nil, t.invalidCommand(at, err)
	}
	for i, m := range t.engine().VolumeMounts {
		if mounted := path.Clean(m.MountPath); mounted == adaptersPath || strings.HasPrefix(mounted, adaptersPath+"/") {
			return nil, field.Invalid(engine.Child("volumeMounts").Index(i).Child("mountPath"), m.MountPath, "must be another path: spec.adapterCache is mounted there")
		}
	}
	doc, spec, container := t.editable()
	setCommand(container, command)
	volume := apply.Volume().WithName(kube.FreeName(adaptersVolume, kube.Elements(spec, "volumes"))).
		WithPersistentVolumeClaim(apply.PersistentVolumeClaimVolumeSource().WithClaimName(p.adapters.ClaimName).WithReadOnly(true))
	if err := kube.Append(spec, "volumes", volume); err != nil {
		return nil, field.InternalError(engine, err)
	}
	if err := kube.Append(container, "volumeMounts", apply.VolumeMount().WithName(*volume.Name).WithMountPath(adaptersPath).WithReadOnly(true)); err != nil {
		return nil, field.InternalError(engine, err)
	}
	for _, e := range t.missing(adapterVariables()) {
		if err := kube.Append(container, "env", &e); err != nil {
			return nil, field.InternalError(engine, err)
		}
	}
	keepOwners(spec)
	return doc, nil
}

func adapterVariables() []corev1.EnvVar {
	return []corev1.EnvVar{{Name: loraUpdating, Value: "true"}, {Name: loraCacheDir, Value: adaptersPath}}
}

// warnOfAdapterVariables warns of variables of a template with which vLLM finds no adapter of the claim.
func (p *rolePlanner) warnOfAdapterVariables(t *PodTemplate, at *field.Path) {
	for i, e := range t.engine().Env {
		if e.ValueFrom != nil || strings.Contains(e.Value, "$(") {
			continue
		}
		var remedy string
		switch {
		case e.Name == loraUpdating && !slices.Contains([]string{"1", "true"}, strings.ToLower(strings.TrimSpace(e.Value))):
			remedy = "leave it out"
		case e.Name == loraCacheDir && path.Clean(e.Value) != adaptersPath:
			remedy = "leave it out"
		case e.Name == vllmPlugins && !slices.Contains(strings.Split(e.Value, ","), loraResolver):
			remedy = "add " + loraResolver + ", or leave it out"
		default:
			continue
		}
		p.warn(t.enginePath(at).Child("env").Index(i).Child("value"), "with this value, vLLM finds no adapter of spec.adapterCache: %s", remedy)
	}
}

// checkModel refuses a command that does not say which model the engine loads.
func (p *rolePlanner) checkModel() {
	if t := &p.role.Leader; p.adapters != nil && p.role.model == "" {
		p.errs = append(p.errs, field.Invalid(t.enginePath(p.leaderPath()).Child("args"), text.Cut(strings.Join(t.words(), " "), maxCommand),
			"must name the model in plain text, because each adapter in spec.adapterCache has to have it as base_model_name_or_path: write it behind vllm serve, or set spec.model"))
	}
}
