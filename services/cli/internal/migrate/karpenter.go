package migrate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// karpenterDeployment returns Karpenter's Deployment, or nil. Of several it returns one that runs, if any does.
func (f MigrationFacts) karpenterDeployment() *doctor.Deployment {
	var out *doctor.Deployment
	for i := range f.Installation.Deployments {
		if d := &f.Installation.Deployments[i]; d.Karpenter && (out == nil || out.Replicas == 0) {
			out = d
		}
	}
	return out
}

// joistDeployments returns Joist's Deployments.
func (f MigrationFacts) joistDeployments() []doctor.Deployment {
	var out []doctor.Deployment
	for _, d := range f.Installation.Deployments {
		if !d.Karpenter {
			out = append(out, d)
		}
	}
	return out
}

// karpenterVersion returns the tag of Karpenter's image without v; "" if it has none. A mirror may have
// given the image any name.
func (f MigrationFacts) karpenterVersion() string {
	d := f.karpenterDeployment()
	if d == nil {
		return ""
	}
	for _, image := range d.Images {
		image, _, _ = strings.Cut(image, "@")
		name, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		if tagged && (name == "controller" || strings.Contains(image, "karpenter") || len(d.Images) == 1) {
			return strings.TrimPrefix(tag, "v")
		}
	}
	return ""
}

// checkCluster checks that the kubeconfig is that of the cluster whose account is read.
func checkCluster(f MigrationFacts) MigrationStep {
	if found := doctor.CheckCluster(f.Installation); len(found) > 0 {
		return blockedBy(found)
	}
	return done("no Deployment of Karpenter or Joist names another cluster than " + f.Installation.Plan.Cluster)
}

// checkVersion checks that Karpenter's API is v1, and that its version was compared with Joist.
func checkVersion(f MigrationFacts) MigrationStep {
	d := f.karpenterDeployment()
	if d == nil {
		return done("no Deployment runs Karpenter's image")
	}
	object, version := formatDeployment(*d), f.karpenterVersion()
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return blocked(fmt.Sprintf("the image of Karpenter has the tag %q, so its version is unknown", version),
			"compare the version of Karpenter's Helm release with 1.15: helm list --all-namespaces; Joist takes over from 1.0 and newer", object)
	}
	switch {
	case major < 1:
		return blocked("Karpenter "+version+" uses the API versions v1beta1 or v1alpha5, which Joist does not read",
			"upgrade Karpenter to 1.14 or 1.15 first, as its upgrade guide describes; joist convert translates manifests", object)
	case major > 1 || minor > 15:
		return ready("Karpenter "+version+" is newer than 1.15, the version that Joist follows: settings that were added since are ignored",
			"compare the release notes since 1.15 with the features that you use", object)
	case minor < 14:
		return done("Karpenter "+version+": its hashes of NodePools and EC2NodeClasses are older, and Joist writes current ones without drift", object)
	}
	return done("Karpenter "+version, object)
}

func formatDeployment(d doctor.Deployment) string { return "deployment/" + d.Namespace + "/" + d.Name }

// unelectedKarpenter returns Karpenter's Deployment if it runs without leader election, or nil. It then
// acts whether or not Joist holds the Lease.
func (f MigrationFacts) unelectedKarpenter() *doctor.Deployment {
	if d := f.karpenterDeployment(); d != nil && d.Replicas > 0 && d.SkipsElection() {
		return d
	}
	return nil
}

// describeElection returns the effect of a Karpenter without leader election, and the remedy.
func describeElection(d doctor.Deployment) (detail, fix string) {
	return "leader election is turned off in Karpenter (" + settings.SingleReplica + " or --disable-leader-election): it acts without the Lease, so Karpenter and Joist would act at the same time",
		fmt.Sprintf("turn Karpenter's leader election on first: remove the variable (kubectl set env deployment/%s -n %s %s-) or the flag, also where Helm or GitOps sets it; once Karpenter runs, one of its pods must hold the Lease",
			d.Name, d.Namespace, settings.SingleReplica)
}

// active returns the controller that acts: the one that holds Karpenter's Lease, and Karpenter without
// leader election.
func (f MigrationFacts) active() Active {
	if f.isUnread(Leases) {
		return Undetermined
	}
	l, unelected := f.Installation.Lease, f.unelectedKarpenter() != nil
	isHeld := l != nil && l.Holder != "" && f.Now.Sub(l.Renewed) < 4*lease.Duration
	switch isJoists := isHeld && l.Holder == lease.KarpenterHolder; {
	case isJoists && unelected:
		return Both
	case isJoists:
		return Joist
	case isHeld || unelected:
		return Karpenter
	}
	return Neither
}

// checkInstalled checks that Joist's two services run in the cluster.
func checkInstalled(f MigrationFacts) MigrationStep {
	var idle, running []string
	for _, d := range f.joistDeployments() {
		if d.Replicas > 0 {
			running = append(running, formatDeployment(d))
		} else {
			idle = append(idle, formatDeployment(d))
		}
	}
	switch d := f.unelectedKarpenter(); {
	case d != nil && len(running) < 2:
		detail, fix := describeElection(*d)
		return blocked("do not install Joist yet: "+detail, fix, formatDeployment(*d))
	case len(idle) > 0:
		return ready("Joist is installed with 0 replicas", fmt.Sprintf("kubectl scale deployment -n %s --replicas 2 %s", f.joistNamespace(), formatNames(idle)), idle...)
	case len(running) < 2:
		return ready("watcher and lifecycle are not both installed; while Karpenter acts, they wait for its Lease and change nothing",
			"run the command in the stack's output HelmCommand, with --set settings.leaderElection.namespace="+f.leaseNamespace(), running...)
	}
	return done("watcher and lifecycle are installed", running...)
}

