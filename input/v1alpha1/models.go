package v1alpha1

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ModelLoaderSettings configure the Jobs that load the weights of spec.model into caches. A
// change applies to weights that are not loaded yet, and starts no other Job.
type ModelLoaderSettings struct {
	LoaderSettings `json:",inline"`

	// RunAsUser is the user and the group that the Jobs run as, and the group of the volume. Where
	// the engine's template says which user or which fsGroup its pods have, that counts. Defaults to
	// 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}

// LoaderSettings configure the Jobs that load weights or adapters.
type LoaderSettings struct {
	// HubImage is the image that loads models of a hub. It has a shell and hf, the command of
	// huggingface_hub 0.34 or later. Defaults to vllm/vllm-openai:v0.27.1, which nodes with
	// engines often have already.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	HubImage string `json:"hubImage,omitempty"`

	// BucketImage is the image that loads models of a bucket. It has a shell and aws, the command
	// line of AWS. Defaults to public.ecr.aws/aws-cli/aws-cli:2.31.0.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	BucketImage string `json:"bucketImage,omitempty"`

	// ImagePullSecrets of the Jobs' pods, in the namespaces of the services.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Env are variables of the Jobs, such as HF_ENDPOINT, AWS_ENDPOINT_URL and HTTPS_PROXY. They say
	// which hub, which S3 and which proxy the Jobs reach. Tenants see them, so they must not have
	// credentials.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	Env []LoaderVariable `json:"env,omitempty"`

	// Resources of the Jobs. Defaults to requests of one CPU and 4 GiB of memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// A LoaderVariable is an environment variable of the loading Jobs.
type LoaderVariable struct {
	// Name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// Value of the variable.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// ModelCaches says which claims spec.model.cache may make. Generic ephemeral volumes of templates
// may have the same classes and sizes.
type ModelCaches struct {
	// StorageClassName of claims that name no class. It should be one whose volumes many nodes can
	// mount. Defaults to the default class of each cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`

	// AllowedStorageClassNames are the classes that claims may name, as names or patterns with '*'.
	// The default class is always allowed. There are no others by default.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AllowedStorageClassNames []string `json:"allowedStorageClassNames,omitempty"`

	// DefaultSize of the claim for a model of a hub whose service sets no spec.model.cache. Without
	// it, each engine of such a service downloads the model for itself. So does one with
	// spec.adapterCache, whose engines cannot change the place of their weights. The class has to be
	// one whose volumes many nodes can mount. Claims that exist keep their size.
	// +optional
	DefaultSize *resource.Quantity `json:"defaultSize,omitempty"`

	// MaxSize of a claim. While a new revision is loaded, a service has two claims. There is no
	// limit by default, besides the ResourceQuota of a namespace.
	// +optional
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
}

// The defaults of the loading Jobs.
const (
	DefaultHubImage    = "vllm/vllm-openai:v0.27.1"
	DefaultBucketImage = "public.ecr.aws/aws-cli/aws-cli:2.31.0"
	DefaultLoaderUser  = 1000
)

// Limits of the loading Jobs.
const (
	maxLoaderVariables = 64
	maxVariable        = 4096
	maxUser            = 1<<31 - 1
)

func (s *ModelLoaderSettings) setDefaults() {
	s.LoaderSettings.setDefaults()
	if s.RunAsUser == nil {
		user := int64(DefaultLoaderUser)
		s.RunAsUser = &user
	}
}

func (s *LoaderSettings) setDefaults() {
	s.HubImage = cmp.Or(s.HubImage, DefaultHubImage)
	s.BucketImage = cmp.Or(s.BucketImage, DefaultBucketImage)
	if s.Resources == nil {
		s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		}}
	}
}

func validateModelLoader(at *field.Path, s *ModelLoaderSettings) field.ErrorList {
	errs := validateLoader(at, &s.LoaderSettings)
	if u := s.RunAsUser; u != nil {
		errs = append(errs, check.Between(at.Child("runAsUser"), *u, 1, maxUser)...)
	}
	return errs
}

func validateLoader(at *field.Path, s *LoaderSettings) field.ErrorList {
	errs := check.Length(at.Child("hubImage"), s.HubImage, maxImage)
	errs = append(errs, check.Length(at.Child("bucketImage"), s.BucketImage, maxImage)...)
	for i, secret := range s.ImagePullSecrets {
		errs = append(errs, check.Name(at.Child("imagePullSecrets").Index(i).Child("name"), secret.Name)...)
	}
	variables, more := check.Capped(at.Child("env"), s.Env, maxLoaderVariables)
	errs = append(errs, more...)
	seen := map[string]bool{}
	for i, e := range variables {
		at := at.Child("env").Index(i)
		if len(validation.IsCIdentifier(e.Name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), text.Value(e.Name), "must consist of letters, digits and '_', and not start with a digit"))
		}
		if seen[e.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), text.Value(e.Name)))
		}
		seen[e.Name] = true
		errs = append(errs, check.Length(at.Child("value"), e.Value, maxVariable)...)
	}
	return append(errs, check.Resources(at.Child("resources"), s.Resources)...)
}

func validateModelCaches(at *field.Path, c *ModelCaches) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	errs = append(errs, check.Optional(at.Child("storageClassName"), c.StorageClassName, check.Name)...)
	errs = append(errs, validatePatterns(at.Child("allowedStorageClassNames"), c.AllowedStorageClassNames)...)
	for _, q := range []struct {
		name string
		size *resource.Quantity
	}{{"defaultSize", c.DefaultSize}, {"maxSize", c.MaxSize}} {
		if q.size != nil {
			errs = append(errs, check.Size(at.Child(q.name), *q.size)...)
		}
	}
	if c.DefaultSize != nil && c.MaxSize != nil && c.DefaultSize.Cmp(*c.MaxSize) > 0 {
		errs = append(errs, field.Invalid(at.Child("defaultSize"), text.Value(c.DefaultSize.String()), fmt.Sprintf("must be at most maxSize, %s", c.MaxSize)))
	}
	return errs
}
