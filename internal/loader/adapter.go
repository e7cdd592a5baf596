package loader

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// AdaptersPath is where a Job that loads an adapter has the claim, and where engines have it.
const AdaptersPath = "/mnt/adapters"

// NoAdapter is the exit code of a loader that has found no LoRA adapter which the engines can load. Its
// termination message says why. It is EX_DATAERR of sysexits.h.
const NoAdapter = 65

/*
The script that loads an adapter into a directory beside its own, and renames that one once it is complete. A
directory of the adapter's name is thus always a whole adapter.

vLLM loads an adapter whose peft_type is LORA, and whose base_model_name_or_path is what the engine has as its
model (vllm/plugins/lora_resolvers/filesystem_resolver.py). That may be a path where the adapter has a name in
a hub, so the script writes what the engines have. A line break is only white space in JSON, so the script
takes the file as one line.
*/
const (
	adapterBegin = `set -eu
umask 022
if [ -e "$ADAPTER_DIRECTORY" ]; then exit 0; fi
no() {
  echo "$1" >&2
  if [ -w /dev/termination-log ]; then printf '%s' "$1" > /dev/termination-log; fi
  exit 65
}
mkdir -p "$1"
`
	adapterEnd = `
file="$1/adapter_config.json"
[ -f "$file" ] || no "it has no adapter_config.json, so it is no adapter in the format of PEFT"
ls "$1"/adapter_model.* > /dev/null 2>&1 || no "it has no adapter_model.safetensors, so it is no adapter in the format of PEFT"
config=$(tr -d '\r\n' < "$file")
has() { printf '%s\n' "$config" | grep -Eq "$1"; }
has '"peft_type"[[:space:]]*:[[:space:]]*"LORA"' || no "its peft_type is not LORA, and engines load no other adapters"
if has '"base_model_name_or_path"[[:space:]]*:'; then
  edit='s%"base_model_name_or_path"[[:space:]]*:[[:space:]]*("(\\.|[^"\\])*"|null)%"base_model_name_or_path": '"$ADAPTER_MODEL_EDIT"'%g'
else
  edit='s%^[[:space:]]*\{%{"base_model_name_or_path": '"$ADAPTER_MODEL_EDIT"', %'
fi
printf '%s\n' "$config" | sed -E "$edit" > "$file.new"
grep -qF "\"base_model_name_or_path\": $ADAPTER_MODEL" "$file.new" || no "its adapter_config.json has a base_model_name_or_path that is no text"
mv "$file.new" "$file"
mv -T "$1" "$ADAPTER_DIRECTORY"
`
)

// Adapter makes the loader load an adapter into a directory of the claim. The model is the one that engines
// load, as their commands have it. Names are arguments and variables of the script, and no part of it.
func (l *Loader) Adapter(directory, model string, s Source, in *inputv1alpha1.LoaderSettings) error {
	text, err := json.Marshal(model)
	if err != nil {
		return fmt.Errorf("cannot write the name of the model %q: %w", model, err)
	}
	load, from := l.loadFrom(s, in, true)
	l.Command = append([]string{"sh", "-c", adapterBegin + load + adapterEnd, "load", path.Join(AdaptersPath, "."+directory)}, from...)
	l.set("ADAPTER_DIRECTORY", path.Join(AdaptersPath, directory))
	l.set("ADAPTER_MODEL", string(text))
	l.set("ADAPTER_MODEL_EDIT", strings.NewReplacer(`\`, `\\`, `&`, `\&`, `%`, `\%`).Replace(string(text)))
	return nil
}

// set sets a variable. Kubernetes would put other variables in the place of $(NAME).
func (l *Loader) set(name, value string) {
	l.Env = slices.DeleteFunc(l.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	l.Env = append(l.Env, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")})
}
