package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

func TestValidateModel(t *testing.T) {
	model := func(text string) string {
		return "metadata: {name: svc, namespace: default}\nspec: {model: {" + text + "}, roles: [{name: w, componentType: worker, template: {spec: {containers: []}}}]}"
	}
	const noImage = "must be oci://{image}, such as oci://ghcr.io/acme/qwen:8b: its path is in lower case, and may have a registry before it, and a tag or a whole digest after it"
	testValidate(t, map[string]validation{
		"Hub":    {reason: "A model of the hub has a revision and a token.", doc: model("uri: 'hf://Qwen/Qwen3-8B', revision: refs/pr/1, name: qwen, tokenSecretRef: {name: hf, key: HF_TOKEN}")},
		"Claim":  {reason: "The path is part of the uri.", doc: model("uri: 'pvc://weights/models--Qwen/_8b'")},
		"Image":  {reason: "An image has a path.", doc: model("uri: 'oci://ghcr.io:443/acme/qwen:8b@sha256:" + strings.Repeat("0a", 32) + "', path: a/b")},
		"Cache":  {reason: "A model of the hub has a claim of its own.", doc: model("uri: 'hf://a/b', cache: {size: 40Gi, storageClassName: nfs, accessMode: ReadWriteOnce}")},
		"Bucket": {reason: "A bucket is loaded into a claim that exists.", doc: model("uri: 's3://models.acme/qwen/8b', credentialsSecretRef: {name: s3}, cache: {claimName: weights}")},
		"Uncached": {
			reason: "Not every engine reads a bucket.", doc: model("uri: 's3://models/qwen'"), schema: []string{"spec.model.cache"},
			want: []string{`spec.model.cache: Required value: must be set for s3://: not every engine reads a bucket, so a Job loads it into a claim`},
		},
		"NothingToLoad": {
			reason: "A claim needs no other one, and no credentials.", doc: model("uri: 'pvc://weights', credentialsSecretRef: {name: s3}, cache: {size: 1Gi}"),
			schema: []string{"spec.model.cache", "spec.model.credentialsSecretRef"},
			want: []string{
				`spec.model.credentialsSecretRef: Invalid value: "{...}": must be left out: only a bucket, s3://, has credentials`,
				`spec.model.cache: Invalid value: "{...}": must be left out: only a model of a hub or a bucket, hf:// or s3://, is loaded into a cache`,
			},
		},
		"NoClaim": {
			reason: "The size of a new claim is not known.", doc: model("uri: 'hf://a/b', cache: {accessMode: ReadWriteMany}"), schema: []string{"spec.model.cache"},
			want: []string{`spec.model.cache: Invalid value: "{...}": must have either size, for a claim of its own, or claimName`},
		},
		"TwoClaims": {
			reason: "A claim that exists has its size and its class.", doc: model("uri: 'hf://a/b', cache: {size: 1Gi, claimName: weights, storageClassName: nfs}"), schema: []string{"spec.model.cache"},
			want: []string{
				`spec.model.cache: Invalid value: "{...}": must have either size, for a claim of its own, or claimName`,
				`spec.model.cache: Invalid value: "{...}": must have nothing beside claimName: the claim exists already`,
			},
		},
		"Values": {
			reason: "A claim has a size and a mode in which a Job can fill it.", doc: model("uri: 'hf://a/b', cache: {size: -1Gi, accessMode: ReadOnlyMany, storageClassName: A_B}"),
			schema: []string{"spec.model.cache.accessMode", "spec.model.cache.storageClassName"},
			want: []string{
				`spec.model.cache.size: Invalid value: "-1Gi": must be more than 0`,
				`spec.model.cache.storageClassName: Invalid value: "A_B": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`spec.model.cache.accessMode: Unsupported value: "ReadOnlyMany": supported values: "ReadWriteMany", "ReadWriteOnce"`,
			},
		},
		"Scheme": {
			reason: "Other sources are unknown.", doc: model("uri: 'http://example.com/m'"), schema: []string{"spec.model.uri"},
			want: []string{`spec.model.uri: Invalid value: "http://example.com/m": must be hf://{organization}/{name}, s3://{bucket}/{prefix}, pvc://{claim}/{path} or oci://{image}`},
		},
		"SchemeFirst": {
			reason: "What a model may have beside its uri is said once the uri tells.",
			doc:    model("uri: 'Qwen/Qwen3-8B', revision: main, path: a, tokenSecretRef: {name: hf}, credentialsSecretRef: {name: s3}, cache: {size: 1Gi}"), schema: []string{"spec.model.uri"},
			want: []string{`spec.model.uri: Invalid value: "Qwen/Qwen3-8B": must be hf://{organization}/{name}, s3://{bucket}/{prefix}, pvc://{claim}/{path} or oci://{image}`},
		},
		"BucketFirst": {
			reason: "The same applies to an invalid uri of a scheme that is known. The API server tells both.",
			doc:    model("uri: 's3://Models', revision: main, cache: {size: 1Gi}"), schema: []string{"spec.model.revision", "spec.model.uri"},
			want: []string{`spec.model.uri: Invalid value: "s3://Models": must be s3://{bucket}/{prefix}: a bucket has 3 to 63 lower case letters, digits, '-' and '.', and starts and ends with a letter or digit`},
		},
		"ShortBucket": {
			reason: "Storage has names of buckets of its own form.", doc: model("uri: 's3://b/p', credentialsSecretRef: {name: s3}, cache: {claimName: weights}"), schema: []string{"spec.model.uri"},
			want: []string{`spec.model.uri: Invalid value: "s3://b/p": must be s3://{bucket}/{prefix}: a bucket has 3 to 63 lower case letters, digits, '-' and '.', and starts and ends with a letter or digit`},
		},
		"NoClaimOfThatName": {
			reason: "No API server has such a claim.", doc: model("uri: 'pvc://weights..v2/qwen'"),
			want: []string{`spec.model.uri: Invalid value: "pvc://weights..v2/qwen": must be pvc://{claim}/{path}: each part of a claim between dots has lower case letters, digits and '-', and starts and ends with a letter or digit`},
		},
		"NoKey": {
			reason: "No API server has pods with such a key.", doc: model("uri: 'hf://a/b', tokenSecretRef: {name: hf, key: ..token}"),
			want: []string{`spec.model.tokenSecretRef.key: Invalid value: "..token": must be a key of a Secret, which is not '.' and does not start with '..'`},
		},
		"UpperCase": {
			reason: "No node could pull the image.", doc: model("uri: 'oci://ghcr.io/Acme/qwen', path: a"),
			want: []string{`spec.model.uri: Invalid value: "oci://ghcr.io/Acme/qwen": ` + noImage},
		},
		"NoDigest": {
			reason: "A digest has a length.", doc: model("uri: 'oci://ghcr.io/acme/qwen@sha256:00'"),
			want: []string{`spec.model.uri: Invalid value: "oci://ghcr.io/acme/qwen@sha256:00": ` + noImage},
		},
		"Outside": {
			reason: "A path stays in its claim.", doc: model("uri: 'pvc://weights/../etc'"), schema: []string{"spec.model.uri"},
			want: []string{`spec.model.uri: Invalid value: "pvc://weights/../etc": must be hf://{organization}/{name}, s3://{bucket}/{prefix}, pvc://{claim}/{path} or oci://{image}`},
		},
		"NotOfAClaim": {
			reason: "What another source has is refused, with the field.", doc: model("uri: 'pvc://weights', revision: main, path: a, tokenSecretRef: {name: hf}"),
			schema: []string{"spec.model.path", "spec.model.revision", "spec.model.tokenSecretRef"},
			want: []string{
				`spec.model.revision: Invalid value: "main": must be left out: only hf:// has it`,
				`spec.model.path: Invalid value: "a": must be left out: only oci:// has it`,
				`spec.model.tokenSecretRef: Invalid value: "{...}": must be left out: only hf:// needs a token`,
			},
		},
		"Characters": {
			reason: "No text can become another word of a command.", doc: model("uri: 'hf://a/b', revision: '--x', name: 'a b', tokenSecretRef: {name: hf, key: a/b}"),
			schema: []string{"spec.model.name", "spec.model.revision", "spec.model.tokenSecretRef.key"},
			want: []string{
				`spec.model.revision: Invalid value: "--x": must be a branch, a tag or a commit`,
				`spec.model.name: Invalid value: "a b": must consist of letters, digits, '-', '.', '_', '/' and ':', and start with a letter or digit`,
				`spec.model.tokenSecretRef.key: Invalid value: "a/b": must be a key of a Secret: letters, digits, '-', '.' and '_'`,
			},
		},
	})
}

func TestModelSource(t *testing.T) {
	cases := map[string]struct {
		model v1alpha1.Model
		want  v1alpha1.ModelSource
	}{
		"Hub":     {v1alpha1.Model{URI: "hf://Qwen/Qwen3-8B"}, v1alpha1.ModelSource{Hub: "Qwen/Qwen3-8B", Name: "Qwen/Qwen3-8B"}},
		"Claim":   {v1alpha1.Model{URI: "pvc://weights/qwen/8b"}, v1alpha1.ModelSource{Claim: "weights", Path: "qwen/8b", Name: "8b"}},
		"Bucket":  {v1alpha1.Model{URI: "s3://models/qwen/8b"}, v1alpha1.ModelSource{Bucket: "models", Path: "qwen/8b", Name: "8b"}},
		"Root":    {v1alpha1.Model{URI: "pvc://weights"}, v1alpha1.ModelSource{Claim: "weights", Name: "weights"}},
		"Tag":     {v1alpha1.Model{URI: "oci://ghcr.io:443/acme/qwen:8b"}, v1alpha1.ModelSource{Image: "ghcr.io:443/acme/qwen:8b", Name: "qwen"}},
		"Digest":  {v1alpha1.Model{URI: "oci://acme/qwen@sha256:00", Path: "m"}, v1alpha1.ModelSource{Image: "acme/qwen@sha256:00", Path: "m", Name: "qwen"}},
		"OwnName": {v1alpha1.Model{URI: "hf://Qwen/Qwen3-8B", Name: "chat"}, v1alpha1.ModelSource{Hub: "Qwen/Qwen3-8B", Name: "chat"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.model.Source()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestValidateAdapterCache(t *testing.T) {
	cache := func(text string) string {
		return "metadata: {name: svc, namespace: default}\nspec: {adapterCache: {" + text + "}, roles: [{name: w, componentType: worker, template: {spec: {containers: []}}}]}"
	}
	testValidate(t, map[string]validation{
		"Size": {reason: "Everything but the size has a default.", doc: cache("size: 20Gi")},
		"All": {
			reason: "The service names the Secrets, which owners of models have no rights on.",
			doc:    cache("size: 20Gi, storageClassName: nfs, accessMode: ReadWriteOnce, tokenSecretRef: {name: hf, key: HF_TOKEN}, credentialsSecretRef: {name: s3}"),
		},
		"Values": {
			reason: "A claim has a size and a mode in which a Job can fill it.",
			doc:    cache("size: -1Gi, accessMode: ReadOnlyMany, storageClassName: A_B, tokenSecretRef: {name: A, key: 'a/b'}, credentialsSecretRef: {name: B}"),
			schema: []string{
				"spec.adapterCache.accessMode", "spec.adapterCache.credentialsSecretRef.name", "spec.adapterCache.storageClassName",
				"spec.adapterCache.tokenSecretRef.key", "spec.adapterCache.tokenSecretRef.name",
			},
			want: []string{
				`spec.adapterCache.size: Invalid value: "-1Gi": must be more than 0`,
				`spec.adapterCache.storageClassName: Invalid value: "A_B": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`spec.adapterCache.accessMode: Unsupported value: "ReadOnlyMany": supported values: "ReadWriteMany", "ReadWriteOnce"`,
				`spec.adapterCache.tokenSecretRef.name: Invalid value: "A": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`spec.adapterCache.tokenSecretRef.key: Invalid value: "a/b": must be a key of a Secret: letters, digits, '-', '.' and '_'`,
				`spec.adapterCache.credentialsSecretRef.name: Invalid value: "B": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
			},
		},
	})
}

// TestAdapterCacheStays proves that a claim for adapters stays what it is, except for Secrets. It may come
// and go.
func TestAdapterCacheStays(t *testing.T) {
	cache := func(text string) []byte {
		return []byte("apiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\nmetadata: {name: svc, namespace: default}\nspec: {" + text + "roles: [{name: w, componentType: worker, template: {spec: {containers: []}}}]}")
	}
	const full = "adapterCache: {size: 20Gi, storageClassName: nfs, accessMode: ReadWriteMany}, "
	schemas, err := serviceSchemas()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, old, to string
		want            []string
	}{
		"Added":   {reason: "A service gets one.", to: full},
		"Removed": {reason: "A service loses it.", old: full},
		"Secrets": {reason: "Secrets are for the next adapter.", old: full, to: "adapterCache: {size: 20Gi, storageClassName: nfs, accessMode: ReadWriteMany, tokenSecretRef: {name: hf}}, "},
		"Fields": {
			reason: "The engines mount the claim.", old: full, to: "adapterCache: {size: 30Gi, accessMode: ReadWriteOnce}, ",
			want: []string{"spec.adapterCache.accessMode", "spec.adapterCache.size", "spec.adapterCache.storageClassName"},
		},
		"NoMode":  {reason: "It is the default.", old: full, to: "adapterCache: {size: 20Gi, storageClassName: nfs}, "},
		"Written": {reason: "To write a default down changes nothing.", old: "adapterCache: {size: 20Gi}, ", to: "adapterCache: {size: 20Gi, accessMode: ReadWriteMany}, "},
		"OneNode": {reason: "It is another mode than the default.", old: "adapterCache: {size: 20Gi}, ", to: "adapterCache: {size: 20Gi, accessMode: ReadWriteOnce}, ", want: []string{"spec.adapterCache.accessMode"}},
	} {
		t.Run(name, func(t *testing.T) {
			for f, s := range schemas {
				if diff := cmp.Diff(tc.want, paths(s.ValidateUpdate(cache(tc.to), cache(tc.old)))); diff != "" {
					t.Errorf("%s\nschema of the %s: -want +got:\n%s", tc.reason, f, diff)
				}
			}
		})
	}
}
