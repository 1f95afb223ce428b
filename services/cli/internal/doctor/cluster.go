package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

const (
	// snapshotAge is the age from which the watcher cannot be running: it writes a snapshot at
	// least every hour.
	snapshotAge = 75 * time.Minute
	// catalogueAge is the age from which the catalog cannot be running: prices change at least
	// once a day.
	catalogueAge = 24 * time.Hour
	// skewMax is the accepted clock difference. AWS rejects requests signed five minutes off
	// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
	skewMax = time.Minute
)

// CheckCluster finds Deployments whose settings name another cluster than the one whose account is examined:
// the kubeconfig is usually that of the other cluster.
func CheckCluster(f Facts) []Finding {
	others := map[string][]string{}
	for _, d := range f.Deployments {
		// A placeholder that was not replaced names no cluster.
		if name := cmp.Or(d.Environ[settings.ClusterName], d.Environ["CLUSTER_NAME"]); name != "" && name != f.Plan.Cluster && !strings.Contains(name, "$") {
			others[name] = append(others[name], "deployment/"+d.Namespace+"/"+d.Name)
		}
	}
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(others)) {
		all = append(all, newProblem("wrong-cluster", "cluster/"+name,
			fmt.Sprintf("the settings of %s name the cluster %s, not %s: AWS is read for %s, and Kubernetes is that of the kubeconfig", strings.Join(others[name], ", "), name, f.Plan.Cluster, f.Plan.Cluster),
			fmt.Sprintf("--context or --kubeconfig of %s (aws eks update-kubeconfig --name %s), or --cluster %s; correct the setting if it is wrong", f.Plan.Cluster, f.Plan.Cluster, name)))
	}
	return all
}

// checkKarpenter finds a running Karpenter in the same cluster.
func checkKarpenter(f Facts) []Finding {
	var all []Finding
	const fix = "kubectl scale deployment %s -n %s --replicas 0, then run joist doctor again; to switch back, stop Joist first"
	for _, d := range f.Deployments {
		subject := "deployment/" + d.Namespace + "/" + d.Name
		switch {
		case !d.Karpenter || d.Replicas == 0:
		case d.SkipsElection():
			all = append(all, newProblem("karpenter-without-election", subject, "Karpenter runs with leader election turned off ("+settings.SingleReplica+"): it acts without the Lease, at the same time as Joist",
				fmt.Sprintf(fix, d.Name, d.Namespace)+", and turn its leader election on before"))
		default:
			all = append(all, newProblem("karpenter-running", subject, "Karpenter runs in this cluster: only the one that holds the Lease is active, and Karpenter terminates instances that it does not know",
				fmt.Sprintf(fix, d.Name, d.Namespace)))
		}
	}
	if l := f.Lease; l != nil && l.Holder != "" && l.Holder != lease.KarpenterHolder && f.Now.Sub(l.Renewed) < 4*lease.Duration {
		all = append(all, newProblem("karpenter-holds-lease", "lease/"+l.Namespace+"/"+lease.KarpenterName, l.Holder+" holds and renews Karpenter's Lease: Joist waits and does nothing", fmt.Sprintf(fix, "karpenter", l.Namespace)))
	}
	return all
}

// checkReplicas finds services without a standby replica.
func checkReplicas(f Facts) []Finding {
	var all []Finding
	ours := 0
	for _, d := range f.Deployments {
		if d.Karpenter {
			continue
		}
		ours++
		subject := "deployment/" + d.Namespace + "/" + d.Name
		switch d.Replicas {
		case 0:
			all = append(all, newProblem("replicas-none", subject, "the Deployment has 0 replicas: Joist does nothing in this cluster", "helm upgrade with --set replicas=2"))
		case 1:
			all = append(all, newWarning("replicas-one", subject, "the Deployment has 1 replica: interruption warnings wait while it restarts", "helm upgrade with --set replicas=2"))
		}
	}
	if f.Deployments != nil && ours == 0 {
		all = append(all, newProblem("joist-missing", "deployments", "neither the watcher nor lifecycle runs in this cluster: Joist does nothing", "helm install joist, with the command in the stack's output"))
	}
	return all
}

// installCRDs is the fix for kinds that the API server does not serve.
const installCRDs = "helm upgrade --install joist-crd with --take-ownership (Helm 3.17 or newer)"

// requiredKinds are the kinds that Joist needs, and optionalKinds those of single features.
var (
	requiredKinds = []string{"karpenter.sh/v1/nodepools", "karpenter.sh/v1/nodeclaims", "karpenter.k8s.aws/v1/ec2nodeclasses"}
	optionalKinds = []string{"karpenter.sh/v1alpha1/nodeoverlays", "autoscaling.x-k8s.io/v1beta1/capacitybuffers"}
)

