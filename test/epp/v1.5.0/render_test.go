package epp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/gateway-api-inference-extension/apix/v1alpha2"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/server"
	"sigs.k8s.io/yaml"
)

const rendered = "../../../internal/service/render/router/testdata"

// TestFlags reads the rendered flags as the endpoint picker does.
func TestFlags(t *testing.T) {
	docs := kinds(t, "Deployment")
	for _, doc := range docs {
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		opts, flags := server.NewOptions(), pflag.NewFlagSet("epp", pflag.ContinueOnError)
		opts.AddFlags(flags)
		args := d.Spec.Template.Spec.Containers[0].Args
		if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
			t.Errorf("flags %q: %v, left over: %q", args, err, flags.Args())
		}
		if err := opts.Complete(); err != nil {
			t.Error(err)
		}
		if err := opts.Validate(); err != nil {
			t.Error(err)
		}
		ha := *d.Spec.Replicas > 1
		if opts.PoolName != "my-service-pool" || opts.PoolNamespace != "default" || opts.ConfigFile != "/config/config.yaml" || opts.EnableLeaderElection != ha {
			t.Errorf("flags %q are read as %+v", args, opts)
		}
		var ports []int32
		for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
			ports = append(ports, p.ContainerPort)
		}
		if len(ports) != 3 || int(ports[0]) != opts.GRPCPort || int(ports[1]) != opts.GRPCHealthPort || int(ports[2]) != opts.MetricsPort {
			t.Errorf("container ports %v, the endpoint picker listens on %d, %d and %d", ports, opts.GRPCPort, opts.GRPCHealthPort, opts.MetricsPort)
		}
	}
	if len(docs) < 2 {
		t.Errorf("%d Deployments, want one with leader election and one without", len(docs))
	}
}

// TestModels reads the objects of models with the types that llm-d took over from
// here: the group is another, the fields are the same.
func TestModels(t *testing.T) {
	objectives := kinds(t, "InferenceObjective")
	for _, doc := range objectives {
		var o v1alpha2.InferenceObjective
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Error(err)
		}
		if o.Spec.Priority == nil || o.Spec.PoolRef.Name != "my-service-pool" {
			t.Errorf("InferenceObjective %+v", o.Spec)
		}
	}
	rewrites := kinds(t, "InferenceModelRewrite")
	for _, doc := range rewrites {
		var o v1alpha2.InferenceModelRewrite
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Error(err)
		}
		if len(o.Spec.Rules) != 1 || o.Spec.Rules[0].Matches[0].Model.Value == "" || len(o.Spec.Rules[0].Targets) == 0 {
			t.Errorf("InferenceModelRewrite %+v", o.Spec)
		}
	}
	if len(objectives) == 0 || len(rewrites) == 0 {
		t.Errorf("%d InferenceObjectives and %d InferenceModelRewrites, want some", len(objectives), len(rewrites))
	}
}

func kinds(t *testing.T, kind string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rendered, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", rendered, err)
	}
	var docs []string
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(b), "\n---\n") {
			if strings.Contains(doc, "\nkind: "+kind+"\n") {
				docs = append(docs, doc)
			}
		}
	}
	return docs
}
