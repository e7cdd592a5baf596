/*
Package schematest validates objects as an API server would, for tests. It uses the API
server's own code and Crossplane's, and runs neither. Crossplane's code converts the XRDs of
package/ to CRDs. The API server's code prunes, defaults and validates objects by these CRDs.
*/
package schematest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xrdv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
)

// A Flavour is one of the kinds that the packages install or use.
type Flavour string

// The flavours.
const (
	// XR is the namespaced InferenceService.
	XR Flavour = "XR"
	// Claim is the InferenceService as a claim.
	Claim Flavour = "claim"
	// ClaimedXR is the XInferenceService behind a claim.
	ClaimedXR Flavour = "claimed XR"
	// Cluster is the InferenceCluster, which is the same in both packages.
	Cluster Flavour = "cluster"
	// Model is the namespaced InferenceModel, ModelClaim is its claim, and ClaimedModel the
	// XInferenceModel behind that.
	Model        Flavour = "model"
	ModelClaim   Flavour = "model claim"
	ClaimedModel Flavour = "claimed model"
	// Cache is the namespaced ModelCache, CacheClaim is its claim, and ClaimedCache the XModelCache behind
	// that.
	Cache        Flavour = "cache"
	CacheClaim   Flavour = "cache claim"
	ClaimedCache Flavour = "claimed cache"
	// Role is the InferenceRole, which is the same in both packages.
	Role Flavour = "role"
	// Input, ClusterInput and ModelInput are the inputs of the function. They are never created in an API
	// server, but tools validate them by their schemas.
	Input        Flavour = "input"
	ClusterInput Flavour = "cluster input"
	ModelInput   Flavour = "model input"
)

// Services are the flavours of an InferenceService.
func Services() []Flavour { return []Flavour{XR, Claim, ClaimedXR} }

// Models are the flavours of an InferenceModel.
func Models() []Flavour { return []Flavour{Model, ModelClaim, ClaimedModel} }

// Caches are the flavours of a ModelCache.
func Caches() []Flavour { return []Flavour{Cache, CacheClaim, ClaimedCache} }

// A Schema validates objects of one kind.
type Schema struct {
	// CRD of the kind.
	CRD *extv1.CustomResourceDefinition

	structural *structural.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// New loads the schema of a flavour from package/. It returns an error for a CRD that an API
// server would refuse, for example because a CEL rule costs too much.
func New(f Flavour) (*Schema, error) {
	crd, err := load(f)
	if err != nil {
		return nil, fmt.Errorf("cannot load the %s: %w", f, err)
	}
	return of(crd, string(f))
}

// NewFromFile loads the schema of a CRD that another project publishes.
func NewFromFile(path string) (*Schema, error) {
	b, err := os.ReadFile(path) //nolint:gosec // A file of a test.
	if err != nil {
		return nil, err
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		return nil, err
	}
	// Of several versions it takes the first. Their schemas do not differ in what tests validate.
	crd.Spec.Versions = crd.Spec.Versions[:1]
	crd.Spec.Versions[0].Storage = true
	return of(crd, path)
}

func of(crd *extv1.CustomResourceDefinition, f string) (*Schema, error) {
	var err error
	internal := &apiextensions.CustomResourceDefinition{}
	extv1.SetDefaults_CustomResourceDefinition(crd)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		return nil, fmt.Errorf("cannot convert the %s: %w", f, err)
	}
	// An API server sets the stored versions. The owner, an XRD, does not exist here.
	internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	internal.OwnerReferences = nil
	if errs := extvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		return nil, fmt.Errorf("an API server would refuse the %s: %w", f, errs.ToAggregate())
	}
	// The conversion moves the schema of a single version to spec.validation.
	props := internal.Spec.Validation
	if props == nil {
		props = internal.Spec.Versions[0].Schema
	}
	s := &Schema{CRD: crd}
	if s.structural, err = structural.NewStructural(props.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("cannot read the schema of the %s: %w", f, err)
	}
	if s.openAPI, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("cannot read the schema of the %s: %w", f, err)
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

