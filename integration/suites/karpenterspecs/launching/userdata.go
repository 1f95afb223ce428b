package launching

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
)

// ownLabels are labels that Joist's user data sets for the NodeClaims that the specs create, and Karpenter's does not.
var ownLabels = []string{corev1.LabelOSStable, corev1.LabelTopologyRegion, corev1.LabelWindowsBuild}

// ParseUserData returns how an instance with the user data joins the cluster, or the error as text. The specs compare
// this for Karpenter's and Joist's user data, whose texts differ in the order of keys. Karpenter's
// script for Windows has the name of the called script in a variable.
func ParseUserData(text string) any {
	text = strings.ReplaceAll(text, "& $EKSBootstrapScriptFile", `& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"`)
	out, err := userdata.Parse(text)
	if err != nil {
		return err.Error()
	}
	for _, key := range ownLabels {
		delete(out.Labels, key)
	}
	slices.SortFunc(out.Taints, func(a, b corev1.Taint) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect)) })
	return out
}
