package loader

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// settings are the platform team's, with defaults.
func settings() *inputv1alpha1.LoaderSettings {
	in := &inputv1alpha1.ModelInput{ModelLoader: inputv1alpha1.LoaderSettings{Env: []inputv1alpha1.LoaderVariable{{Name: "ADAPTER_MODEL", Value: "theirs"}}}}
	inputv1alpha1.DefaultModel(in)
	return &in.ModelLoader
}

// TestAdapter runs the script with a hub's client that has one repository.
func TestAdapter(t *testing.T) {
	const weights, lora = "adapter_model.safetensors", `{"peft_type": "LORA", "r": 8}`
	model := `acme/"50%&\1$(HOME)`
	done := func(config string) map[string]string {
		return map[string]string{"d/adapter_config.json": config + "\n", "d/" + weights: "w"}
	}
	files := func(config string) map[string]string {
		return map[string]string{"adapter_config.json": config, weights: "w"}
	}
	of, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	base := `"base_model_name_or_path": ` + string(of)
	cases := map[string]struct {
		reason string
		files  map[string]string
		// before is in the claim already.
		before map[string]string
		want   map[string]string
		exit   int
		stderr string
	}{
		"NoBase":    {reason: "The engines' model is added.", files: files(lora), want: done(`{` + base + `, "peft_type": "LORA", "r": 8}`)},
		"OtherBase": {reason: "The engines' model takes the place of the name in a hub.", files: files(`{"base_model_name_or_path":"a\"b","peft_type":"LORA"}`), want: done(`{` + base + `, "former_base_model_name_or_path":"a\"b","peft_type":"LORA"}`)},
		"TwoLines":  {reason: "A line break is white space.", files: files("{\r\n\"base_model_name_or_path\":\n\"x\",\n\"peft_type\": \n\"LORA\"\n}\n"), want: done(`{` + base + `, "former_base_model_name_or_path":"x","peft_type": "LORA"}`)},
		"Number":    {reason: "Whatever was there does not count.", files: files(`{"base_model_name_or_path": 1, "peft_type": "LORA"}`), want: done(`{` + base + `, "former_base_model_name_or_path": 1, "peft_type": "LORA"}`)},
		"Nested":    {reason: "Only the field of the file itself counts.", files: files(`{"peft_type": "LORA", "x": {"base_model_name_or_path": "a"}}`), want: done(`{` + base + `, "peft_type": "LORA", "x": {"former_base_model_name_or_path": "a"}}`)},
		"NoConfig":  {reason: "A whole model is no adapter, and does not fill the claim.", files: map[string]string{"config.json": "{}"}, exit: NoAdapter, stderr: noConfig},
		"NoWeights": {reason: "Nothing could be loaded.", files: map[string]string{"adapter_config.json": lora, "adapter_model.safetensors.index.json": ""}, exit: NoAdapter, stderr: noWeights},
		"NoLoRA":    {reason: "vLLM would not find it.", files: files(`{"peft_type": "IA3"}`), exit: NoAdapter, stderr: noLoRA},
		"TwoTypes":  {reason: "vLLM reads one of them.", files: files(`{"x": {"peft_type": "LORA"}, "peft_type": "IA3"}`), exit: NoAdapter, stderr: noLoRA},
		"Rank":      {reason: "The highest rank that the engines serve.", files: files(`{"peft_type": "LORA", "r" : 16, "lora_alpha": 64}`), want: done(`{` + base + `, "peft_type": "LORA", "r" : 16, "lora_alpha": 64}`)},
		"TooHigh":   {reason: "Engines would refuse all requests for it.", files: files(`{"peft_type": "LORA", "r":17}`), exit: NoAdapter, stderr: noRank},
		"DoRA":      {reason: "Nor would they load it.", files: files(`{"peft_type": "LORA", "use_dora" : true}`), exit: NoAdapter, stderr: noFeature},
		"Bias":      {reason: "Or a bias.", files: files(`{"peft_type": "LORA", "bias":"all"}`), exit: NoAdapter, stderr: noFeature},
		"Modules":   {reason: "Or whole modules.", files: files("{\"peft_type\": \"LORA\", \"modules_to_save\": [\n\"lm_head\"]}"), exit: NoAdapter, stderr: noFeature},
		"Without":   {reason: "PEFT writes these fields in any case.", files: files(`{"peft_type": "LORA", "use_dora": false, "bias": "none", "modules_to_save": null, "a": true}`), want: done(`{` + base + `, "peft_type": "LORA", "use_dora": false, "bias": "none", "modules_to_save": null, "a": true}`)},
		"Empty":     {reason: "An empty list is none.", files: files(`{"peft_type": "LORA", "modules_to_save": [ ], "b": ["c"]}`), want: done(`{` + base + `, "peft_type": "LORA", "modules_to_save": [ ], "b": ["c"]}`)},
		"NoObject":  {reason: "vLLM could not read it.", files: files(`["peft_type": "LORA"]`), exit: NoAdapter, stderr: noObject},
		"Again":     {reason: "A killed loader is taken up again, and what others left behind goes.", files: files(lora), before: map[string]string{".d.pod/adapter_config.json": "{", ".d.other/" + weights: "half"}, want: done(`{` + base + `, "peft_type": "LORA", "r": 8}`)},
		"Slower":    {reason: "What a slower loader left behind goes.", before: map[string]string{"d/adapter_config.json": "{}", ".d.pod/" + weights: "half"}, want: map[string]string{"d/adapter_config.json": "{}"}},
		"There":     {reason: "What is complete is left alone.", files: map[string]string{"other": ""}, before: map[string]string{"d/adapter_config.json": "{}"}, want: map[string]string{"d/adapter_config.json": "{}"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, hub, bin := t.TempDir(), t.TempDir(), t.TempDir()
			write(t, hub, tc.files)
			write(t, claim, tc.before)
			write(t, bin, map[string]string{"hf": "#!/bin/sh\n[ \"$2 $3 $5 $6 $7 $8\" = 'org/name --local-dir --revision main --include adapter_*' ] && cp -R " + hub + "/. \"$4\"\n"})
			l := New(settings())
			if err := l.Adapter("d", Engine{Model: model, MaxRank: 16}, Source{Hub: "org/name", Revision: "main"}, settings()); err != nil {
				t.Fatal(err)
			}
			command := make([]string, 0, len(l.Command))
			for _, w := range l.Command {
				command = append(command, strings.ReplaceAll(w, AdaptersPath, claim))
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Env = append(environment(l.Env, claim), "HOSTNAME=pod", "PATH="+bin+":"+os.Getenv("PATH"))
			stderr := &strings.Builder{}
			cmd.Stderr = stderr
			_ = cmd.Run() // Its exit code is compared below.
			if diff := cmp.Diff(tc.want, read(t, claim), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			got := strings.TrimSuffix(stderr.String(), "\n")
			if exit := cmd.ProcessState.ExitCode(); exit != tc.exit || got != tc.stderr || exit == NoAdapter && !IsReason(got) {
				t.Errorf("%s\nwant exit code %d, %q\ngot %d, %q", tc.reason, tc.exit, tc.stderr, exit, got)
			}
		})
	}
}

// environment is what a container has, as Kubernetes makes it of its variables.
func environment(of []corev1.EnvVar, claim string) []string {
	var all []string
	for _, e := range of {
		all = append(all, e.Name+"="+strings.ReplaceAll(strings.ReplaceAll(e.Value, "$$", "$"), AdaptersPath, claim))
	}
	return all
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns all files below a directory.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
