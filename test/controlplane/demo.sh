#!/usr/bin/env bash
# Shows the packages at work on the control plane that make up starts: each command, and what it says.
set -euo pipefail
. "$(dirname "$0")/demo-common.sh"

show_packages

heading "Installed with crossplane xpkg install"
show kubectl apply -f package/install/rbac.yaml
show kubectl apply -f package/install/admission.yaml
show kubectl apply -f package/install/function.yaml
if ! kubectl get configurations.pkg.crossplane.io fusioninfer-configuration-inferenceservice >/dev/null 2>&1; then
  show crossplane xpkg install configuration ghcr.io/fusioninfer/configuration-inferenceservice:v0.1.0
fi
show kubectl wait --for=condition=Healthy --timeout=2m functions.pkg.crossplane.io,configurations.pkg.crossplane.io --all
show kubectl wait --for=condition=Established --timeout=1m xrd/inferenceservices.fusioninfer.io
show kubectl get pkg

heading "Ten nodes of a service with prefill and decode apart"
show kubectl get nodes -o 'custom-columns=NODE:.metadata.name,GPUS:.status.allocatable.nvidia\.com/gpu'
show kubectl apply -f example/quickstart/xr.yaml
sleep 1
show kubectl get inferenceservices.fusioninfer.io
show kubectl wait --for=condition=Ready --timeout=2m inferenceservices.fusioninfer.io/deepseek-r1
show kubectl get inferenceservices.fusioninfer.io
show kubectl get leaderworkersets,podgroups,inferencepools,httproutes,gateways
show kubectl get pods -o wide
show crossplane resource trace inferenceservices.fusioninfer.io deepseek-r1
show kubectl get inferenceservices.fusioninfer.io deepseek-r1 -o 'jsonpath={range .status.conditions[*]}{.type}{"\t"}{.status}{"\t"}{.reason}{"\t"}{.message}{"\n"}{end}'

heading "A chat completion"
# The stand-in for a gateway says where it listens on this machine.
show kubectl get gateways -o 'jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.conditions[?(@.type=="Programmed")].message}{"\n"}{end}'
gateway=$(kubectl get gateways -o 'jsonpath={.items[0].status.conditions[?(@.type=="Programmed")].message}')
gateway=${gateway##* }
completion='{"model": "deepseek-ai/DeepSeek-R1", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}'
show curl --silent --show-error --fail-with-body --include "http://$gateway/v1/chat/completions" -H 'Host: deepseek-r1.example.com' -H 'Content-Type: application/json' -d "$completion"
echo
echo
echo "The header x-served-by names the pod that answered. Its routing sidecar had the prompt prefilled elsewhere first."

heading "Look around"
cat <<USAGE
  export KUBECONFIG=$KUBECONFIG
  export PATH=$PWD/.cache/bin:\$PATH

  kubectl describe inferenceservices.fusioninfer.io deepseek-r1
  kubectl patch inferenceservices.fusioninfer.io deepseek-r1 --type=json -p '[{"op": "replace", "path": "/spec/roles/2/replicas", "value": 1}]'
  make down
USAGE
