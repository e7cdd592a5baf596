package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// ofCache returns a ModelCache with these fields of the spec.
func ofCache(fields string) string {
	return `{metadata: {name: qwen, namespace: default}, spec: {` + fields + `}}`
}

func cacheProblems(t *testing.T, doc string) []string {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	xr := &v1alpha1.ModelCache{}
	errs := kube.Decode(s, nil, xr)
	errs = append(errs, composite.WithoutConsequences(v1alpha1.ValidateCache(xr, v1alpha1.ClaimReference{}), slices.Clone(errs))...)
	var all []string
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return all
}

// TestValidateModelCache shows what the schema and the function refuse of a ModelCache, in each flavour.
func TestValidateModelCache(t *testing.T) {
	const least = `uri: "hf://Qwen/Qwen3-8B", size: 40Gi`
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that an API server complains about.
		schema []string
		// want are the function's errors.
		want []string
	}{
		"Least":  {reason: "A source and a size will do.", doc: ofCache(least)},
		"Full":   {reason: "A cache of a hub may have all of these.", doc: ofCache(least + `, revision: main, tokenSecretRef: {name: hub}, storageClassName: nfs, accessMode: ReadWriteOnce, nodeSelector: {gpu: h100}, tolerations: [{key: gpu, operator: Exists}, {key: a, value: b, effect: NoSchedule}], clusters: [east, west], loadPolicy: OnDemand`)},
		"Bucket": {reason: "A bucket has credentials.", doc: ofCache(`uri: "s3://models/qwen", credentialsSecretRef: {name: bucket}, size: 1Ti, clusterSelector: {}`)},
		"Claim": {
			reason: "What is in a claim already is not loaded.", doc: ofCache(`uri: "pvc://weights/qwen", size: 40Gi`),
			schema: []string{"spec.uri"},
			want:   []string{`spec.uri: Invalid value: "pvc://weights/qwen": must be hf://{organization}/{name} or s3://{bucket}/{prefix}`},
		},
		"SourceFirst": {
			reason: "What a cache may have beside its uri is said once the uri tells.",
			doc:    ofCache(`uri: "Qwen/Qwen3-8B", revision: main, tokenSecretRef: {name: hub}, credentialsSecretRef: {name: s3}, size: 40Gi`),
			schema: []string{"spec.uri"},
			want:   []string{`spec.uri: Invalid value: "Qwen/Qwen3-8B": must be hf://{organization}/{name} or s3://{bucket}/{prefix}`},
		},
		"NoSize": {
			reason: "Nobody knows how large the files are.", doc: ofCache(`uri: "hf://Qwen/Qwen3-8B"`),
			schema: []string{"spec.size"},
			want:   []string{`spec.size: Invalid value: "0": must be more than 0`},
		},
		"Milli": {
			reason: "No file has less than a byte.", doc: ofCache(`uri: "hf://Qwen/Qwen3-8B", size: 40m`),
			want: []string{`spec.size: Invalid value: "40m": must be at least 1Mi, and m stands for thousandths of a byte: did you mean 40M or 40Mi?`},
		},
		"Revision": {
			reason: "A bucket has no revisions.", doc: ofCache(`uri: "s3://models/qwen", revision: main, size: 40Gi`),
			schema: []string{"spec.revision"},
			want:   []string{`spec.revision: Invalid value: "main": must be left out: only hf:// has it`},
		},
		"BothPlaces": {
			reason: "Clusters are named or selected.", doc: ofCache(least + `, clusters: [east], clusterSelector: {}`),
			schema: []string{"spec"},
			want:   []string{"spec.clusterSelector: Forbidden: must be left out if clusters is set"},
		},
		"Cluster": {
			reason: "The name of a cluster is a label.", doc: ofCache(least + `, clusters: [East/1]`),
			schema: []string{"spec.clusters[0]"},
			want:   []string{`spec.clusters[0]: Invalid value: "East/1": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"Twice": {
			reason: "A cluster has one claim.", doc: ofCache(least + `, clusters: [east, east]`),
			schema: []string{"spec.clusters[1]"},
			want:   []string{`spec.clusters[1]: Duplicate value: "east": must differ from spec.clusters[0], which is the same`},
		},
		"LoadPolicy": {
			reason: "Without clusters there is nothing to choose.", doc: ofCache(least + `, loadPolicy: OnDemand`),
			schema: []string{"spec.loadPolicy"},
			want:   []string{"spec.loadPolicy: Forbidden: must be left out without clusters and clusterSelector"},
		},
		"Toleration": {
			reason: "A toleration says of which taint it is.", doc: ofCache(least + `, tolerations: [{value: b}]`),
			want: []string{`spec.tolerations[0].operator: Invalid value: "": must be Exists without a key`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, f := range schematest.Caches() {
				s, err := schematest.New(f)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.schema, paths(s.Validate([]byte(tc.doc))), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\nthe schema of the %s complains about: -want, +got:\n%s", tc.reason, f, diff)
				}
			}
			if diff := cmp.Diff(tc.want, cacheProblems(t, tc.doc), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestModelCacheUpdate shows which fields of a ModelCache can be changed: none that says what the weights are.
func TestModelCacheUpdate(t *testing.T) {
	const before = `uri: "hf://a/b", revision: x, size: 1Gi, storageClassName: nfs, accessMode: ReadWriteMany`
	const least = `uri: "hf://a/b", size: 1Gi`
	cases := map[string]struct {
		before, after string
		schema        []string
	}{
		"Clusters":  {after: before + `, clusters: [east], tokenSecretRef: {name: hub}, nodeSelector: {a: b}`},
		"Source":    {after: `uri: "hf://a/c", revision: x, size: 1Gi, storageClassName: nfs, accessMode: ReadWriteMany`, schema: []string{"spec.uri"}},
		"Revision":  {after: `uri: "hf://a/b", size: 1Gi, storageClassName: nfs, accessMode: ReadWriteMany`, schema: []string{"spec.revision"}},
		"Size":      {after: `uri: "hf://a/b", revision: x, size: 2Gi, storageClassName: nfs, accessMode: ReadWriteMany`, schema: []string{"spec.size"}},
		"Class":     {after: `uri: "hf://a/b", revision: x, size: 1Gi, storageClassName: ceph, accessMode: ReadWriteMany`, schema: []string{"spec.storageClassName"}},
		"AnyClass":  {after: `uri: "hf://a/b", revision: x, size: 1Gi, accessMode: ReadWriteMany`, schema: []string{"spec.storageClassName"}},
		"SameMode":  {after: `uri: "hf://a/b", revision: x, size: 1Gi, storageClassName: nfs`},
		"OtherMode": {after: `uri: "hf://a/b", revision: x, size: 1Gi, storageClassName: nfs, accessMode: ReadWriteOnce`, schema: []string{"spec.accessMode"}},
		"Written":   {before: least, after: least + `, accessMode: ReadWriteMany`},
		"Narrowed":  {before: least, after: least + `, accessMode: ReadWriteOnce`, schema: []string{"spec.accessMode"}},
		// The name of the claim goes by the text, so the weights would be loaded again.
		"Spelling": {after: `uri: "hf://a/b", revision: x, size: "1073741824", storageClassName: nfs, accessMode: ReadWriteMany`, schema: []string{"spec.size"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.before == "" {
				tc.before = before
			}
			for _, f := range schematest.Caches() {
				s, err := schematest.New(f)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.schema, paths(s.ValidateUpdate([]byte(ofCache(tc.after)), []byte(ofCache(tc.before)))), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the schema of the %s complains about: -want, +got:\n%s", f, diff)
				}
			}
		})
	}
}
