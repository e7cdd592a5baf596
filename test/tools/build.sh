#!/usr/bin/env bash
# Builds programs that the tests run, from the modules beside this file and others of test/, into .cache/bin at the root of the repository.
# A program is built anew only when its go.mod, its go.sum, its own sources here or the version of Go changed.
#
#   test/tools/build.sh NAME...
#   test/tools/build.sh --list    # without those that only autoscaling needs
set -euo pipefail
cd "$(dirname "$0")"
bin=../../.cache/bin

# NAME MODULE PACKAGE. Names of the same package are links to one program, called after its module.
programs() {
  cat <<'EOF'
etcd etcd go.etcd.io/etcd/server/v3
kube-apiserver kube .
kube-controller-manager kube .
kube-scheduler kube .
kubectl kube .
kwok kwok sigs.k8s.io/kwok/cmd/kwok
lws-manager lws sigs.k8s.io/lws/cmd
kueue-manager kueue sigs.k8s.io/kueue/cmd/kueue
volcano-scheduler volcano volcano.sh/volcano/cmd/scheduler
volcano-controller-manager volcano volcano.sh/volcano/cmd/controller-manager
volcano-webhook-manager volcano volcano.sh/volcano/cmd/webhook-manager
crossplane-core crossplane github.com/crossplane/crossplane/v2/cmd/crossplane
crossplane cli github.com/crossplane/cli/v2/cmd/crossplane
provider-kubernetes provider-kubernetes github.com/crossplane-contrib/provider-kubernetes/cmd/provider
pd-sidecar llm-d github.com/llm-d/llm-d-inference-scheduler/cmd/pd-sidecar
llm-d-picker llm-d ./picker
epp ../epp/v1.5.0 sigs.k8s.io/gateway-api-inference-extension/cmd/epp
engine ../controlplane ./engine
packager ../packages ./.
EOF
}

# Nobody but make test-autoscaling and make demo-scaling needs these. They take a quarter of an hour to build.
autoscalers() {
  cat <<'EOF'
keda-operator keda github.com/kedacore/keda/v2/cmd/operator
keda-adapter keda github.com/kedacore/keda/v2/cmd/adapter
prometheus-adapter prometheus-adapter sigs.k8s.io/prometheus-adapter/cmd/adapter
prometheus prometheus github.com/prometheus/prometheus/cmd/prometheus
kube-state-metrics kube-state-metrics k8s.io/kube-state-metrics/v2
EOF
}

# What a program says about its version is set when it is linked. Nobody debugs these programs, and they link sooner without what a
# debugger reads.
ldflags() {
  printf -- '-s -w '
  case "$1" in
  kube)
    local version
    version=$(cd kube && go list -m -f '{{.Version}}' k8s.io/kubernetes)
    local minor=${version#v1.}
    printf -- '-X k8s.io/component-base/version.gitVersion=%s -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=%s' "$version" "${minor%%.*}"
    ;;
  crossplane)
    crossplane_version crossplane github.com/crossplane/crossplane/v2
    # The RBAC manager has no flag for the address of its metrics, and several may run on one machine.
    printf -- ' -X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0'
    ;;
  cli) crossplane_version cli github.com/crossplane/cli/v2 ;;
  esac
}

crossplane_version() {
  printf -- '-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version=%s' "$(cd "$1" && go list -m -f '{{.Version}}' "$2")"
}

# Prometheus finds its targets in Kubernetes only, so it needs no client of any cloud.
tags() {
  case "$1" in
  prometheus) printf 'remove_all_sd,enable_kubernetes_sd' ;;
  esac
}

build() {
  local name=$1 link= module package stamp flags tags sources=()
  read -r _ module package < <({ programs; autoscalers; } | grep "^$name ") || {
    echo "test/tools/build.sh: no program $name: see --list" >&2
    return 1
  }
  if [[ $package == . ]]; then
    link=$name name=$module sources=("$module"/*.go)
  elif [[ $package == ./* ]]; then
    sources=("$module/$package"/*.go)
  fi
  flags=$(ldflags "$module")
  tags=$(tags "$module")
  stamp=$(cat "$module/go.mod" "$module/go.sum" "${sources[@]}" <(go env GOVERSION GOOS GOARCH; echo "$package $flags${tags:+ $tags}") | git hash-object --stdin)
  if [[ ! -x $bin/$name || $(cat "$bin/$name.stamp" 2>/dev/null) != "$stamp" ]]; then
    echo "building $name; the first time takes minutes" >&2
    # Built beside its place and moved there, so that nobody runs half of it.
    go -C "$module" build -buildvcs=false -tags "$tags" -ldflags "$flags" -o "$(cd "$bin" && pwd)/$name.new.$$" "$package"
    mv "$bin/$name.new.$$" "$bin/$name"
    echo "$stamp" >"$bin/$name.stamp.new.$$"
    mv "$bin/$name.stamp.new.$$" "$bin/$name.stamp"
  fi
  if [[ -n $link && $(readlink "$bin/$link") != "$name" ]]; then
    ln -sfn "$name" "$bin/$link"
  fi
}

if [[ ${1:-} == --list ]]; then
  programs | cut -d' ' -f1
  exit
fi
mkdir -p "$bin"
# Those of Kubernetes are one program, which is built beside the others. A build works on one core for some of its time: it reads
# modules, and links.
kubernetes=() others=()
for name in "$@"; do
  case "$name" in
  kube*) kubernetes+=("$name") ;;
  *) others+=("$name") ;;
  esac
done
for name in "${kubernetes[@]}"; do build "$name"; done &
lanes=($!)
for name in "${others[@]}"; do build "$name"; done &
lanes+=($!)
trap 'kill "${lanes[@]}" 2>/dev/null' INT TERM
failed=0
for lane in "${lanes[@]}"; do wait "$lane" || failed=1; done
exit $failed
