package epp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

const flowControlFeature = "flowControl"

// A Warning is about a part of a configuration that no known release reads. An image that
// the platform team chose may read it.
type Warning struct {
	// Path of that part.
	Path string
	// Message says what may not work.
	Message string
}

// Check returns an error for everything that an endpoint picker of the dialect would
// refuse. It also returns errors for a few things that an endpoint picker accepts and that
// then do not work: a negative weight, no profile, and a stage without its profile.
//
// OwnImage tells that the platform team chose the image. Endpoint pickers are extended by
// plugins, so the image may have its own. Unknown plugins and unknown parameters are then
// warnings. Everything else stays an error, also a data source or a cross-replica syncer of an
// unknown type, and any discovery. They connect to addresses, send state to a store, or find
// endpoints outside of the service's pool.
func (c *Config) Check(name inputv1alpha1.Dialect, ownImage bool) ([]Warning, field.ErrorList) {
	d, ok := dialects[name]
	if !ok {
		return nil, field.ErrorList{field.InternalError(c.path, fmt.Errorf("unknown dialect %q", name))}
	}
	var conf config
	found := problems{}
	found.unknownFields(c.path, c.doc, d.fields)
	if more := kube.DecodeMap(c.doc, c.path, &conf); len(more) > 0 {
		// The other checks would report the fields that could not be decoded once more.
		found.fail(more...)
		return found.all(c.path)
	}
	v := newVerifier(d, c.path, &conf, ownImage)
	v.problems = found
	v.checkHeader()
	v.checkFeatureGates()
	v.checkPlugins()
	v.checkProfileHandler()
	v.checkProfiles()
	v.checkReferences()
	return v.all(c.path)
}

// A verifier checks a configuration against a dialect.
type verifier struct {
	d        *dialect
	path     *field.Path
	conf     *config
	ownImage bool
	// roles are the roles of the plugins, by the name of the plugin.
	roles map[string]role
	// has are the roles that some plugin has.
	has map[role]bool
	// unlisted has the names of the plugins whose types the dialect does not have.
	unlisted map[string]bool
	// names are the names of the plugins, in the order of the configuration.
	names []string
	// known lists the types of plugins, for messages.
	known string
	problems
}

func newVerifier(d *dialect, path *field.Path, conf *config, ownImage bool) *verifier {
	v := &verifier{d: d, path: path, conf: conf, ownImage: ownImage, roles: map[string]role{}, has: map[role]bool{}, unlisted: map[string]bool{}}
	v.known = listTypes(v.usableTypes())
	for i := range conf.Plugins {
		p := &conf.Plugins[i]
		if p.Name == "" {
			p.Name = p.Type
		}
		if _, twice := v.roles[p.Name]; twice {
			continue
		}
		v.names = append(v.names, p.Name)
		r := v.roleOfType(p.Type)
		v.roles[p.Name], v.has[r] = r, true
		if _, known := d.plugins[p.Type]; !known {
			v.unlisted[p.Name] = true
		}
	}
	return v
}

func (v *verifier) checkHeader() {
	switch at := v.path.Child("apiVersion"); {
	case v.conf.APIVersion == "":
		v.fail(field.Required(at, "must be "+strings.Join(v.d.apiVersions, " or ")))
	case !slices.Contains(v.d.apiVersions, v.conf.APIVersion):
		v.fail(field.NotSupported(at, text.Value(v.conf.APIVersion), v.d.apiVersions))
	}
	switch at := v.path.Child("kind"); v.conf.Kind {
	case Kind:
	case "":
		v.fail(field.Required(at, "must be "+Kind))
	default:
		v.fail(field.NotSupported(at, text.Value(v.conf.Kind), []string{Kind}))
	}
}

func (v *verifier) checkFeatureGates() {
	for i, f := range v.conf.FeatureGates {
		at := v.path.Child("featureGates").Index(i)
		name, value, set := f, "", false
		if v.d.featureValues {
			name, value, set = strings.Cut(f, "=")
		}
		if !slices.Contains(v.d.features, name) {
			v.failWith(func() *field.Error { return field.NotSupported(at, text.Value(f), v.d.features) })
			continue
		}
		if _, err := parseGate(value); set && err != nil {
			v.fail(field.Invalid(at, text.Value(f), "must be "+name+", "+name+"=true or "+name+"=false"))
		}
	}
}

// enabled tells whether feature gates enable a feature that is disabled by default. The last entry of the feature counts. A
// dialect without values refuses the entries that have some.
func enabled(gates []string, feature string) bool {
	on := false
	for _, f := range gates {
		if name, value, set := strings.Cut(f, "="); name == feature {
			b, err := parseGate(value)
			on = !set || err == nil && b
		}
	}
	return on
}

func parseGate(value string) (bool, error) {
	return strconv.ParseBool(strings.ToLower(strings.TrimSpace(value)))
}
