package soak

import (
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

type memcloudRecord = memcloud.Record

// apps is the number of Deployments, each of which has at most replicasMax pods.
const apps, replicasMax = 6, 16

// action is something that happens at random times.
type action struct {
	name string
	// weight is how often it is chosen, compared with the others.
	weight int
	do     func() error
	// kills is whether it kills services.
	kills bool
}

func (s *run) actions() []action {
	return []action{
		{scaleAction, 60, s.scaleRandom, false},
		{warnAction, 15, s.interruptRandom, false},
		{terminateAction, 3, s.terminateRandom, false},
		{shortageAction, 3, s.exhaustZone, false},
		{failAction, 2, s.failAWS, false},
		{driftAction, 2, s.driftNodes, false},
		{killAction, 8, s.killRandom, true},
		{killAllAction, 1, s.restartAll, true},
		{restartAction, 2, s.restartAPIServer, false},
		{cutAction, 6, func() error { s.Server.CutConnections(); return nil }, false},
	}
}

// act does one random action. An action that fails, as while the API server starts, is counted as failed.
func (s *run) act(kills bool) {
	all := slices.DeleteFunc(s.actions(), func(a action) bool { return a.kills && !kills })
	total := 0
	for _, a := range all {
		total += a.weight
	}
	at := s.random.IntN(total)
	for _, a := range all {
		if at -= a.weight; at < 0 {
			if err := a.do(); err != nil {
				s.Logf("%s: %v", a.name, err)
				a.name += failedSuffix
			}
			s.count(a.name)
			return
		}
	}
}

func (s *run) deploy() {
	s.Helper()
	for i := range apps {
		name := fmt.Sprintf("app-%d", i)
		grace := int64(1 + 4*(i%3))
		_, err := s.Kube.AppsV1().Deployments("default").Create(s.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(replicasMax / 2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
					Name: "pause", Image: "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse(fmt.Sprintf("%dm", 500+300*(i%3))), corev1.ResourceMemory: resource.MustParse("512Mi"),
					}},
				}}},
			}},
		}, metav1.CreateOptions{})
		s.RequireNoError(err)
	}
	// Pods of the first Deployment may be evicted a few at a time.
	_, err := s.Kube.PolicyV1().PodDisruptionBudgets("default").Create(s.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "app-0"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(4)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}}},
	}, metav1.CreateOptions{})
	s.RequireNoError(err)
}

func (s *run) scaleRandom() error {
	return s.scale(s.random.IntN(apps), s.random.IntN(replicasMax+1))
}

func (s *run) scale(app, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := s.Kube.AppsV1().Deployments("default").Patch(s.Context(), fmt.Sprintf("app-%d", app), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (s *run) interruptRandom() error {
	id, err := s.drawInstance(func(r memcloudRecord) bool { return r.CapacityType == cloud.Spot })
	if err == nil {
		s.Cloud.InterruptSpot(id)
	}
	return err
}

// terminateRandom ends an instance without a warning, as a person does in EC2's console.
func (s *run) terminateRandom() error {
	id, err := s.drawInstance(func(memcloudRecord) bool { return true })
	if err == nil {
		s.Cloud.Fail(id)
	}
	return err
}

// drawInstance returns a running instance that matches.
func (s *run) drawInstance(matches func(memcloudRecord) bool) (string, error) {
	var ids []string
	for _, r := range s.RunningInstances() {
		if r.State == cloud.Running && matches(r) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return "", errors.New("no such instance runs")
	}
	slices.Sort(ids)
	return ids[s.random.IntN(len(ids))], nil
}

// exhaustZone lets EC2 have no capacity of one kind in one zone for half a minute.
func (s *run) exhaustZone() error {
	zone := s.AWS.Subnets[s.random.IntN(len(s.AWS.Subnets))].Zone
	kinds := []string{cloud.Spot, cloud.OnDemand}
	s.Cloud.Shortage(event.Offering{Zone: zone, CapacityType: kinds[s.random.IntN(len(kinds))]}, time.Now().Add(30*time.Second))
	return nil
}

// failAWS lets EC2, SQS, EventBridge and S3 fail and lag for a quarter of a minute. Nothing is late by more than that: what
// minutes and hours do is tested by package apifaults.
func (s *run) failAWS() error {
	s.Cloud.SetFaults(memcloud.Faults{Lag: 10 * time.Second, LostAnswer: 0.1, LostCall: 0.1, Throttle: 0.1})
	s.Broker.SetFaults(memqueue.Faults{
		FailSend: 0.05, LoseSendAnswer: 0.05, FailReceive: 0.05, LoseReceiveAnswer: 0.02, FailDelete: 0.1, FailHide: 0.1, Duplicate: 0.2,
		StaleWorks: 0.5, StaleIgnored: 0.5, Reorder: 0.5, Empty: 0.2, Delay: 0.2, MaxDelay: 5 * time.Second, RouteTwice: 0.2,
	})
	s.Blobs.SetFaults(memblob.Faults{FailPut: 0.05, FailGet: 0.05, FailWritten: 0.05, LosePutAnswer: 0.05, SlowDown: 0.005})
	s.failing = time.Now().Add(15 * time.Second)
	return nil
}

// endFailures ends the failures of failAWS that are due.
func (s *run) endFailures(now time.Time) {
	if !s.failing.IsZero() && now.After(s.failing) {
		s.Cloud.SetFaults(memcloud.Faults{})
		s.Broker.SetFaults(memqueue.Faults{})
		s.Blobs.SetFaults(memblob.Faults{})
		s.failing = time.Time{}
	}
}

// driftNodes changes a label of the NodePool's template: every node has drifted.
func (s *run) driftNodes() error {
	s.revision++
	return s.patchPool(fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"example.com/revision":"r%d"}}}}}`, s.revision))
}

func (s *run) patchPool(patch string) error {
	client, err := dynamic.NewForConfig(s.Plane.Config)
	if err != nil {
		return err
	}
	pools := client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	_, err = pools.Patch(s.Context(), "default", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (s *run) killRandom() error {
	services := s.RunningServices()
	name := services[s.random.IntN(len(services))]
	s.RestartService(name)
	s.countKill(name)
	return nil
}

func (s *run) restartAPIServer() error {
	at := time.Since(s.Began)
	err := s.Plane.Restart(s.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Outages = append(s.report.Outages, Latency{At: at, Took: time.Since(s.Began) - at, Of: "API server"})
	return err
}

func (s *run) restartAll() error {
	s.RestartJoist()
	for _, name := range s.RunningServices() {
		s.countKill(name)
	}
	return nil
}

func (s *run) countKill(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[service]++
	s.report.Restarts[service]++
}

// pause returns the time until the next action: two seconds on average.
func (s *run) pause() time.Duration {
	return time.Duration(s.random.ExpFloat64() * float64(2*time.Second))
}
