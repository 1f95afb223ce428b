package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/lease"
)

const (
	// snapshotAge is an age at which the watcher no longer runs: it writes one an hour
	// at least.
	snapshotAge = 75 * time.Minute
	// catalogueAge is one at which the catalog no longer runs: it asks AWS each minute,
	// and writes what has changed, prices of a day at least.
	catalogueAge = 24 * time.Hour
	// skewMax is how far clocks may be apart: AWS refuses requests that are signed five
	// minutes off (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
	skewMax = time.Minute
)

// incumbent finds Karpenter at work on the same pools.
func incumbent(f Facts) []Finding {
	var all []Finding
	const fix = "kubectl scale deployment %s -n %s --replicas 0, and look again; to go back, stop Joist first"
	for _, d := range f.Deployments {
		if d.Karpenter && d.Replicas > 0 {
			all = append(all, problem("karpenter-runs", "deployment/"+d.Namespace+"/"+d.Name, "Karpenter runs in this cluster: only one of the two acts at a time, whichever has the Lease, and Karpenter ends instances that it does not know",
				fmt.Sprintf(fix, d.Name, d.Namespace)))
		}
	}
	if l := f.Lease; l != nil && l.Holder != "" && l.Holder != lease.KarpenterHolder && f.Now.Sub(l.Renewed) < 4*lease.Duration {
		all = append(all, problem("karpenter-leads", "lease/"+l.Namespace+"/"+lease.KarpenterName, l.Holder+" holds Karpenter's Lease and renews it: Joist waits, and acts on nothing", fmt.Sprintf(fix, "karpenter", l.Namespace)))
	}
	return all
}

// replicas finds services that nobody stands in for (A084).
func replicas(f Facts) []Finding {
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
			all = append(all, problem("replicas-none", subject, "it has no replica: nothing happens in this cluster", "helm upgrade with --set replicas=2"))
		case 1:
			all = append(all, warning("replicas-one", subject, "it has one replica: while that restarts, warnings of interruptions wait", "helm upgrade with --set replicas=2"))
		}
	}
	if f.Deployments != nil && ours == 0 {
		all = append(all, problem("joist-missing", "deployments", "neither the watcher nor lifecycle runs in this cluster: nothing happens in it", "helm install joist, with the line that the stack's output gives"))
	}
	return all
}

// required are the kinds that Joist reads, and optional those of single features.
var (
	required = []string{"karpenter.sh/v1/nodepools", "karpenter.sh/v1/nodeclaims", "karpenter.k8s.aws/v1/ec2nodeclasses"}
	optional = []string{"karpenter.sh/v1alpha1/nodeoverlays", "autoscaling.x-k8s.io/v1beta1/capacitybuffers"}
)

// kinds finds definitions that are missing or old.
func kinds(f Facts) []Finding {
	if f.Resources == nil {
		return nil
	}
	var all []Finding
	for _, want := range required {
		if slices.Contains(f.Resources, want) {
			continue
		}
		what := "the API server does not serve " + want
		if old := sibling(f.Resources, want); old != "" {
			what += ", and serves " + old + ": the definition is of an older Karpenter"
		}
		all = append(all, problem("crd-missing", "crd/"+want, what, "helm upgrade --install joist-crd"))
	}
	for _, want := range optional {
		if !slices.Contains(f.Resources, want) {
			all = append(all, warning("crd-optional", "crd/"+want, "the API server does not serve it: what it is for is not to be had", "helm upgrade --install joist-crd, if you want it"))
		}
	}
	return all
}

// sibling is another version of the same kind.
func sibling(resources []string, want string) string {
	parts := strings.Split(want, "/")
	for _, r := range resources {
		if p := strings.Split(r, "/"); len(p) == 3 && p[0] == parts[0] && p[2] == parts[2] && p[1] != parts[1] {
			return r
		}
	}
	return ""
}

// unset finds variables that a shell did not fill in (A021, A023).
func unset(f Facts) []Finding {
	var all []Finding
	for _, d := range f.Deployments {
		subject := "deployment/" + d.Namespace + "/" + d.Name
		for _, image := range d.Images {
			if strings.Contains(image, "${") || strings.HasSuffix(image, ":") || strings.HasSuffix(image, ":v") {
				all = append(all, problem("variable-unset", subject, fmt.Sprintf("the image %q names no version: a variable was not set where the chart was installed", image),
					"export the variable in the shell of the helm line, such as KARPENTER_VERSION, and helm upgrade"))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Environ)) {
			if value := d.Environ[name]; strings.Contains(value, "${") {
				all = append(all, problem("variable-unset", subject, fmt.Sprintf("its variable %s is %q: that was never filled in", name, value), "export the variable in the shell of the helm line, and helm upgrade"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Environ)) {
		if value := f.Environ[name]; value == "" || strings.Contains(value, "${") {
			all = append(all, warning("variable-unset", "variable/"+name, "it is not set in this shell, and the commands of Karpenter's guides and of our quickstart use it", "export "+name+"=…"))
		}
	}
	return all
}

// fresh finds documents that are no longer written.
func fresh(f Facts) []Finding {
	var all []Finding
	old := func(check, what string, at *time.Time, limit time.Duration, service, fix string) {
		switch {
		case at == nil:
		case at.IsZero():
			all = append(all, warning(check, what, "none was ever written: the "+service+" has had nothing to do, does not run, or cannot write to the bucket", fix))
		case f.Now.Sub(*at) > limit:
			all = append(all, problem(check, what, fmt.Sprintf("the latest is %s old: the %s does not run, or cannot write to the bucket", f.Now.Sub(*at).Round(time.Minute), service), fix))
		}
	}
	old("snapshot-old", "snapshot", f.Snapshot, snapshotAge, "watcher", "kubectl logs -l app.kubernetes.io/component=watcher; a cluster without a node of ours has none")
	old("catalogue-old", "catalogue", f.Catalogue, catalogueAge, "catalog", "joist queues and joist dead list --queue catalog; prices and images are as old as it is")
	return all
}

// skew finds a clock that is wrong.
func skew(f Facts) []Finding {
	if f.Skew == nil || f.Skew.Abs() <= skewMax {
		return nil
	}
	return []Finding{warning("clock", "this machine", fmt.Sprintf("its clock is %s away from AWS's: beyond five minutes AWS refuses its requests, and expiries are shown wrong", f.Skew.Round(time.Second)), "set the clock (NTP)")}
}

// tools finds programs that are not there, or are too old (A018, A036).
func tools(f Facts) []Finding {
	var all []Finding
	for _, t := range f.Tools {
		least := oldest[t.Name]
		switch {
		case t.Version == "":
			all = append(all, warning("tool-missing", "tool/"+t.Name, "it is not on this machine's path, and the guides use it", "install "+t.Name))
		case least[0] > 0 && before(t.Version, least):
			all = append(all, warning("tool-old", "tool/"+t.Name, fmt.Sprintf("it is %s, and before %d.%d it fails with `exec plugin: invalid apiVersion`", t.Version, least[0], least[1]), "install a newer "+t.Name))
		}
	}
	return all
}

// oldest are the versions from which on kubeconfigs of EKS are understood (A036).
var oldest = map[string][2]int{"helm": {3, 9}, "aws": {2, 0}, "kubectl": {1, 24}}

// before reports whether a version such as v3.8.1 comes before another. One that cannot
// be read does not.
func before(version string, least [2]int) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < least[0] || major == least[0] && minor < least[1]
}
