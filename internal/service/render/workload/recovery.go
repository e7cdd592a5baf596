package workload

import (
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// restartPolicy is what LeaderWorkerSet does when a pod of a replica fails. It is part of
// LeaderWorkerSet's revision of the template, so a change of it replaces the pods. The policy
// InferGroupRestart starts from the same as RoleRestart, so that users can change between them.
func restartPolicy(r *plan.Role) lws.RestartPolicyType {
	switch r.Recovery {
	case v1alpha1.RecoverRoleAfterStart:
		return lws.RecreateGroupAfterStart
	case v1alpha1.RecoverPod:
		return lws.NoneRestartPolicy
	case v1alpha1.RecoverRole, v1alpha1.RecoverGroup:
	}
	return lws.RecreateGroupOnPodRestart
}

// noteRecovery writes what a replica notes of failures in its group.
func noteRecovery(metadata *structpb.Struct, r plan.Recovery) {
	annotate(metadata, naming.AnnotationGroupFailures, numberText(r.Failures))
	annotate(metadata, naming.AnnotationRestartedFor, numberText(r.Restart))
	annotate(metadata, naming.AnnotationLeader, r.Leader.Text())
}

// numberText is a number as it is noted. 0 means none, and is left out.
func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// annotate sets an annotation, unless it is empty.
func annotate(metadata *structpb.Struct, name, value string) {
	if value != "" {
		kube.CopyChild(metadata, "annotations").Fields[name] = structpb.NewStringValue(value)
	}
}