// formatNames returns the names of objects without kind and namespace.
func formatNames(objects []string) string {
	var names []string
	for _, o := range objects {
		names = append(names, o[strings.LastIndex(o, "/")+1:])
	}
	return strings.Join(names, " ")
}

// joistNamespace returns the namespace of Joist's Deployments, or the one in which they will be installed.
func (f MigrationFacts) joistNamespace() string {
	for _, d := range f.joistDeployments() {
		return d.Namespace
	}
	return cmp.Or(f.Namespace, "joist")
}

// leaseNamespace returns the namespace of Karpenter's Lease.
func (f MigrationFacts) leaseNamespace() string {
	if d := f.karpenterDeployment(); d != nil {
		return cmp.Or(d.Environ[settings.LeaseNamespace], d.Namespace)
	}
	if l := f.Installation.Lease; l != nil {
		return l.Namespace
	}
	return "kube-system"
}

// checkLeaseNamespace checks that Joist uses the Lease of Karpenter. With another Lease both would
// act at the same time.
func checkLeaseNamespace(f MigrationFacts) MigrationStep {
	if d := f.unelectedKarpenter(); d != nil {
		detail, fix := describeElection(*d)
		if len(f.joistDeployments()) > 0 {
			fix = "scale Joist to 0 replicas now, then " + fix
		}
		return blocked(detail, fix, formatDeployment(*d))
	}
	want := f.leaseNamespace()
	for _, d := range f.joistDeployments() {
		have, known := d.Environ[settings.LeaseNamespace]
		name := cmp.Or(d.Environ[settings.LeaseName], lease.KarpenterName)
		switch {
		case known && have != want:
			return blocked(fmt.Sprintf("Joist uses the Lease %s in the namespace %s, but Karpenter's is in %s: both would act at the same time", name, have, want),
				"scale Joist to 0 replicas now, then helm upgrade joist with --set settings.leaderElection.namespace="+want, formatDeployment(d))
		case name != lease.KarpenterName && f.karpenterDeployment() != nil && f.karpenterDeployment().Environ[settings.LeaseName] != name:
			return blocked(fmt.Sprintf("Joist uses the Lease %s, but Karpenter's is %s: both would act at the same time", name, lease.KarpenterName),
				"scale Joist to 0 replicas now, then helm upgrade joist with --set settings.leaderElection.name="+lease.KarpenterName, formatDeployment(d))
		}
	}
	if len(f.joistDeployments()) == 0 {
		return ready("Joist must use Karpenter's Lease, so that one of them acts at a time", "install Joist with --set settings.leaderElection.namespace="+want)
	}
	return done(fmt.Sprintf("Joist and Karpenter use the Lease %s in the namespace %s: one of them acts at a time", lease.KarpenterName, want))
}

// switchStep stops Karpenter, once all steps before it are done.
func switchStep(f MigrationFacts, before []MigrationStep) MigrationStep {
	step := check{"karpenter-stopped", []Fact{Deployments}, func(f MigrationFacts) MigrationStep {
		d := f.karpenterDeployment()
		if d == nil {
			return done("no Deployment runs Karpenter's image")
		}
		object := formatDeployment(*d)
		if d.Replicas == 0 {
			return done("Karpenter has 0 replicas; keep its Deployment and its queue for the way back until you are sure", object)
		}
		var open []string
		for _, s := range before {
			if s.State == Blocked || s.State == Unknown && s.Step != planStep || s.Step == "joist-installed" && s.State != Done {
				open = append(open, s.Step)
			}
		}
		stop := fmt.Sprintf("kubectl scale deployment %s -n %s --replicas 0", d.Name, d.Namespace)
		if len(open) > 0 {
			return blocked("Karpenter runs; first complete: "+strings.Join(open, ", "), "then "+stop, object)
		}
		return ready("Karpenter runs; once it stops, Joist acts within half a minute, and pods that become pending until then wait that long", stop, object)
	}}
	return step.evaluate(f)
}

// activeStep checks that Joist holds the Lease.
func activeStep(f MigrationFacts) MigrationStep {
	step := check{"joist-active", []Fact{Leases}, func(f MigrationFacts) MigrationStep {
		switch f.active() {
		case Joist:
			return done("Joist holds and renews Karpenter's Lease: it acts")
		case Both:
			return blocked("Karpenter acts without the Lease, which Joist holds: both act", "scale Joist to 0 replicas now; see lease-namespace")
		case Karpenter:
			if d := f.unelectedKarpenter(); d != nil {
				return ready("Karpenter acts without the Lease", "see lease-namespace", formatDeployment(*d))
			}
			return ready(f.Installation.Lease.Holder+" holds Karpenter's Lease: Karpenter acts, and Joist waits", "stop Karpenter; the Lease passes to Joist by itself")
		}
		return ready("Karpenter's Lease has no holder: neither Karpenter nor Joist acts", "kubectl logs -n "+f.joistNamespace()+" -l app.kubernetes.io/component=lifecycle; joist doctor")
	}}
	return step.evaluate(f)
}