func load(f Flavour) (*extv1.CustomResourceDefinition, error) {
	inputs := map[Flavour]string{Input: "inputs", ClusterInput: "clusterinputs", ModelInput: "modelinputs"}
	if plural, ok := inputs[f]; ok {
		crd := &extv1.CustomResourceDefinition{}
		return crd, read("package/input/fn.fusioninfer.io_"+plural+".yaml", crd)
	}
	xrd, err := definition(f)
	if err != nil {
		return nil, err
	}
	return defined(f, xrd)
}

// definition is the XRD of a flavour.
func definition(f Flavour) (*xrdv1.CompositeResourceDefinition, error) {
	file := "package/claim/definition.yaml"
	switch f { //nolint:exhaustive // All others use the XRD of claims.
	case XR:
		file = "package/xr/definition.yaml"
	case Cluster:
		file = "package/xr/cluster-definition.yaml"
	case Model:
		file = "package/xr/model-definition.yaml"
	case Role:
		file = "package/xr/role-definition.yaml"
	case ModelClaim, ClaimedModel:
		file = "package/claim/model-definition.yaml"
	case Cache:
		file = "package/xr/cache-definition.yaml"
	case CacheClaim, ClaimedCache:
		file = "package/claim/cache-definition.yaml"
	}
	xrd := &xrdv1.CompositeResourceDefinition{}
	return xrd, read(file, xrd)
}

// defined is the CRD that Crossplane makes of an XRD.
func defined(f Flavour, xrd *xrdv1.CompositeResourceDefinition) (*extv1.CustomResourceDefinition, error) {
	if f == Claim || f == ModelClaim || f == CacheClaim {
		return xcrd.ForCompositeResourceClaim(xrd)
	}
	return xcrd.ForCompositeResource(xrd)
}

func read(name string, into any) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			return errors.New("not in the module")
		}
		dir = filepath.Dir(dir)
	}
	b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // A file of the module.
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(b, into)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Validate returns the errors of an API server when an object in YAML is created. Unknown
// fields are errors, as with kubectl.
func (s *Schema) Validate(doc []byte) field.ErrorList {
	return s.validate(doc, nil)
}

// ValidateUpdate returns the errors of an API server when an object is updated. From Kubernetes 1.30 on, rules of CEL do not refuse
// values that stay as they are.
func (s *Schema) ValidateUpdate(doc, old []byte) field.ErrorList {
	before, err := s.Default(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return s.validate(doc, before)
}

// Default returns an object with the defaults of the schema.
func (s *Schema) Default(doc []byte) (map[string]any, error) {
	obj, err := parse(doc)
	if err != nil {
		return nil, err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.structural)
	defaulting.Default(obj, s.structural)
	return obj, nil
}

func (s *Schema) validate(doc []byte, old map[string]any) field.ErrorList {
	obj, err := s.Default(doc)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(obj), s.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	errs = append(errs, validation.ValidateCustomResource(nil, obj, s.openAPI)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	if slices.ContainsFunc(errs, blocksRules) {
		return errs
	}
	if old == nil {
		more, _ := s.rules.Validate(context.Background(), nil, s.structural, obj, nil, celconfig.RuntimeCELCostBudget)
		return append(errs, more...)
	}
	unchanged := cel.WithRatcheting(common.NewCorrelatedObject(obj, old, &model.Structural{Structural: s.structural}))
	more, _ := s.rules.Validate(context.Background(), nil, s.structural, obj, old, celconfig.RuntimeCELCostBudget, unchanged)
	return append(errs, more...)
}

// blocksRules reports whether the API server skips CEL rules after an error.
func blocksRules(e *field.Error) bool {
	switch e.Type { //nolint:exhaustive // Rules are evaluated after all others.
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// parse decodes YAML as the API server does: whole numbers are int64.
func parse(doc []byte) (map[string]any, error) {
	b, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot parse YAML: %w", err)
	}
	obj := map[string]any{}
	if err := json.Unmarshal(b, &obj); err != nil {
		return nil, fmt.Errorf("cannot parse YAML: %w", err)
	}
	return obj, nil
}
