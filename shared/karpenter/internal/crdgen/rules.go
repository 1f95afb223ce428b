package main

import (
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Patterns from Kubernetes and Karpenter.
const (
	qualifiedName = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	labelValue    = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// oldReason allows the empty reasons of claims from before v1.
	oldReason = `^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$`
)

func manifests() []manifest {
	return []manifest{
		{"karpenter.sh_nodepools.yaml", "karpenter.sh_nodepools.yaml", nodePool()},
		{"karpenter.sh_nodeclaims.yaml", "karpenter.sh_nodeclaims.yaml", nodeClaim()},
		{"karpenter.sh_ec2nodeclasses.yaml", "karpenter.k8s.aws_ec2nodeclasses.yaml", nodeClass()},
		{"karpenter.sh_nodeoverlays.yaml", "karpenter.sh_nodeoverlays.yaml", nodeOverlay()},
		{"karpenter.sh_capacitybuffers.yaml", "autoscaling.x-k8s.io_capacitybuffers.yaml", capacityBuffer()},
	}
}

func nodePool() []edit {
	const spec, labels = "spec.template.spec", "spec.template.metadata.labels"
	edits := append(common(), taints(spec)...)
	edits = append(edits, requirements(spec, restrictedDomain, restrictedPool, restrictedHost, restrictedAWS())...)
	return append(edits,
		setKeywords(labels, validations(
			overKeys(restrictedDomain), overKeys(restrictedPool), overKeys(restrictedHost), overKeys(restrictedAWSLabels()))),
		setKeywords(labels+"{}", node{"maxLength": karpenter.LabelValueMax, "pattern": labelValue}),
	)
}

func nodeClaim() []edit {
	edits := append(common(), taints("spec")...)
	edits = append(edits, requirements("spec", restrictedDomain, restrictedHost, restrictedAWS())...)
	return append(edits,
		removeKeywords("status.conditions[].reason", "minLength"),
		setKeywords("status.conditions[].reason", node{"pattern": oldReason}),
		setKeywords("status.conditions[]", node{"required": []any{"lastTransitionTime", "status", "type"}}),
	)
}

func nodeClass() []edit {
	return append(common(), regroup(karpenter.AWSGroup), removeDescription("status.amis[].requirements[]"))
}

func nodeOverlay() []edit {
	edits := append(common(), version(karpenter.OverlayVersion))
	return append(edits, requirements("spec", restrictedDomain, restrictedHost, restrictedOverlay())...)
}

func capacityBuffer() []edit {
	return append(common(), regroup(karpenter.BufferGroup), version(karpenter.BufferVersion))
}

func common() []edit {
	return []edit{removeDescription("apiVersion"), removeDescription("kind"), removeDescription("status.conditions[]")}
}

func taints(spec string) []edit {
	var edits []edit
	for _, field := range []string{"taints", "startupTaints"} {
		at := spec + "." + field + "[]"
		edits = append(edits,
			removeDescription(at),
			setKeywords(at+".key", node{"minLength": 1, "pattern": qualifiedName}),
			setKeywords(at+".value", node{"pattern": qualifiedName}),
			setKeywords(at+".effect", node{"enum": []any{"NoSchedule", "PreferNoSchedule", "NoExecute"}}),
		)
	}
	return edits
}

// requirements sets the length and pattern of each value. Karpenter's manifests set them on the list of values, where
// API servers ignore them.
func requirements(spec string, rules ...rule) []edit {
	at := spec + ".requirements[]"
	return []edit{
		setKeywords(at+".key", node{"maxLength": karpenter.LabelKeyMax, "pattern": qualifiedName}),
		setKeywords(at+".key", validations(rules...)),
		setKeywords(at+".operator", node{"enum": []any{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}}),
		setKeywords(at+".values[]", node{"maxLength": karpenter.LabelValueMax, "pattern": labelValue}),
	}
}

// rule is a condition on a label key, written as KEY, with the message if it fails.
type rule struct{ message, condition string }

var (
	restrictedDomain = domain(karpenter.Group, karpenter.CapacityTypeLabelKey, karpenter.NodePoolLabelKey)
	restrictedPool   = other(karpenter.NodePoolLabelKey)
	restrictedHost   = other("kubernetes.io/hostname")
)

func restrictedAWS() rule {
	return domain(karpenter.AWSGroup, awsKeys(karpenter.LabelCapacityReservationInterruptible)...)
}

// restrictedAWSLabels names one label twice, as Karpenter does, because a test compares the texts.
func restrictedAWSLabels() rule {
	twice := karpenter.LabelCapacityReservationInterruptible
	return domain(karpenter.AWSGroup, awsKeys(twice, twice)...)
}

// restrictedOverlay allows only the labels that are known before a launch from the instance type alone.
func restrictedOverlay() rule {
	later := []string{
		karpenter.LabelInstanceTenancy, karpenter.LabelCapacityReservationID, karpenter.LabelCapacityReservationType,
		karpenter.LabelCapacityReservationInterruptible, karpenter.LabelPlacementGroupID, karpenter.LabelPlacementGroupPartition,
	}
	keys := slices.DeleteFunc(karpenter.AWSLabels(), func(key string) bool { return slices.Contains(later, key) })
	return domain(karpenter.AWSGroup, append([]string{karpenter.LabelEC2NodeClass}, keys...)...)
}

// awsKeys returns the allowed labels of the AWS domain: the well-known ones and the class's name, which the schema
// allows. The class's name and repeats of the interruptible label are in Karpenter's position.
func awsKeys(interruptible ...string) []string {
	var keys []string
	for _, key := range karpenter.AWSLabels() {
		if key != karpenter.LabelCapacityReservationInterruptible {
			keys = append(keys, key)
			continue
		}
		keys = append(keys, interruptible...)
		keys = append(keys, karpenter.LabelEC2NodeClass)
	}
	return keys
}

func domain(name string, free ...string) rule {
	return rule{
		`label domain "` + name + `" is restricted`,
		`KEY in ["` + strings.Join(free, `", "`) + `"] || !KEY.find("^([^/]+)").endsWith("` + name + `")`,
	}
}

func other(key string) rule {
	return rule{`label "` + key + `" is restricted`, `KEY != "` + key + `"`}
}

// overKeys turns a rule on a key into one on all keys of a map.
func overKeys(r rule) rule {
	return rule{r.message, "self.all(x, " + strings.ReplaceAll(r.condition, "KEY", "x") + ")"}
}

func validations(rules ...rule) node {
	var list []any
	for _, r := range rules {
		list = append(list, node{"message": r.message, "rule": strings.ReplaceAll(r.condition, "KEY", "self")})
	}
	return node{"x-kubernetes-validations": list}
}