// checkKinds finds missing or outdated CRDs.
func checkKinds(f Facts) []Finding {
	if f.Resources == nil {
		return nil
	}
	var all []Finding
	for _, want := range requiredKinds {
		if slices.Contains(f.Resources, want) {
			continue
		}
		what := "the API server does not serve " + want
		if old := findSibling(f.Resources, want); old != "" {
			what += " but serves " + old + ": the CRD is from another version of Karpenter"
		}
		all = append(all, newProblem("crd-missing", "crd/"+want, what, installCRDs))
	}
	for _, want := range optionalKinds {
		if !slices.Contains(f.Resources, want) {
			all = append(all, newWarning("crd-optional-missing", "crd/"+want, "the API server does not serve this kind: its feature is not available", "if you need the feature: "+installCRDs))
		}
	}
	return all
}

// findSibling returns another version of the same kind.
func findSibling(resources []string, want string) string {
	parts := strings.Split(want, "/")
	for _, r := range resources {
		if p := strings.Split(r, "/"); len(p) == 3 && p[0] == parts[0] && p[2] == parts[2] && p[1] != parts[1] {
			return r
		}
	}
	return ""
}

// checkPlaceholders finds placeholders that no shell replaced, and variables that are not set.
func checkPlaceholders(f Facts) []Finding {
	var all []Finding
	for _, d := range f.Deployments {
		subject := "deployment/" + d.Namespace + "/" + d.Name
		for _, image := range d.Images {
			if strings.Contains(image, "${") || strings.HasSuffix(image, ":") || strings.HasSuffix(image, ":v") {
				all = append(all, newProblem("variable-unset", subject, fmt.Sprintf("the image %q has no version: a variable was not set when the chart was installed", image),
					"export the variable, such as KARPENTER_VERSION, and run helm upgrade again"))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Environ)) {
			if value := d.Environ[name]; strings.Contains(value, "${") {
				all = append(all, newProblem("variable-unset", subject, fmt.Sprintf("its environment variable %s is %q: the placeholder was not replaced", name, value), "export the variable and run helm upgrade again"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Environ)) {
		if value := f.Environ[name]; value == "" || strings.Contains(value, "${") {
			all = append(all, newWarning("variable-unset", "variable/"+name, "the variable is not set in this shell; commands of Karpenter's guides and of the quickstart use it", "export "+name+"=…"))
		}
	}
	return all
}

// checkDocuments finds documents that are no longer written.
func checkDocuments(f Facts) []Finding {
	var all []Finding
	old := func(check, what string, at *time.Time, limit time.Duration, service, fix string) {
		switch {
		case at == nil:
		case at.IsZero():
			all = append(all, newWarning(check, what, "no document exists: the "+service+" has had nothing to write, does not run, or cannot write to the bucket", fix))
		case f.Now.Sub(*at) > limit:
			all = append(all, newProblem(check, what, fmt.Sprintf("the latest document is %s old: the %s does not run or cannot write to the bucket", f.Now.Sub(*at).Round(time.Minute), service), fix))
		}
	}
	old("snapshot-stale", "snapshot", f.Snapshot, snapshotAge, "watcher", "kubectl logs -l app.kubernetes.io/component=watcher; without a node of Joist there are no snapshots")
	old("catalogue-stale", "catalogue", f.Catalogue, catalogueAge, "catalog", "joist queues, then joist dead list --queue catalog; until then prices and images are out of date")
	return all
}

// checkClock finds a clock difference.
func checkClock(f Facts) []Finding {
	if f.Skew == nil || f.Skew.Abs() <= skewMax {
		return nil
	}
	return []Finding{newWarning("clock-skew", "this machine", fmt.Sprintf("the clock differs from AWS by %s: displayed expiries are wrong, and AWS rejects requests if the difference exceeds five minutes", f.Skew.Round(time.Second)), "set the clock (NTP)")}
}

// checkTools finds missing or outdated programs.
func checkTools(f Facts) []Finding {
	var all []Finding
	for _, t := range f.Tools {
		least := oldestVersions[t.Name]
		switch {
		case t.Version == "":
			all = append(all, newWarning("tool-missing", "tool/"+t.Name, "the program is not in PATH; the guides use it", "install "+t.Name))
		case least[0] > 0 && versionBefore(t.Version, least):
			all = append(all, newWarning("tool-old", "tool/"+t.Name, fmt.Sprintf("version %s is too old: versions before %d.%d fail with `exec plugin: invalid apiVersion`", t.Version, least[0], least[1]), "install a newer version of "+t.Name))
		}
	}
	return all
}

// oldestVersions are the oldest versions that accept kubeconfigs of EKS.
var oldestVersions = map[string][2]int{"helm": {3, 9}, "aws": {2, 0}, "kubectl": {1, 24}}

// versionBefore reports whether a version such as v3.8.1 is older than another. It is false if
// the version cannot be parsed.
func versionBefore(version string, least [2]int) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < least[0] || major == least[0] && minor < least[1]
}
