package launchspec_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// allowExpressions switches the feature gate on and sets the kubelet's settings.
func (w *world) allowExpressions(family string, settings map[string]string) {
	w.batch.Snapshot.Settings.Gates.NodeClassCEL = true
	w.class().Spec.AMIFamily = &family
	w.class().Spec.Kubelet = karpenter.KubeletConfiguration{}
	for name, text := range settings {
		value := w.class().Spec.Kubelet[name]
		value.Raw = []byte(text)
		w.class().Spec.Kubelet[name] = value
	}
}

// TestExpressionsInTemplates checks that the nodes of a launch template have the pods and the reserved resources that
// the plan assumed for each of its types, and that a template has one value of each.
func TestExpressionsInTemplates(t *testing.T) {
	for _, family := range []string{karpenter.AMIFamilyAL2, karpenter.AMIFamilyAL2023, karpenter.AMIFamilyBottlerocket} {
		t.Run(family, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 3, "1", "1Gi"))
			w.require(in(karpenter.LabelInstanceCategory, "c", "m"), in(karpenter.LabelInstanceCPU, "2", "4", "8"))
			w.allowExpressions(family, map[string]string{
				"maxPods": `"min(max_pods, vcpus * 8)"`, "kubeReserved": `{"cpu": "vcpus * 30", "memory": "11 * max_pods + 255"}`,
				"systemReserved": `{"cpu": "100m", "pid": "max_pods * 2"}`,
			})
			built := w.build(t)
			types := instancetypes.New(w.batch.Snapshot, w.cat).ByNodeClass[w.class().Name]
			templates := map[string]userdata.Kubelet{}
			seen := 0
			for _, intent := range built.Intents {
				for _, template := range intent.Templates {
					parsed, err := userdata.Parse(template.UserData)
					if err != nil {
						t.Fatal(err)
					}
					templates[template.Name] = parsed.Kubelet
				}
				for _, config := range intent.Fleet.Configs {
					for _, o := range config.Overrides {
						at := slices.IndexFunc(types, func(typ instancetypes.Type) bool { return typ.Name == o.InstanceType })
						hardware, _ := w.cat.Find(o.InstanceType)
						pods := min(hardware.Network.ENIs*(hardware.Network.IPv4PerENI-1)+2, hardware.VCPU*8)
						seen++
						want := map[string]string{
							"cpu": fmt.Sprintf("%dm", hardware.VCPU*30), "memory": fmt.Sprintf("%dMi", (11*pods+255+15)/16*16),
						}
						have := templates[config.Template]
						if have.MaxPods != int(pods) || have.KubeReserved["cpu"] != want["cpu"] || have.KubeReserved["memory"] != want["memory"] ||
							have.SystemReserved["pid"] != strconv.FormatInt(2*pods, 10) || have.SystemReserved["cpu"] != "100m" {
							t.Errorf("%s: its template has %+v, want %d pods and %v reserved", o.InstanceType, have, pods, want)
						}
						planned := types[at]
						if planned.Capacity.Pods().Value() != pods {
							t.Errorf("%s: the plan assumes %v pods, want %d", o.InstanceType, planned.Capacity.Pods(), pods)
						}
						cpu := planned.Capacity.Cpu().DeepCopy()
						cpu.Sub(*planned.Allocatable.Cpu())
						reserved := resource.MustParse(want["cpu"])
						reserved.Add(resource.MustParse("100m"))
						if cpu.Cmp(reserved) != 0 {
							t.Errorf("%s: the plan reserves %v of CPU, want %v", o.InstanceType, cpu.String(), reserved.String())
						}
					}
				}
			}
			if seen == 0 || len(templates) < 2 {
				t.Errorf("got %d overrides in %d templates, want several of both", seen, len(templates))
			}
		})
	}
}

// TestExpressionThatFails checks that a class with an expression that fails for one type of the region launches
// nothing, with the reason, and that pods go to other classes.
func TestExpressionThatFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		gate  bool
		value string
		want  string
	}{
		{"fails for small types only", true, `"100 / (vcpus - 2)"`, "division by zero"},
		{"negative for one type", true, `"instance_type == 't4g.medium' ? -1 : 20"`, "instance-type=t4g.medium, result=-1"},
		{"does not compile", true, `"vcpu * 2"`, "undeclared reference to 'vcpu'"},
		{"gate off", false, `"vcpus * 2"`, "NodeClassCEL feature gate is disabled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
			w.allowExpressions(karpenter.AMIFamilyAL2023, map[string]string{"maxPods": tt.value})
			w.batch.Snapshot.Settings.Gates.NodeClassCEL = tt.gate
			result := solver.Solve(w.batch, w.cat)
			if len(result.Nodes) > 0 || len(result.Unplaced) != 1 {
				t.Fatalf("got %d nodes and %d unplaced", len(result.Nodes), len(result.Unplaced))
			}
			if why := text(t, result.Unplaced[0]); !strings.Contains(why, tt.want) {
				t.Errorf("got %s, want %s", why, tt.want)
			}
			if _, err := solver.PlanNode(w.pool(), corev1.ResourceList{}, w.batch.Snapshot, w.cat); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("PlanNode returned %v, want %s", err, tt.want)
			}
			other := w.class().DeepCopy()
			other.Name, other.Spec.Kubelet = "other", nil
			pool := w.pool().DeepCopy()
			pool.Name, pool.Spec.Template.Spec.NodeClassRef.Name = "other", "other"
			w.batch.Snapshot.NodeClasses = append(w.batch.Snapshot.NodeClasses, *other)
			w.batch.Snapshot.NodePools = append(w.batch.Snapshot.NodePools, *pool)
			if result := solver.Solve(w.batch, w.cat); len(result.Nodes) != 1 || result.Nodes[0].NodeClass != "other" {
				t.Errorf("with another class: got %+v", result.Nodes)
			}
		})
	}
}
