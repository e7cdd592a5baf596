package loader

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		return map[string]string{"d/adapter_config.json": config, "d/" + weights: "w"}
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
		"NoBase":    {reason: "The engines' model is added.", files: map[string]string{"adapter_config.json": lora, weights: "w"}, want: done(`{` + base + `, "peft_type": "LORA", "r": 8}` + "\n")},
		"OtherBase": {reason: "The engines' model takes the place of the name in a hub.", files: map[string]string{"adapter_config.json": `{"base_model_name_or_path":"a\"b","peft_type":"LORA"}`, weights: "w"}, want: done(`{` + base + `,"peft_type":"LORA"}` + "\n")},
		"TwoLines":  {reason: "A line break is white space.", files: map[string]string{"adapter_config.json": "{\r\n\"base_model_name_or_path\":\n\"x\",\n\"peft_type\": \n\"LORA\"\n}\n", weights: "w"}, want: done(`{` + base + `,"peft_type": "LORA"}` + "\n")},
		"Null":      {reason: "PEFT writes null where it does not know the model.", files: map[string]string{"adapter_config.json": `{"base_model_name_or_path": null, "peft_type": "LORA"}`, weights: "w"}, want: done(`{` + base + `, "peft_type": "LORA"}` + "\n")},
		"Number":    {reason: "What is no text is refused.", files: map[string]string{"adapter_config.json": `{"base_model_name_or_path": 1, "peft_type": "LORA"}`, weights: "w"}, exit: NoAdapter, stderr: "its adapter_config.json has a base_model_name_or_path that is no text\n"},
		"NoConfig":  {reason: "A whole model is no adapter.", files: map[string]string{"config.json": "{}"}, exit: NoAdapter, stderr: "it has no adapter_config.json, so it is no adapter in the format of PEFT\n"},
		"NoWeights": {reason: "Nothing could be loaded.", files: map[string]string{"adapter_config.json": lora}, exit: NoAdapter, stderr: "it has no adapter_model.safetensors, so it is no adapter in the format of PEFT\n"},
		"NoLoRA":    {reason: "vLLM would not find it.", files: map[string]string{"adapter_config.json": `{"peft_type": "IA3"}`, weights: "w"}, exit: NoAdapter, stderr: "its peft_type is not LORA, and engines load no other adapters\n"},
		"Again":     {reason: "A killed loader is taken up again.", files: map[string]string{"adapter_config.json": lora, weights: "w"}, before: map[string]string{".d/adapter_config.json": "{", ".d/" + weights: "half"}, want: done(`{` + base + `, "peft_type": "LORA", "r": 8}` + "\n")},
		"There":     {reason: "What is complete is left alone.", files: map[string]string{"other": ""}, before: map[string]string{"d/adapter_config.json": "{}"}, want: map[string]string{"d/adapter_config.json": "{}"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, hub, bin := t.TempDir(), t.TempDir(), t.TempDir()
			write(t, hub, tc.files)
			write(t, claim, tc.before)
			write(t, bin, map[string]string{"hf": "#!/bin/sh\n[ \"$2 $3 $5 $6\" = 'org/name --local-dir --revision main' ] && cp -R " + hub + "/. \"$4\"\n"})
			l := New(settings())
			if err := l.Adapter("d", model, Source{Hub: "org/name", Revision: "main"}, settings()); err != nil {
				t.Fatal(err)
			}
			command := make([]string, 0, len(l.Command))
			for _, w := range l.Command {
				command = append(command, strings.ReplaceAll(w, AdaptersPath, claim))
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Env = append(environment(l.Env, claim), "PATH="+bin+":"+os.Getenv("PATH"))
			stderr := &strings.Builder{}
			cmd.Stderr = stderr
			_ = cmd.Run() // Its exit code is compared below.
			if tc.exit == 0 {
				if diff := cmp.Diff(tc.want, read(t, claim)); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			} else if _, err := os.Stat(filepath.Join(claim, "d")); err == nil {
				t.Errorf("%s\nthe directory is there all the same", tc.reason)
			}
			if got := cmd.ProcessState.ExitCode(); got != tc.exit || stderr.String() != tc.stderr {
				t.Errorf("%s\nwant exit code %d, %q\ngot %d, %q", tc.reason, tc.exit, tc.stderr, got, stderr)
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
