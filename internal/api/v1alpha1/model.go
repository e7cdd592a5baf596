package v1alpha1

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Model is the weights that the engines of all roles load, and where these come from.
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.matches('^(s3|pvc|oci)://') || !has(self.revision)",fieldPath=".revision",message="must be left out: only a model of a hub, hf://, has revisions"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.matches('^(s3|pvc|oci)://') || !has(self.tokenSecretRef)",fieldPath=".tokenSecretRef",message="must be left out: only a model of a hub, hf://, needs a token"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.matches('^(pvc|oci)://') || !has(self.cache)",fieldPath=".cache",message="must be left out: only a model of a hub or a bucket, hf:// or s3://, is loaded into a cache"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.startsWith('s3://') || has(self.cache)",fieldPath=".cache",message="must be set for s3://: not every engine reads a bucket, so a Job loads it into a claim"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.matches('^(hf|pvc|oci)://') || !has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must be left out: only a bucket, s3://, has credentials"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.matches('^(hf|s3|pvc)://') || !has(self.path)",fieldPath=".path",message="must be left out: only an image, oci://, has a path; that of a claim is part of its uri"
// +kubebuilder:validation:XValidation:rule="has(self.uri) != has(self.cacheRef)",message="must have either uri or cacheRef"
// +kubebuilder:validation:XValidation:rule="!has(self.cacheRef) || !(has(self.revision) || has(self.path) || has(self.cache) || has(self.tokenSecretRef) || has(self.credentialsSecretRef))",fieldPath=".cacheRef",message="must have nothing but name beside it: the ModelCache says where the weights come from"
type Model struct {
	// URI says where the weights are. With hf://{organization}/{name}, each engine downloads them
	// from the Hugging Face Hub when it starts, unless there is a cache. With
	// s3://{bucket}/{prefix}, they are the objects of a bucket, which a Job loads into the cache.
	// With pvc://{claim}/{path}, they are in a PersistentVolumeClaim of the service's namespace,
	// in each cluster that the service runs in. With oci://{image}, they are in an image, which
	// Kubernetes 1.35 or later mounts as a volume. Caches, claims and images are mounted at
	// /mnt/models, read-only. Required, unless cacheRef is set.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(hf://([A-Za-z0-9][-A-Za-z0-9._]*/)?[A-Za-z0-9][-A-Za-z0-9._]*|s3://[a-z0-9][-a-z0-9.]*[a-z0-9](/[A-Za-z0-9_][-A-Za-z0-9._]*)*|pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[A-Za-z0-9_][-A-Za-z0-9._]*)*|oci://[A-Za-z0-9][-A-Za-z0-9._:/@]*)$`
	URI string `json:"uri,omitempty"`

	// Revision of a model of a hub: a branch, a tag or a commit. A commit keeps replicas that
	// start later from loading other weights. Defaults to the hub's default branch.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-A-Za-z0-9._/]*$`
	Revision string `json:"revision,omitempty"`

	// Path is the directory of the weights in the image. Defaults to its root.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9._]*(/[A-Za-z0-9_][-A-Za-z0-9._]*)*$`
	Path string `json:"path,omitempty"`

	// Name by which clients ask for the model. Defaults to the name in the hub, or to the last
	// element of the prefix or of the claim's path, or to the image's name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-A-Za-z0-9._/:]*$`
	Name string `json:"name,omitempty"`

	// TokenSecretRef is the key of a Secret with the token for a gated model of a hub. The
	// Secret has to be in the service's namespace, in each cluster that the service runs in.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`

	// CredentialsSecretRef names a Secret with the keys AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if there is one. The Secret has to be in the
	// service's namespace, in each cluster that the service runs in. Without it, the bucket is
	// read without credentials.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`

	// Cache is a claim into which a Job loads the weights before the first engine starts. Without
	// it, and without a default size from the platform team, each engine downloads them for itself.
	// +optional
	Cache *Cache `json:"cache,omitempty"`

	// CacheRef names a ModelCache of the service's namespace, in place of uri, revision and cache.
	// Several services can name it. New replicas wait until the weights are loaded in their
	// cluster, and a service is placed only in clusters of the ModelCache.
	// +optional
	CacheRef *ModelCacheRef `json:"cacheRef,omitempty"`
}

