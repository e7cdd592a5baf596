# What the demos have in common; each of them reads it. Where the control plane is, how a heading looks, and how a command is
# shown with what it says.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export KUBECONFIG=$PWD/.cache/controlplane/kubeconfig PATH=$PWD/.cache/bin:$PATH
registry=$(cat .cache/controlplane/registry.txt)

bold='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi
heading() { printf '\n%s# %s%s\n\n' "$bold" "$*" "$plain"; }
# A command as a user would type it.
say() {
  local arg line='$'
  for arg in "$@"; do
    if [[ $arg =~ [^A-Za-z0-9_./:=,@-] ]]; then arg="'$arg'"; fi
    line+=" $arg"
  done
  printf '%s%s%s\n' "$bold" "$line" "$plain"
}
# The command, then its output.
show() {
  say "$@"
  "$@"
}
show_packages() {
  heading "The packages, built from this tree and pushed to the registry of the control plane"
  show make --no-print-directory packages push-packages VERSION=v0.1.0 ARCH="$(go env GOARCH)" REGISTRY="$registry"
}
