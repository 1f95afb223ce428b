package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// wayBack are the steps from Joist to Karpenter, in order.
var wayBack = []check{
	{"cluster", []Fact{Deployments}, checkCluster},
	{"karpenter-deployment", []Fact{Deployments}, backDeployment},
	{"launches", []Fact{NodeClaims}, backLaunches},
	{"disruptions", []Fact{NodeClaims}, backDisruptions},
	{"deletion-approval", []Fact{NodePools}, backFinalizers},
	{"stop-joist", []Fact{Deployments}, backStop},
	{"interruption-queue", []Fact{Deployments}, backQueue},
	{"hashes", []Fact{NodePools, NodeClasses}, backHashes},
	{"remains", nil, backRemains},
}

const (
	// gateFinalizer keeps a large NodePool until a person approves its deletion.
	gateFinalizer = "joist.sh/gate"
	// proposalAnnotation is on a NodeClaim that Joist is about to remove.
	proposalAnnotation = "joist.sh/proposal"
)

func backDeployment(f MigrationFacts) MigrationStep {
	d := f.karpenterDeployment()
	switch {
	case d == nil:
		return blocked("no Deployment runs Karpenter's image", "install Karpenter 1.14 or 1.15 with 0 replicas: helm upgrade --install karpenter with --set replicas=0 --skip-crds")
	case d.SkipsElection():
		detail, fix := describeElection(*d)
		return blocked(detail, fix, formatDeployment(*d))
	case d.Replicas > 0:
		return done("Karpenter has "+simulate.FormatCount(d.Replicas, "replica")+" and acts once it holds the Lease", formatDeployment(*d))
	}
	return ready("Karpenter's Deployment exists with 0 replicas", fmt.Sprintf("after the other steps: kubectl scale deployment %s -n %s --replicas 2", d.Name, d.Namespace), formatDeployment(*d))
}

func backLaunches(f MigrationFacts) MigrationStep {
	var open []string
	for i := range f.Claims {
		if f.Claims[i].Status.ProviderID == "" && f.Claims[i].DeletionTimestamp == nil {
			open = append(open, "nodeclaim/"+f.Claims[i].Name)
		}
	}
	if len(open) > 0 {
		return ready(simulate.FormatCount(len(open), "NodeClaim")+" without an instance yet: Joist and Karpenter would both launch one, and Karpenter would terminate Joist's",
			"wait until they have one (at most 5 minutes) before you stop Joist", open...)
	}
	return done("all NodeClaims have an instance")
}

func backDisruptions(f MigrationFacts) MigrationStep {
	var open []string
	for i := range f.Claims {
		if f.Claims[i].Annotations[proposalAnnotation] != "" && f.Claims[i].DeletionTimestamp == nil {
			open = append(open, "nodeclaim/"+f.Claims[i].Name)
		}
	}
	if len(open) > 0 {
		return done("Joist is replacing "+simulate.FormatCount(len(open), "node")+": when Karpenter starts, it removes the taint and the condition DisruptionReason, and decides again", open...)
	}
	return done("no disruption is in progress")
}

// backFinalizers finds NodePools that Karpenter could not delete.
func backFinalizers(f MigrationFacts) MigrationStep {
	var names []string
	for i := range f.Pools {
		if slices.Contains(f.Pools[i].Finalizers, gateFinalizer) {
			names = append(names, "nodepool/"+f.Pools[i].Name)
		}
	}
	if len(names) > 0 {
		return ready("these NodePools have the finalizer "+gateFinalizer+", which only Joist removes: with Karpenter their deletion would never end",
			"helm upgrade joist with --set settings.poolGate=off, and wait until no NodePool has it", names...)
	}
	return done("no NodePool has the finalizer " + gateFinalizer)
}

func backStop(f MigrationFacts) MigrationStep {
	var running []string
	for _, d := range f.joistDeployments() {
		if d.Replicas > 0 {
			running = append(running, formatDeployment(d))
		}
	}
	if len(running) == 0 {
		return done("Joist does not run in the cluster")
	}
	return ready(fmt.Sprintf("Joist runs; %s after it stops, its hold on the Lease expires and Karpenter acts", lease.Duration),
		fmt.Sprintf("kubectl scale deployment %s -n %s --replicas 0", formatNames(running), f.joistNamespace()), running...)
}

func backQueue(f MigrationFacts) MigrationStep {
	own, _ := f.Installation.Plan.Queue("interruption")
	d := f.karpenterDeployment()
	if d == nil || d.Environ[settings.Interruptions] != own.Name {
		return done("Karpenter does not consume Joist's queue "+own.Name, "queue/"+own.Name)
	}
	return ready("Joist's function consumes the queue "+own.Name+", which Karpenter uses too: it would take messages from Karpenter",
		`disable its event source mapping: aws lambda update-event-source-mapping --no-enabled --uuid "$(aws lambda list-event-source-mappings --function-name `+f.Installation.Plan.Prefix+`-joist-interruption --query 'EventSourceMappings[0].UUID' --output text)"`, "queue/"+own.Name)
}

// backHashes checks that Karpenter finds its own hashes.
func backHashes(f MigrationFacts) MigrationStep {
	var other []string
	for i := range f.Pools {
		if hash, err := f.Pools[i].Hash(); err == nil && f.Pools[i].Annotations[poolHash.hash] != hash && f.Pools[i].Annotations[poolHash.version] == poolHash.current {
			other = append(other, "nodepool/"+f.Pools[i].Name)
		}
	}
	if len(other) > 0 {
		return ready("the hash of these NodePools is not that of their template; the active controller writes it within seconds", "wait and check again", other...)
	}
	return done(fmt.Sprintf("NodePools have hashes of version %s and EC2NodeClasses of version %s, those of Karpenter 1.15; another version writes its own without drift", karpenter.NodePoolHashVersion, karpenter.EC2NodeClassHashVersion))
}

func backRemains(f MigrationFacts) MigrationStep {
	annotated := slices.ContainsFunc(f.Claims, func(c karpenter.NodeClaim) bool {
		for key := range c.Annotations {
			if strings.HasPrefix(key, "joist.sh/") {
				return true
			}
		}
		return false
	})
	detail := "Karpenter ignores what remains: the ConfigMaps joist-outbox and joist-unavailable, the Leases joist-watcher and joist-lifecycle in the namespace " + f.joistNamespace()
	if annotated {
		detail += ", and annotations with the prefix joist.sh/ on NodeClaims"
	}
	return done(detail)
}