// A ModelCacheRef names a ModelCache.
type ModelCacheRef struct {
	// Name of the ModelCache.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// A SecretKeyRef is a key of a Secret in the service's namespace.
type SecretKeyRef struct {
	// Name of the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Key in the Secret. Defaults to token.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// LongFor returns the model that a text stands for, which is a URI or a name in the hub.
func (Model) LongFor(written string) string {
	for _, uri := range []string{written, schemeHub + written} {
		if modelURI.MatchString(uri) {
			return fmt.Sprintf("{uri: %s}", uri)
		}
	}
	return "{uri: " + schemeHub + "Qwen/Qwen3-8B}"
}

// A ModelSource is a model's URI in parts. One of Hub, Bucket, Claim and Image is set.
type ModelSource struct {
	// Hub is the name in the Hugging Face Hub, and Bucket that of a bucket of S3.
	Hub, Bucket string
	// Claim is a PersistentVolumeClaim, and Image an image.
	Claim, Image string
	// Path of the weights in the bucket, the claim or the image. Empty means the root.
	Path string
	// Name by which clients ask for the model.
	Name string
}

// The patterns of the schema.
var (
	modelURI      = regexp.MustCompile(`^(hf://([A-Za-z0-9][-A-Za-z0-9._]*/)?[A-Za-z0-9][-A-Za-z0-9._]*|s3://[a-z0-9][-a-z0-9.]*[a-z0-9](/[A-Za-z0-9_][-A-Za-z0-9._]*)*|pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[A-Za-z0-9_][-A-Za-z0-9._]*)*|oci://[A-Za-z0-9][-A-Za-z0-9._:/@]*)$`)
	adapterURI    = regexp.MustCompile(`^(hf://([A-Za-z0-9][-A-Za-z0-9._]*/)?[A-Za-z0-9][-A-Za-z0-9._]*|s3://[a-z0-9][-a-z0-9.]*[a-z0-9](/[A-Za-z0-9_][-A-Za-z0-9._]*)*)$`)
	modelRevision = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._/]*$`)
	modelPath     = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9._]*(/[A-Za-z0-9_][-A-Za-z0-9._]*)*$`)
	modelName     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._/:]*$`)
	secretKey     = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
)

// sourceName matches the names that models have by their URIs. The last element of a path may begin with '_'.
var sourceName = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9._/]*$`)

const (
	schemeHub    = "hf://"
	schemeBucket = "s3://"
	schemeClaim  = "pvc://"
	schemeImage  = "oci://"

	// defaultTokenKey is the key of a hub's token in its Secret.
	defaultTokenKey = "token"
	// maxURI is the limit of a model's URI.
	maxURI = 512
	// imageRule is what the URI of an image has to be.
	imageRule = "must be oci://{image}, such as oci://ghcr.io/acme/qwen:8b: its path is in lower case, and may have a registry before it, and a tag or a whole digest after it"
	// claimRule is what the claim in a URI has to be.
	claimRule = "must be pvc://{claim}/{path}: each part of a claim between dots has lower case letters, digits and '-', and starts and ends with a letter or digit"
	// nameRule is what the name of a model has to be.
	nameRule = "must consist of letters, digits, '-', '.', '_', '/' and ':', and start with a letter or digit"
)

// Source returns where the weights of a valid model are.
func (m *Model) Source() ModelSource {
	var s ModelSource
	scheme, rest, _ := strings.Cut(m.URI, "://")
	switch scheme + "://" {
	case schemeHub:
		s.Hub, s.Name = rest, rest
	case schemeBucket:
		s.Bucket, s.Path, _ = strings.Cut(rest, "/")
		s.Name = path.Base(rest)
	case schemeClaim:
		s.Claim, s.Path, _ = strings.Cut(rest, "/")
		s.Name = path.Base(rest)
	case schemeImage:
		s.Image, s.Path = rest, m.Path
		s.Name, _ = imageref.Split(rest)
	}
	if m.Name != "" {
		s.Name = m.Name
	}
	return s
}

