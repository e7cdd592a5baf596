package plan

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
)

const (
	// ModelsPath is where engines and the loading Job have the weights.
	ModelsPath = "/mnt/models"
	// modelVolume is the name of their volume, unless the template has one of that name.
	modelVolume = "model"
)

// withModel returns a template whose engine loads the model of the service. It is the template as if the
// user had written all of it, so everything else holds for it, too.
func (p *rolePlanner) withModel(t *PodTemplate, at *field.Path) (*kube.Document, *field.Error) {
	source := p.model.source()
	// An adapter names the model by this path, which then has to stay the same when the revision changes.
	within := p.adapters != nil && source.Claim != ""
	load := launch.Model{Path: source.Hub, Name: source.Name, Revision: p.model.Revision}
	switch {
	case within:
		load.Path, load.Revision = ModelsPath, ""
	case source.Hub == "":
		load.Path, load.Revision = path.Join(ModelsPath, source.Path), ""
	}
	engine := t.enginePath(at)
	command, err := launch.WithModel(t.command(), p.engineOf(t), load)
	if err != nil {
		return nil, t.invalidCommand(at, err)
	}
	for i, m := range t.engine().VolumeMounts {
		at := path.Clean(m.MountPath)
		switch mount := engine.Child("volumeMounts").Index(i).Child("mountPath"); {
		case source.Hub == "" && at == ModelsPath:
			return nil, field.Invalid(mount, m.MountPath, "must be another path: spec.model is mounted there")
		case (p.model.CacheRef != nil || p.model.weights != nil && p.model.weights.Own) && strings.HasPrefix(at, ModelsPath+"/"):
			return nil, field.Invalid(mount, m.MountPath, "must be another path: the cache of spec.model is mounted above, read-only, and has no such directory")
		}
	}
	doc, spec, container := t.editable()
	setCommand(container, command)
	if err := p.addSource(spec, container, source, within); err != nil {
		return nil, field.InternalError(engine, err)
	}
	if p.model.weights != nil || p.model.CacheRef != nil {
		keepOwners(spec)
	}
	return doc, nil
}

// editable returns a copy of a template, and its spec and its engine's container in the copy.
func (t *PodTemplate) editable() (doc *kube.Document, spec, engine *structpb.Struct) {
	doc = kube.Copy(kube.WithoutNulls(t.Document))
	spec = kube.CopyChild(doc, "spec")
	containers := slices.Clone(kube.Elements(spec, "containers"))
	engine = kube.Copy(containers[t.Engine].GetStructValue())
	containers[t.Engine] = structpb.NewStructValue(engine)
	kube.SetList(spec, "containers", containers)
	return doc, spec, engine
}

// keepOwners leaves the files of a volume as they are where its root has the right group. Otherwise
// Kubernetes goes through all files whenever a pod starts. The loading Job has the same group.
func keepOwners(spec *structpb.Struct) {
	const policy = "fsGroupChangePolicy"
	s := spec.GetFields()["securityContext"].GetStructValue()
	if s.GetFields()["fsGroup"] == nil || s.GetFields()[policy] != nil {
		return
	}
	kube.CopyChild(spec, "securityContext").Fields[policy] = structpb.NewStringValue(string(corev1.FSGroupChangeOnRootMismatch))
}

// addSource gives an engine the weights of a claim or an image, or the token of a hub. Within tells that it
// gets only the directory of the weights of a claim.
func (p *rolePlanner) addSource(spec, engine *structpb.Struct, source v1alpha1.ModelSource, within bool) error {
	volume := apply.Volume().WithName(kube.FreeName(modelVolume, kube.Elements(spec, "volumes")))
	switch {
	case source.Claim != "":
		volume.WithPersistentVolumeClaim(apply.PersistentVolumeClaimVolumeSource().WithClaimName(source.Claim).WithReadOnly(true))
	case source.Image != "":
		volume.WithImage(apply.ImageVolumeSource().WithReference(source.Image))
	case p.model.TokenSecretRef == nil || slices.ContainsFunc(kube.Elements(engine, "env"), isHubToken):
		return nil
	default:
		ref := p.model.TokenSecretRef
		return kube.Append(engine, "env", apply.EnvVar().WithName(loader.TokenVariable).
			WithValueFrom(apply.EnvVarSource().WithSecretKeyRef(apply.SecretKeySelector().WithName(ref.Name).WithKey(ref.TokenKey()))))
	}
	if err := kube.Append(spec, "volumes", volume); err != nil {
		return err
	}
	mount := apply.VolumeMount().WithName(*volume.Name).WithMountPath(ModelsPath).WithReadOnly(true)
	if within && source.Path != "" {
		mount.WithSubPath(source.Path)
	}
	return kube.Append(engine, "volumeMounts", mount)
}

func isHubToken(v *structpb.Value) bool {
	return v.GetStructValue().GetFields()["name"].GetStringValue() == loader.TokenVariable
}
