package plan

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A documentedLine is a command line of an engine's own documentation.
type documentedLine struct {
	engine, file, command string
}

func documentedLines(t *testing.T) []documentedLine {
	t.Helper()
	text, err := os.ReadFile("../../engineflags/testdata/documented.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []documentedLine
	for line := range strings.Lines(string(text)) {
		if where, command, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			engine, file, _ := strings.Cut(where, " ")
			all = append(all, documentedLine{engine, file, command})
		}
	}
	return all
}

// size is the number that a command line gives a flag by one of its names. It is 0 without the flag, or if the
// number is a shell's variable.
func (d documentedLine) size(names string) int {
	m := regexp.MustCompile(`\s(?:` + names + `)[ =](\d+)(?:\s|$)`).FindStringSubmatch(d.command)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// gpus are those that the engine uses in all. It is read from the text alone, and not by what is tested.
func (d documentedLine) gpus() int {
	n := max(1, d.size("-tp|--tp|--tp-size|--tensor-parallel-size")) * max(1, d.size("-pp|--pp|--pp-size|--pipeline-parallel|--pipeline-parallel-size"))
	data := d.size("-dp|--dp|--dp-size|--data-parallel-size")
	local := d.size("-dpl|--data-parallel-size-local")
	switch {
	case strings.Contains(d.command, "--enable-dp-attention"): // Its ranks share the GPUs of tensor parallel.
	case local > 0:
		n *= local
	case strings.Contains(d.command, "--data-parallel-rank "): // The other ranks are other commands.
	case data > 0:
		n *= data
	}
	return n
}

// doubts are the errors and the warnings about the line on pods with so many GPUs each.
func (d documentedLine) doubts(t *testing.T, command string, gpus int, nodes int32, launcher v1alpha1.Launcher) ([]Warning, error) {
	t.Helper()
	image := map[string]string{"vLLM": "vllm/vllm-openai:v0.28.0", "SGLang": "lmsysorg/sglang:v0.5.18"}[d.engine]
	template := document(t, `{spec: {containers: [{name: engine, image: "`+image+`", readinessProbe: {exec: {command: [ok]}}, command: [sh, -c],
		args: [`+strconv.Quote(command)+`], resources: {limits: {nvidia.com/gpu: `+strconv.Itoa(gpus)+`}}}]}}`)
	role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: template}
	if nodes > 1 {
		role.Multinode = multinode(nodes, launcher)
	}
	_, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
	return warnings, errors.Join(asErrors(errs)...)
}

func asErrors(list field.ErrorList) []error {
	all := make([]error, len(list))
	for i, err := range list {
		all[i] = err
	}
	return all
}

// nodeFlags are those with which a line tells its own node of the others. A launcher adds them.
var nodeFlags = regexp.MustCompile(`\s--(?:nnodes|node-rank|dist-init-addr|master-addr)[ =]\S+`)

// TestDocumentedSizes plans the command lines that the engines' own documentation has, on the GPUs that their sizes
// imply: on one node, and on as many as hold eight GPUs each. None is warned of or refused.
func TestDocumentedSizes(t *testing.T) {
	const perNode = 8
	lines := documentedLines(t)
	if len(lines) < 100 {
		t.Fatalf("want at least 100 command lines, got %d", len(lines))
	}
	sized, spread, told := 0, 0, 0
	for _, d := range lines {
		t.Run(d.file, func(t *testing.T) {
			total := d.gpus()
			nodes := max(int32(d.size("--nnodes")), int32((total+perNode-1)/perNode))
			none := func(where, command string, gpus int, nodes int32, launcher v1alpha1.Launcher) {
				t.Helper()
				warnings, err := d.doubts(t, command, gpus, nodes, launcher)
				if err != nil {
					t.Errorf("%s: %s: refused: %v", where, d.command, err)
				}
				if diff := cmp.Diff([]Warning(nil), warnings); diff != "" {
					t.Errorf("%s: %s: -want, +got:\n%s", where, d.command, diff)
				}
			}
			if total > 1 {
				sized++
				if warnings, _ := d.doubts(t, nodeFlags.ReplaceAllString(d.command, ""), 2*total, 1, ""); len(warnings) > 0 {
					told++
				}
			}
			none("one node", nodeFlags.ReplaceAllString(d.command, ""), total, 1, "")
			if nodes == 1 {
				return
			}
			spread++
			launcher := v1alpha1.LauncherVLLM
			if d.engine == "SGLang" {
				launcher = v1alpha1.LauncherSGLang
			}
			none("several nodes", nodeFlags.ReplaceAllString(d.command, ""), total/int(nodes), nodes, launcher)
			if nodeFlags.MatchString(d.command) {
				none("its own nodes", d.command, total/int(nodes), nodes, v1alpha1.LauncherNone)
			}
		})
	}
	// Otherwise this would prove little: most sizes are read, because twice the GPUs are too many.
	t.Logf("%d of %d lines need several GPUs, %d of these several nodes, and %d are warned of with twice the GPUs", sized, len(lines), spread, told)
	if sized < 30 || spread < 3 || told < 25 {
		t.Errorf("%d lines need several GPUs, %d several nodes, and %d are warned of with twice the GPUs", sized, spread, told)
	}
}
