#!/usr/bin/env bash
# Shows services that are placed in three clusters, and requests to one of them while it moves, on the control plane that
# make up CLUSTERS=3 starts: each command, and what it says.
set -euo pipefail
. "$(dirname "$0")/demo-common.sh"
kubectl get clusterproviderconfigs.kubernetes.m.crossplane.io cluster-3 >/dev/null 2>&1 || {
  echo "what is up has no three remote clusters: end it with make down" >&2
  exit 1
}

# A gateway that all routes may use.
gateway() {
  cat <<GATEWAY
apiVersion: v1
kind: Namespace
metadata: {name: gateway-system}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: $1, namespace: gateway-system}
spec:
  gatewayClassName: stand-in
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
GATEWAY
}
placement='jsonpath={range .status.clusters[*]}{.name}{"\t"}{.state}{"\t"}{.reason}{"\t"}{.message}{"\n"}{end}'
weights='jsonpath={range .spec.rules[*].backendRefs[*]}{.weight}{"\t"}{.name}{"\n"}{end}'

show_placement() { show kubectl get -n team-a inferenceservices.fusioninfer.io llama -o "$placement"; }
show_weights() { show kubectl get -n team-a httproute llama-fleet -o "$weights"; }
# What came of the requests since the last time, and with sum, since the last sum.
count() {
  local line
  echo "${1:-}" >&"${requests[1]}"
  IFS= read -r line <&"${requests[0]}"
  printf '  %s%s\n' "${2:-}" "$line"
}
# kubectl wait, which says about every ten seconds what came of the requests meanwhile. Counting may take two of them: requests
# that are under way are waited for. Another ten seconds follow, and the sum.
wait_and_count() {
  local met=''
  say kubectl wait "$@" --timeout=3m
  for _ in {1..18}; do
    if kubectl wait "$@" --timeout=8s 2>/dev/null; then
      met=yes
      break
    fi
    count
  done
  if [[ ! $met ]]; then kubectl wait "$@" --timeout=1s; fi
  count
  sleep 8
  count
  count sum 'together, '
}

show_packages

heading "Installed with a gateway for all services, which is set in a copy of the Composition"
show kubectl apply -f package/install/rbac.yaml -f package/install/function.yaml
mine=.cache/controlplane/package
rm -rf "$mine" && cp -r package/xr "$mine"
show sed -i 's|^      missingKinds: Skip$|&\n      fleet: {parentRefs: [{name: fleet-gateway, namespace: gateway-system}]}\n      routes: {allowedParentRefs: [{namespace: gateway-system}], allowedHostnames: ["*.example.com"]}|' "$mine/composition.yaml"
show kubectl apply -f "$mine/definition.yaml" -f "$mine/cluster-definition.yaml" -f "$mine/composition.yaml" -f "$mine/cluster-composition.yaml"
show kubectl wait --for=condition=Healthy --timeout=2m functions.pkg.crossplane.io --all
show kubectl wait --for=condition=Established --timeout=1m xrd --all
gateway fleet-gateway | kubectl apply -f - >/dev/null
for c in cluster-1 cluster-2 cluster-3; do gateway inference-gateway | kubectl --context "$c" apply -f - >/dev/null; done

heading "Three clusters"
show kubectl apply -f test/controlplane/demo-fleet-clusters.yaml
show kubectl wait --for=condition=Ready --timeout=2m inferenceclusters.fusioninfer.io --all
show kubectl get inferenceclusters.fusioninfer.io -L region

heading "llama is placed in the first cluster of the US that has the capacity: us-east, where it needs both nodes"
kubectl create namespace team-a --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl create namespace team-b --dry-run=client -o yaml | kubectl apply -f - >/dev/null
show kubectl apply -f test/controlplane/demo-fleet-llama.yaml
show kubectl wait -n team-a --for=condition=Ready --timeout=2m inferenceservices.fusioninfer.io/llama
show kubectl get -n team-a inferenceservices.fusioninfer.io
show_placement

heading "qwen may run in the US, too. Only us-west has free capacity"
show kubectl apply -f test/controlplane/demo-fleet-qwen.yaml
show kubectl wait -n team-b --for=condition=Ready --timeout=2m inferenceservices.fusioninfer.io/qwen
show kubectl get -n team-b inferenceservices.fusioninfer.io qwen -o "$placement"
show kubectl get inferenceclusters.fusioninfer.io
show kubectl --context cluster-1 get leaderworkersets,pods --all-namespaces -l fusioninfer.io/service
show kubectl --context cluster-2 get leaderworkersets,pods --all-namespaces -l fusioninfer.io/service