// Base returns the URI of a valid model without the tag and the digest of an image. All revisions of a model have it.
func (m *Model) Base() string {
	image, is := strings.CutPrefix(m.URI, schemeImage)
	if !is {
		return m.URI
	}
	_, tag := imageref.Split(image)
	image, _, _ = strings.Cut(image, "@")
	return schemeImage + strings.TrimSuffix(image, ":"+tag)
}

// TokenKey returns the key of the hub's token, with the default.
func (r *SecretKeyRef) TokenKey() string {
	if r.Key == "" {
		return defaultTokenKey
	}
	return r.Key
}

func validateModel(at *field.Path, m *Model) field.ErrorList {
	if m == nil {
		return nil
	}
	if m.CacheRef != nil {
		return validateCacheRef(at, m)
	}
	errs := check.Length(at.Child("uri"), m.URI, maxURI)
	errs = append(errs, matches(at.Child("uri"), m.URI, modelURI, bucketFirst(m.URI, "must be hf://{organization}/{name}, s3://{bucket}/{prefix}, pvc://{claim}/{path} or oci://{image}"))...)
	if image, is := strings.CutPrefix(m.URI, schemeImage); is && len(errs) == 0 && !imageref.Valid(image) {
		errs = append(errs, field.Invalid(at.Child("uri"), text.Value(m.URI), imageRule))
	}
	if claim := m.Source().Claim; claim != "" && len(errs) == 0 && len(validation.IsDNS1123Subdomain(claim)) > 0 {
		errs = append(errs, field.Invalid(at.Child("uri"), text.Value(m.URI), claimRule))
	}
	// An invalid URI does not say what may be beside it, and what is beside it may be right. Errors are sorted by
	// path, so that one about revision would come before the one about the URI.
	known := len(errs) == 0
	for _, f := range []struct {
		name, value, of, message string
		pattern                  *regexp.Regexp
	}{
		{"revision", m.Revision, schemeHub, "must be a branch, a tag or a commit", modelRevision},
		{"path", m.Path, schemeImage, "must be a relative path of letters, digits, '-', '.' and '_'", modelPath},
		{"name", m.Name, "", nameRule, modelName},
	} {
		if f.value == "" {
			continue
		}
		errs = append(errs, check.Length(at.Child(f.name), f.value, MaxName)...)
		errs = append(errs, matches(at.Child(f.name), f.value, f.pattern, f.message)...)
		if known && !strings.HasPrefix(m.URI, f.of) {
			errs = append(errs, field.Invalid(at.Child(f.name), text.Value(f.value), "must be left out: only "+f.of+" has it"))
		}
	}
	errs = append(errs, validateSecretKey(at.Child("tokenSecretRef"), m.TokenSecretRef)...)
	if known && m.TokenSecretRef != nil && !strings.HasPrefix(m.URI, schemeHub) {
		errs = append(errs, field.Invalid(at.Child("tokenSecretRef"), object, "must be left out: only "+schemeHub+" needs a token"))
	}
	return append(errs, validateCache(at, m, known)...)
}

func validateSecretKey(at *field.Path, r *SecretKeyRef) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := check.Name(at.Child("name"), r.Name)
	if r.Key != "" {
		errs = append(errs, check.Length(at.Child("key"), r.Key, MaxName)...)
		errs = append(errs, matches(at.Child("key"), r.Key, secretKey, "must be a key of a Secret: letters, digits, '-', '.' and '_'")...)
		if r.Key == "." || strings.HasPrefix(r.Key, "..") {
			// An API server refuses the pods, long after the service was accepted.
			errs = append(errs, field.Invalid(at.Child("key"), text.Value(r.Key), "must be a key of a Secret, which is not '.' and does not start with '..'"))
		}
	}
	return errs
}

// bucketFirst says what a bucket's name is like where a URI names one, and otherwise what a URI is like.
func bucketFirst(uri, otherwise string) string {
	if strings.HasPrefix(uri, schemeBucket) {
		return "must be s3://{bucket}/{prefix}: a bucket has 3 to 63 lower case letters, digits, '-' and '.', and starts and ends with a letter or digit"
	}
	return otherwise
}

func matches(at *field.Path, v string, pattern *regexp.Regexp, message string) field.ErrorList {
	if len(v) > maxURI || pattern.MatchString(v) {
		return nil // What is too long is reported as such.
	}
	return check.InvalidOrMissing(at, v, message)
}
