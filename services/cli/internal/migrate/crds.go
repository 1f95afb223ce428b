package migrate

import (
	"fmt"
	"slices"
	"strings"
)

// requiredCRDs are the kinds that both controllers need, and legacyCRDs those of Karpenter before v1beta1.
var (
	requiredCRDs = []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"}
	legacyCRDs   = []string{"provisioners.karpenter.sh", "machines.karpenter.sh", "awsnodetemplates.karpenter.k8s.aws"}
)

const currentVersion = "v1"

// checkCRDs checks that the kinds exist in v1 and that no object is stored in an older version.
func checkCRDs(f MigrationFacts) MigrationStep {
	var absent, old, outdated, legacy []string
	for _, name := range requiredCRDs {
		i := slices.IndexFunc(f.CRDs, func(c CRD) bool { return c.Name == name })
		if i < 0 || !slices.Contains(f.CRDs[i].Versions, currentVersion) {
			absent = append(absent, "crd/"+name)
			continue
		}
		if slices.ContainsFunc(f.CRDs[i].Stored, func(v string) bool { return v != currentVersion }) {
			old = append(old, "crd/"+name)
		}
		if len(f.CRDs[i].Missing) > 0 {
			outdated = append(outdated, "crd/"+name)
		}
	}
	for _, c := range f.CRDs {
		if slices.Contains(legacyCRDs, c.Name) {
			legacy = append(legacy, "crd/"+c.Name)
		}
	}
	const install = "helm upgrade --install joist-crd with --take-ownership (Helm 3.17 or newer)"
	switch {
	case len(absent) > 0:
		return blocked("the API server does not serve the version v1 of these kinds", install, absent...)
	case len(old) > 0:
		return blocked("objects may be stored in versions before v1 ("+formatStored(f.CRDs)+"): the API server cannot read them without Karpenter's conversion webhook",
			formatStorageMigration(old), old...)
	case len(outdated) > 0:
		return ready("the definitions are from an older Karpenter: the API server drops fields that Joist knows ("+formatMissing(f.CRDs)+")", install, outdated...)
	case len(legacy) > 0:
		return ready("kinds of Karpenter before 0.33 remain; Joist does not read them", "convert their objects with joist convert if nodes of them still run, then kubectl delete "+strings.ReplaceAll(strings.Join(legacy, " "), "crd/", "crd "), legacy...)
	}
	return done("NodePool, NodeClaim and EC2NodeClass are served and stored as v1")
}

func formatStored(all []CRD) string {
	var out []string
	for _, c := range all {
		if slices.Contains(requiredCRDs, c.Name) {
			out = append(out, c.Name+": "+strings.Join(c.Stored, ", "))
		}
	}
	return strings.Join(out, "; ")
}

func formatMissing(all []CRD) string {
	var out []string
	for _, c := range all {
		for _, field := range c.Missing {
			out = append(out, c.Name+" "+field)
		}
	}
	return strings.Join(out, ", ")
}

// formatStorageMigration returns the commands that store all objects of a kind as v1: replacing an
// object stores it in the current version.
func formatStorageMigration(objects []string) string {
	var out []string
	for _, o := range objects {
		name := strings.TrimPrefix(o, "crd/")
		out = append(out, fmt.Sprintf(`while Karpenter still runs: kubectl get %s -o json | kubectl replace -f -; kubectl patch crd %s --subresource=status --type=merge -p '{"status":{"storedVersions":["v1"]}}'`, name, name))
	}
	return strings.Join(out, "; ")
}

// checkWebhooks finds conversion webhooks of CRDs and webhook configurations whose Service stops
// with Karpenter. Every write of these kinds would then fail.
func checkWebhooks(f MigrationFacts) MigrationStep {
	var conversions, configurations, fixes []string
	for _, c := range f.CRDs {
		if c.WebhookService != "" {
			conversions = append(conversions, "crd/"+c.Name)
			fixes = append(fixes, fmt.Sprintf(`kubectl patch crd %s --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`, c.Name))
		}
	}
	for _, w := range f.Webhooks {
		configurations = append(configurations, w.Kind+"/"+w.Name)
		fixes = append(fixes, "kubectl delete "+w.Kind+" "+w.Name)
	}
	fix := strings.Join(fixes, "; ")
	switch {
	case len(conversions) > 0:
		return blocked("the API server converts these kinds by a webhook of Karpenter: once Karpenter stops, reading them fails", fix, append(conversions, configurations...)...)
	case len(configurations) > 0:
		return blocked("the API server calls webhooks of Karpenter before 1.0 for these kinds: once Karpenter stops, writes fail", fix, configurations...)
	}
	return done("no webhook of Karpenter is configured")
}