heading "The way to llama: one route, weighted over its clusters"
show kubectl get -n team-a httproutes,services,endpointslices
show_weights
# The stand-in for a gateway says where it listens on this machine.
listens='jsonpath={.status.conditions[?(@.type=="Programmed")].message}{"\n"}'
show kubectl get -n gateway-system gateways fleet-gateway -o "$listens"
gateway=$(kubectl get -n gateway-system gateways fleet-gateway -o "$listens")
gateway=${gateway##* }

heading "A request, and from then on ten a second until the end"
completion='{"model": "meta-llama/Llama-3.3-70B-Instruct", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}'
send=(controlplane requests --gateway "$gateway" --host llama.example.com --model meta-llama/Llama-3.3-70B-Instruct us-east=cluster-1 us-west=cluster-2)
coproc requests { "${send[@]}"; }
IFS= read -r first <&"${requests[0]}"
show curl --silent --show-error --fail-with-body --include "http://$gateway/v1/chat/completions" -H 'Host: llama.example.com' -H 'Content-Type: application/json' -d "$completion"
echo
echo "The header x-served-by names the pod that answered, and the first via its cluster: cluster-1 is us-east, cluster-2 is us-west."
say "${send[@]}"
echo "$first"
sleep 8
count sum

heading "us-east is drained. No other cluster has enough free capacity: llama stays, and its status says so"
show kubectl patch inferenceclusters.fusioninfer.io us-east --type=merge -p '{"spec":{"stopPolicy":"Drain","stopMessage":"new kernel"}}'
show kubectl wait -n team-a --for=condition=Placed=false --timeout=1m inferenceservices.fusioninfer.io/llama
show_placement
sleep 8
count sum

heading "qwen gives up a node, and llama moves: it leaves us-east only when it is ready in us-west, and the route leads there"
show kubectl patch -n team-b inferenceservices.fusioninfer.io qwen --type=json -p '[{"op":"replace","path":"/spec/roles/0/replicas","value":1}]'
wait_and_count -n team-a --for='jsonpath={.status.clusters[?(@.name=="us-east")].state}=NotPlaced' inferenceservices.fusioninfer.io/llama
show_placement
show_weights
show kubectl get inferenceclusters.fusioninfer.io

heading "us-east is taken back, and free once the old pods of llama have ended. What runs in us-west stays there"
show kubectl patch inferenceclusters.fusioninfer.io us-east --type=merge -p '{"spec":{"stopPolicy":"None","stopMessage":null}}'
wait_and_count --for='jsonpath={.status.freeDeviceCount}=16' inferenceclusters.fusioninfer.io/us-east
show_placement

heading "us-west is cut off: neither the control plane nor the fleet's gateway reaches it"
cat <<'CUT'
The only copy of llama still runs there, but no request gets to it, and those under way are cut. So requests fail until llama runs in
us-east and the route leads there. First the control plane has to notice, which takes up to 40 seconds. Then llama waits for
failoverAfterSeconds: 10 here, and 300 by default.

CUT
trap 'controlplane reconnect cluster-2' EXIT
show controlplane cut-off cluster-2
wait_and_count -n team-a --for='jsonpath={.status.clusters[?(@.name=="us-east")].weight}=2' inferenceservices.fusioninfer.io/llama
show_placement
show_weights
show kubectl get inferenceclusters.fusioninfer.io

heading "us-west is back. Its old copy of llama is removed, and what runs in us-east stays there"
trap - EXIT
show controlplane reconnect cluster-2
wait_and_count --for='jsonpath={.status.freeDeviceCount}=16' inferenceclusters.fusioninfer.io/us-west
show_placement
show kubectl get inferenceclusters.fusioninfer.io

if [[ -e .cache/controlplane/prometheus.txt ]]; then
  heading "The dashboard of the fleet, drawn with what Prometheus knows"
  show controlplane pictures --during 6m package/monitoring/dashboards/fleet.json
fi

heading "Look around"
cat <<USAGE
  export KUBECONFIG=$KUBECONFIG
  export PATH=$PWD/.cache/bin:\$PATH

  kubectl get inferenceclusters.fusioninfer.io
  kubectl describe inferenceclusters.fusioninfer.io us-east
  kubectl describe inferenceservices.fusioninfer.io -n team-a llama
  kubectl --context cluster-1 get pods -n team-a
  make down
USAGE
