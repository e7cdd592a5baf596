package cli

import (
	"errors"
	"fmt"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
)

// Profiles writes the profiles and answers of InferenceClusters, as their status has them. Services
// read only these. The command render makes them itself, and Crossplane's does not.
type Profiles struct {
	Fleet     []string `arg:"" name:"fleet" help:"Files or directories with InferenceClusters and their status. What kubectl get -o yaml writes will do. - is standard input."`
	Namespace string   `default:"crossplane-system" help:"Namespace of the ClusterInput."`
}

// Run writes the ConfigMaps in YAML.
func (p *Profiles) Run(streams Streams) error {
	streams.Err = forPeople{streams.Err}
	f := &files{stdin: streams.In, err: streams.Err}
	read, err := f.all(p.Fleet)
	if err != nil {
		return err
	}
	all := inCluster(read)
	streams.warn(unknownFields(fromFleet, all))
	told, err := profilesOf(all, p.Namespace)
	if err != nil {
		return err
	}
	if len(told) == 0 {
		return errors.New("there is no InferenceCluster in the files")
	}
	if err := writeYAML(streams.Out, told); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return nil
}

// profilesOf returns what services read of the InferenceClusters among some objects. What is among
// the objects already is left out.
func profilesOf(all []object, namespace string) ([]object, error) {
	exists := map[identity]bool{}
	for _, o := range all {
		exists[identityOf(o)] = true
	}
	var told []object
	for _, c := range all {
		if !ofCluster(c) || !readable(c) {
			continue
		}
		of, err := profile.Offline(namespace, c.Object)
		if err != nil {
			return nil, err
		}
		for _, t := range of {
			if o := (object{Object: t}); !exists[identityOf(o)] {
				told = append(told, o)
			}
		}
	}
	return told, nil
}

// addProfiles adds what services read of each InferenceCluster.
func (g *snapshot) addProfiles() error {
	told, err := profilesOf(g.cluster, g.profileNamespace())
	g.cluster = append(g.cluster, told...)
	return err
}

// profileNamespace is where the Input says that the profiles are.
func (g *snapshot) profileNamespace() string {
	if g.input == nil {
		return inputv1alpha1.DefaultNamespace
	}
	return namespaceOf(g.input)
}
