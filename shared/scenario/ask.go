package scenario

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Problem converts the scenario to the planner's input: the batch that the watcher would write for
// such a cluster, and the instance types. It also groups equal pods, which is part of planning, so
// benchmarks of planners include it.
func (s *Scenario) Problem(pods []*corev1.Pod) (planning.Batch, instancetypes.InstanceTypes) {
	named := podspec.SelectorKeys{}
	for _, pod := range pods {
		named.Add(pod)
	}
	for i := range s.Nodes {
		for _, pod := range s.Nodes[i].Pods {
			named.Add(pod)
		}
	}
	snapshot := planning.Snapshot{
		TakenAt: taken, Cluster: s.Name, UID: "scenario",
		NodePools: s.NodePools, NodeClasses: s.classes,
		Nodes:      make([]planning.Node, len(s.Nodes)),
		DaemonSets: make([]planning.PodSpec, len(s.Daemons)),
	}
	var classes podspec.Classes
	if s.devices != nil {
		found := podspec.ReadDevices(s.devices.objects(), pods)
		snapshot.Settings.PlanDRARequests, snapshot.Devices, classes.Claims = true, found.State(), found.Claims()
	}
	for i := range s.Nodes {
		snapshot.Nodes[i] = s.Nodes[i].filled(named, classes.Claims)
	}
	for i := range s.Daemons {
		snapshot.DaemonSets[i] = podspec.Daemon(&s.Daemons[i], named)
	}
	for _, pod := range pods {
		classes.AddPod(pod, named, nil)
	}
	return planning.Batch{Outbox: "scenario", Seq: 1, Snapshot: snapshot, Pending: classes.List()}, s.stock
}
