#!/usr/bin/env bash
# Shows a role that follows its load, and the dashboards, on the control plane that make up AUTOSCALING=true starts: each command,
# and what it says.
set -euo pipefail
. "$(dirname "$0")/demo-common.sh"
[[ -e .cache/controlplane/prometheus.txt ]] || {
  echo "what is up has no Prometheus: end it with make down" >&2
  exit 1
}
prometheus=$(cat .cache/controlplane/prometheus.txt)

# What came of the requests that a process has sent, since the last time.
count() {
  local line
  echo >&"$1"
  IFS= read -r line <&"$2"
  printf '  %s: %s\n' "$3" "$line"
}
# kubectl wait for so many decode replicas, which shows every half a minute what there is.
wait_for_decode() {
  local met=''
  say kubectl wait -n team-a --for="jsonpath={.status.replicas}=$1" --timeout=6m inferenceroles.fusioninfer.io/chat-decode
  for _ in {1..12}; do
    if kubectl wait -n team-a --for="jsonpath={.status.replicas}=$1" --timeout=30s inferenceroles.fusioninfer.io/chat-decode 2>/dev/null; then
      met=yes
      break
    fi
    kubectl get -n team-a horizontalpodautoscalers --no-headers | sed 's/^/  /'
  done
  if [[ ! $met ]]; then kubectl wait -n team-a --for="jsonpath={.status.replicas}=$1" --timeout=1s inferenceroles.fusioninfer.io/chat-decode; fi
}

show_packages

heading "Installed with PodMonitors and this Prometheus, which are set in a copy of the Composition"
show kubectl apply -f package/install/rbac.yaml -f package/install/function.yaml
mine=.cache/controlplane/package
rm -rf "$mine" && cp -r package/xr "$mine"
show sed -i "s|^      missingKinds: Skip\$|&\n      monitoring: {podMonitors: {interval: 2s}}\n      scaling: {prometheus: {serverAddress: \"$prometheus\"}, pollingSeconds: 5}|" "$mine/composition.yaml"
show kubectl apply -f "$mine/definition.yaml" -f "$mine/role-definition.yaml" -f "$mine/composition.yaml" -f "$mine/role-composition.yaml"
show kubectl wait --for=condition=Healthy --timeout=2m functions.pkg.crossplane.io --all
show kubectl wait --for=condition=Established --timeout=1m xrd --all

heading "A service with prefill and decode. Decode is to have one replica for every 5 requests that run"
kubectl create namespace team-a --dry-run=client -o yaml | kubectl apply -f - >/dev/null
show grep -A8 'name: decode' test/controlplane/demo-scaling-chat.yaml
show kubectl apply -f test/controlplane/demo-scaling-chat.yaml
show kubectl wait -n team-a --for=condition=Ready --timeout=3m inferenceservices.fusioninfer.io/chat
show kubectl get -n team-a inferenceservices.fusioninfer.io,inferenceroles.fusioninfer.io,scaledobjects,horizontalpodautoscalers,podmonitors

heading "Five requests a second"
listens='jsonpath={.items[0].status.conditions[?(@.type=="Programmed")].message}'
gateway=$(kubectl get -n team-a gateways -o "$listens")
gateway=${gateway##* }
send=(controlplane requests --gateway "$gateway" --host chat.example.com --model Qwen/Qwen3-32B)
coproc base { "${send[@]}" --every 200ms; }
say "${send[@]}" --every 200ms
IFS= read -r line <&"${base[0]}"
echo "$line"
sleep 45
count "${base[1]}" "${base[0]}" "5 a second"
show kubectl get -n team-a inferenceroles.fusioninfer.io

heading "Twenty requests a second: decode grows, and prefill does not"
more=.cache/controlplane/more
rm -f "$more.in" "$more.out" && mkfifo "$more.in" "$more.out"
"${send[@]}" --every 66ms <"$more.in" >"$more.out" &
sender=$!
exec 8>"$more.in" 9<"$more.out"
say "${send[@]}" --every 66ms
IFS= read -r line <&9
echo "$line"
wait_for_decode 3
show kubectl get -n team-a inferenceroles.fusioninfer.io,horizontalpodautoscalers
show kubectl get -n team-a pods -L fusioninfer.io/role-name
sleep 30
count "${base[1]}" "${base[0]}" "5 a second"
count 8 9 "15 a second"

heading "Five requests a second: decode shrinks, and each replica answers what it has before it ends"
exec 8>&-
wait "$sender"
exec 9<&-
rm "$more.in" "$more.out"
wait_for_decode 1
sleep 10
count "${base[1]}" "${base[0]}" "5 a second"
show kubectl get -n team-a inferenceroles.fusioninfer.io

heading "The dashboards of package/monitoring, drawn with what Prometheus knows"
show controlplane pictures --during 4m --set namespace=team-a --set inferenceservice=chat package/monitoring/dashboards/service.json package/monitoring/dashboards/function.json

heading "Look around"
cat <<USAGE
  export KUBECONFIG=$KUBECONFIG
  export PATH=$PWD/.cache/bin:\$PATH

  kubectl describe inferenceservices.fusioninfer.io -n team-a chat
  kubectl get -n team-a scaledobjects chat-decode -o yaml
  make down

Prometheus is at $prometheus.
USAGE
