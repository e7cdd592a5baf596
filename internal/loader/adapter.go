package loader

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// AdaptersPath is where a Job that loads an adapter has the claim, and where engines have it.
const AdaptersPath = "/mnt/adapters"

// NoAdapter is the exit code of a loader that has found no LoRA adapter which the engines can load. Its
// termination message says why. It is EX_DATAERR of sysexits.h.
const NoAdapter = 65

// The reasons for which a loader finds no adapter. Each is its whole last word.
const (
	noConfig  = "it has no adapter_config.json, so it is no adapter in the format of PEFT"
	noWeights = "it has no adapter_model.safetensors, so it is no adapter in the format of PEFT"
	noLoRA    = "its peft_type is not LORA, and engines load no other adapters"
	noObject  = "its adapter_config.json is no object of JSON"
	noFeature = "it has use_dora, bias or modules_to_save, and engines load no adapter with these"
	noRank    = "its rank is above --max-lora-rank of the engines, which is 16 by default"
)

// IsReason tells whether a text is a reason for which a loader finds no adapter.
func IsReason(s string) bool {
	return slices.Contains([]string{noConfig, noWeights, noLoRA, noObject, noRank, noFeature}, s)
}

/*
The script that loads an adapter into a directory beside its own, and renames that one once it is complete. A
directory of the adapter's name is thus always a whole adapter. Each pod has a directory of its own, because a pod
that is replaced may still write for a moment. Only files of adapters are loaded: a whole model would fill the
claim. Pods of another user, and of the same group, take over what is left behind.

vLLM loads an adapter whose peft_type is LORA, and whose base_model_name_or_path is what the engine has as its
model (vllm/plugins/lora_resolvers/filesystem_resolver.py). That may be a path where the adapter has a name in
a hub, so the script writes what the engines have, and gives what was there another name. Python goes by the last
one of several fields of one name. A line break is only white space in JSON, so the script takes the file as one
line.
*/
const (
	adapterBegin = `set -eu
umask 002
hidden=$1
shift
if [ -e "$ADAPTER_DIRECTORY" ]; then
  rm -rf "$hidden".*
  exit 0
fi
set -- "$hidden.${HOSTNAME:-0}" "$@"
no() {
  echo "$1" >&2
  if [ -w /dev/termination-log ]; then printf '%s' "$1" > /dev/termination-log; fi
  rm -rf "$hidden".*
  exit 65
}
mkdir -p "$1"
`
	hubFilesOfAdapters    = ` --include 'adapter_*'`
	bucketFilesOfAdapters = ` --exclude '*' --include 'adapter_*'`

	adapterEnd = `
file="$1/adapter_config.json"
[ -f "$file" ] || no "` + noConfig + `"
[ -f "$1/adapter_model.safetensors" ] || [ -f "$1/adapter_model.bin" ] || [ -f "$1/adapter_model.pt" ] || no "` + noWeights + `"
config=$(tr -d '\r\n' < "$file")
case "$(printf '%s\n' "$config" | grep -Eo '"peft_type"[[:space:]]*:[[:space:]]*("[A-Z]*")?' | tr -d ' \t')" in
'"peft_type":"LORA"') ;;
*) no "` + noLoRA + `" ;;
esac
! printf '%s\n' "$config" | grep -Eq '` + refused + `' || no "` + noFeature + `"
for rank in $(printf '%s\n' "$config" | grep -Eo '"r"[[:space:]]*:[[:space:]]*[0-9]{1,9}' | grep -Eo '[0-9]+$'); do
  [ "$ADAPTER_MAX_RANK" -eq 0 ] || [ "$rank" -le "$ADAPTER_MAX_RANK" ] || no "` + noRank + `"
done
printf '%s\n' "$config" | sed -E \
  -e 's%"base_model_name_or_path"%"former_base_model_name_or_path"%g' \
  -e 's%^[[:space:]]*\{%{"base_model_name_or_path": '"$ADAPTER_MODEL_EDIT"', %' > "$file.new"
grep -qF "{\"base_model_name_or_path\": $ADAPTER_MODEL, " "$file.new" || no "` + noObject + `"
mv "$file.new" "$file"
mv -T "$1" "$ADAPTER_DIRECTORY"
rm -rf "$hidden".*
`
)

// refused matches what vLLM refuses in an adapter_config.json (_validate_features and validate_legal in
// vllm/lora/peft_helper.py). Every request for such an adapter would fail.
const refused = `"use_dora"[[:space:]]*:[[:space:]]*true` +
	`|"bias"[[:space:]]*:[[:space:]]*"(all|lora_only)"` +
	`|"modules_to_save"[[:space:]]*:[[:space:]]*\[[[:space:]]*[^][:space:]]`

// An Engine is what adapters have to fit.
type Engine struct {
	// Model is the one that the engines load, as their commands have it.
	Model string
	// MaxRank is the highest rank that they serve. It is 0 if it is not known.
	MaxRank int32
}

// Adapter makes the loader load an adapter into a directory of the claim. Names are arguments and variables of
// the script, and no part of it.
func (l *Loader) Adapter(directory string, of Engine, s Source, in *inputv1alpha1.LoaderSettings) error {
	text, err := json.Marshal(of.Model)
	if err != nil {
		return fmt.Errorf("cannot write the name of the model %q: %w", of.Model, err)
	}
	load, from := l.loadFrom(s, in, true)
	if s.Bucket != "" {
		load += bucketFilesOfAdapters
	} else {
		load += hubFilesOfAdapters
	}
	l.Command = append([]string{"sh", "-c", adapterBegin + load + adapterEnd, "load", path.Join(AdaptersPath, "."+directory)}, from...)
	l.set("ADAPTER_DIRECTORY", path.Join(AdaptersPath, directory))
	l.set("ADAPTER_MAX_RANK", strconv.Itoa(int(of.MaxRank)))
	l.set("ADAPTER_MODEL", string(text))
	l.set("ADAPTER_MODEL_EDIT", strings.NewReplacer(`\`, `\\`, `&`, `\&`, `%`, `\%`).Replace(string(text)))
	return nil
}

// set sets a variable. Kubernetes would put other variables in the place of $(NAME).
func (l *Loader) set(name, value string) {
	l.Env = slices.DeleteFunc(l.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	l.Env = append(l.Env, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")})
}
