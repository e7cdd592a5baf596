package servingprofile

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Doubt is a field of the service that is valid with the profile, and probably a mistake.
type Doubt struct {
	// Path of the field in the service.
	Path string
	// Message says what is wrong and how to fix it.
	Message string
}

// Doubts tells of engines that the service adds beside the one of the profile. A container is merged with the one of
// its name, so one of another name gets nothing, and both run. The Applied may be nil.
func (a *Applied) Doubts() []Doubt {
	if a == nil {
		return nil
	}
	var all []Doubt
	for i, role := range a.service.GetFields()[fieldRoles].GetListValue().GetValues() {
		of := role.GetStructValue().GetFields()[fieldComponentType].GetStringValue()
		for _, template := range []string{fieldTemplate, fieldLeaderTemplate} {
			theirs := containersOf(a.fragment(of, template))
			for j, c := range containersOf(role.GetStructValue().GetFields()[template]) {
				engine, beside := engineBeside(c, theirs)
				if !beside {
					continue
				}
				all = append(all, Doubt{
					Path: fmt.Sprintf("spec.%s[%d].%s.spec.containers[%d].name", fieldRoles, i, template, j),
					Message: fmt.Sprintf("%q runs a second engine and gets nothing of profile %s, which is for container %q: use that name, unless you want both",
						text.Value(nameOf(c)), a.Name, text.Value(engine)),
				})
			}
		}
	}
	return all
}

// fragment is what the profile has for a template of roles of a type. Leaders without a template of their own have
// the other one.
func (a *Applied) fragment(of, template string) *structpb.Value {
	f := a.fragments[of].GetFields()
	if !isSet(f[template]) {
		template = fieldTemplate
	}
	return f[template]
}

func containersOf(template *structpb.Value) []*structpb.Value {
	list, rest := kube.Find(template, ".spec.containers")
	if rest != "" {
		return nil
	}
	return list.GetListValue().GetValues()
}

// engineBeside tells whether a container is an engine that the profile does not have, and names the profile's engine.
func engineBeside(c *structpb.Value, theirs []*structpb.Value) (name string, beside bool) {
	if slices.ContainsFunc(theirs, func(t *structpb.Value) bool { return nameOf(t) == nameOf(c) }) {
		return "", false
	}
	i := slices.IndexFunc(theirs, isEngine)
	if i < 0 && len(theirs) != 1 {
		return "", false
	}
	engine := theirs[max(i, 0)]
	if isEngine(c) || startsImage(c) && imageName(c) == imageName(engine) {
		return nameOf(engine), true
	}
	return "", false
}

// engineImages are what the names of the images of known engines begin with.
var engineImages = []string{"vllm-openai", "sglang"}

// isEngine tells whether a container is known to start an engine, by its command or its image. A command of its own
// may start anything else of that image.
func isEngine(c *structpb.Value) bool {
	command, _ := words(c.GetStructValue().GetFields()["command"])
	args, _ := words(c.GetStructValue().GetFields()["args"])
	return launch.Parse(launch.Command{Command: command, Args: args}).Engine() != launch.EngineUnknown ||
		startsImage(c) && slices.ContainsFunc(engineImages, func(name string) bool { return strings.HasPrefix(imageName(c), name) })
}

// startsImage tells whether a container runs what its image starts by itself.
func startsImage(c *structpb.Value) bool {
	return imageName(c) != "" && !isSet(c.GetStructValue().GetFields()["command"])
}

// imageName is the name of a container's image.
func imageName(c *structpb.Value) string {
	image := c.GetStructValue().GetFields()["image"].GetStringValue()
	if image == "" {
		return ""
	}
	name, _ := imageref.Split(image)
	return name
}
