/*
Command xrdgen generates files from the Go types of the API: the XRDs of the two
Configurations, the CRDs of the function's inputs, and the API reference. It also copies what the
function checks of the schemas of the Gateway API. Run it from anywhere in the module:

	go run ./internal/api/xrdgen
*/
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "xrdgen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	files, err := generate()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("cannot make the directory of %s: %w", name, err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}

// generate returns all generated files, by their path in the module.
func generate() (map[string][]byte, error) {
	types, err := load()
	if err != nil {
		return nil, err
	}
	crds := map[schema.GroupKind]*extv1.CustomResourceDefinition{}
	for _, kind := range []schema.GroupKind{serviceKind, clusterKind, modelKind, cacheKind, roleKind, inputKind, clusterInputKind, modelInputKind} {
		if crds[kind], err = types.crd(kind); err != nil {
			return nil, err
		}
	}
	schemas := map[schema.GroupKind]runtime.RawExtension{}
	for _, kind := range []schema.GroupKind{serviceKind, clusterKind, modelKind, cacheKind, roleKind} {
		if schemas[kind], err = schemaOf(crds[kind]); err != nil {
			return nil, err
		}
	}
	service, cluster, model, cache, role := crds[serviceKind], crds[clusterKind], crds[modelKind], crds[cacheKind], crds[roleKind]
	reference, err := types.reference()
	if err != nil {
		return nil, err
	}
	files, err := gatewaySchemas()
	if err != nil {
		return nil, err
	}
	files["docs/api.md"] = reference
	for name, obj := range map[string]any{
		"package/xr/definition.yaml":                         namespacedXRD(service, schemas[serviceKind]),
		"package/claim/definition.yaml":                      claimXRD(service, schemas[serviceKind]),
		"package/xr/cluster-definition.yaml":                 clusterXRD(cluster, schemas[clusterKind]),
		"package/claim/cluster-definition.yaml":              clusterXRD(cluster, schemas[clusterKind]),
		"package/xr/model-definition.yaml":                   namespacedXRD(model, schemas[modelKind]),
		"package/claim/model-definition.yaml":                claimXRD(model, schemas[modelKind]),
		"package/xr/cache-definition.yaml":                   namespacedXRD(cache, schemas[cacheKind]),
		"package/claim/cache-definition.yaml":                claimXRD(cache, schemas[cacheKind]),
		"package/xr/role-definition.yaml":                    namespacedXRD(role, schemas[roleKind]),
		"package/claim/role-definition.yaml":                 namespacedXRD(role, schemas[roleKind]),
		"package/input/fn.fusioninfer.io_inputs.yaml":        crds[inputKind],
		"package/input/fn.fusioninfer.io_clusterinputs.yaml": crds[clusterInputKind],
		"package/input/fn.fusioninfer.io_modelinputs.yaml":   crds[modelInputKind],
	} {
		if files[name], err = asYAML(obj); err != nil {
			return nil, fmt.Errorf("cannot write %s as YAML: %w", name, err)
		}
	}
	return files, nil
}

// moduleRoot returns the nearest directory with a go.mod, from the working directory upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("cannot find the module: no go.mod here or above")
		}
		dir = filepath.Dir(dir)
	}
}
