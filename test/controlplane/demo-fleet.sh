#!/usr/bin/env bash
# Shows services that are placed in three clusters, on the control plane that make up CLUSTERS=3 starts: each command, and what it says.
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

heading "Two services for the US, of which only one fits into us-east"
kubectl create namespace team-a --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl create namespace team-b --dry-run=client -o yaml | kubectl apply -f - >/dev/null
show kubectl apply -f test/controlplane/demo-fleet-services.yaml
show kubectl wait --for=condition=Ready --timeout=2m inferenceservices.fusioninfer.io --all --all-namespaces
show kubectl get inferenceservices.fusioninfer.io --all-namespaces
for s in team-a/llama team-b/qwen; do show kubectl get -n "${s%/*}" inferenceservices.fusioninfer.io "${s#*/}" -o "$placement"; done
show kubectl get inferenceclusters.fusioninfer.io
show kubectl --context cluster-1 get leaderworkersets,pods --all-namespaces -l fusioninfer.io/service
show kubectl --context cluster-2 get leaderworkersets,pods --all-namespaces -l fusioninfer.io/service

heading "The way to llama: one route, weighted over its clusters"
show kubectl get -n team-a httproutes,services,endpointslices
show kubectl get -n team-a httproute llama-fleet -o "$weights"

heading "Where llama runs is drained. No other cluster has enough free capacity: it stays, and its status says so"
home=$(kubectl get -n team-a inferenceservices.fusioninfer.io llama -o 'jsonpath={.status.clusters[?(@.state=="Placed")].name}')
show kubectl patch inferenceclusters.fusioninfer.io "$home" --type=merge -p '{"spec":{"stopPolicy":"Drain","stopMessage":"new kernel"}}'
show kubectl wait -n team-a --for=condition=Placed=false --timeout=1m inferenceservices.fusioninfer.io/llama
show kubectl get -n team-a inferenceservices.fusioninfer.io llama -o "$placement"
show kubectl get -n team-a httproute llama-fleet -o "$weights"

heading "The other service goes, and llama moves: it leaves only when it is ready, and routed, where it goes"
show kubectl delete -n team-b inferenceservices.fusioninfer.io qwen
show kubectl wait -n team-a --for='jsonpath={.status.clusters[?(@.name=="'"$home"'")].state}=NotPlaced' --timeout=2m inferenceservices.fusioninfer.io/llama
show kubectl wait -n team-a --for=condition=Ready --timeout=1m inferenceservices.fusioninfer.io/llama
show kubectl get -n team-a inferenceservices.fusioninfer.io llama -o "$placement"
show kubectl get -n team-a httproute llama-fleet -o "$weights"
show kubectl get inferenceclusters.fusioninfer.io
show kubectl get -n team-a events --field-selector=involvedObject.kind=InferenceService --sort-by=.metadata.creationTimestamp -o 'custom-columns=WHAT:.message'

heading "Look around"
cat <<USAGE
  export KUBECONFIG=$KUBECONFIG
  export PATH=$PWD/.cache/bin:\$PATH

  kubectl get inferenceclusters.fusioninfer.io
  kubectl describe inferenceclusters.fusioninfer.io us-west
  kubectl describe inferenceservices.fusioninfer.io -n team-a llama
  kubectl --context cluster-2 get pods -n team-a
  make down
USAGE
