package soak

import (
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
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
	var spot []string
	for _, r := range s.RunningInstances() {
		if r.CapacityType == cloud.Spot && r.State == cloud.Running {
			spot = append(spot, r.ID)
		}
	}
	if len(spot) == 0 {
		return errors.New("there is no spot instance")
	}
	slices.Sort(spot)
	s.Cloud.InterruptSpot(spot[s.random.IntN(len(spot))])
	return nil
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
