package sim_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestKubeletSettingsMakeClassReadyOrNot runs the services with node classes whose kubelet settings the API server
// accepts, and checks the condition and that the other conditions do not change.
func TestKubeletSettingsMakeClassReadyOrNot(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		gate           bool
		reason         string
	}{
		{"settings that only the kubelet knows", `{logging: {format: json}, serializeImagePulls: false}`, false, ""},
		{"an unknown field", `{serializeImagePull: false}`, true, event.InvalidKubeletConfiguration},
		{"an expression without the gate", `{maxPods: vcpus * 8}`, false, event.KubeletExpressionsDisabled},
		{"an expression", `{maxPods: vcpus * 8, kubeReserved: {cpu: vcpus * 30}}`, true, ""},
		{"an expression that does not compile", `{maxPods: cores * 8}`, true, event.KubeletExpressionInvalid},
		{"an expression that fails for small types", `{maxPods: 8 / (vcpus - 2)}`, true, event.KubeletExpressionEvaluationFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := embedded.New(embedded.Options{Seed: 1, Families: instanceFamilies, Gates: planning.Gates{NodeClassCEL: tt.gate}})
			if err != nil {
				t.Fatal(err)
			}
			class := &karpenter.EC2NodeClass{}
			if err := yaml.UnmarshalStrict([]byte(walkthroughClass), class); err != nil {
				t.Fatal(err)
			}
			class.ObjectMeta = metav1.ObjectMeta{Name: "default"}
			if err := yaml.Unmarshal([]byte(tt.settings), &class.Spec.Kubelet); err != nil {
				t.Fatal(err)
			}
			w.Kube.SeedObjects(class)
			got := runServices(t, w, 3*time.Minute)
			validated, _ := got.Status.Conditions.Get(karpenter.ConditionTypeValidationSucceeded)
			if got.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) != (tt.reason == "") || tt.reason != "" && (validated.Status != metav1.ConditionFalse || validated.Reason != tt.reason) {
				t.Errorf("conditions %+v", got.Status.Conditions)
			}
			if tt.reason != "" && !strings.Contains(validated.Message, "spec.kubelet") && !strings.Contains(validated.Message, "expression") {
				t.Errorf("message %q", validated.Message)
			}
			if !got.Status.Conditions.IsTrue(karpenter.ConditionTypeSubnetsReady) || !got.Status.Conditions.IsTrue(karpenter.ConditionTypeAMIsReady) {
				t.Errorf("the other conditions are %+v", got.Status.Conditions)
			}
		})
	}
}

// TestExpressionsReachNodeClaims checks that nodes are launched with expressions, and that their NodeClaims have the
// resources for which the expressions were evaluated.
func TestExpressionsReachNodeClaims(t *testing.T) {
	w, err := embedded.New(embedded.Options{Seed: 1, Families: instanceFamilies, Gates: planning.Gates{NodeClassCEL: true}})
	if err != nil {
		t.Fatal(err)
	}
	class, pods, _ := nodeClassAndDeployment(w)
	if err := yaml.Unmarshal([]byte(`{maxPods: vcpus * 4, kubeReserved: {cpu: vcpus * 50}}`), &class.Spec.Kubelet); err != nil {
		t.Fatal(err)
	}
	if err := w.Apply(t.Context(), class, strictNodePool(), pods); err != nil {
		t.Fatal(err)
	}
	runServices(t, w, 3*time.Minute)
	claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), w.Kube, cluster.NodeClaims)
	if err != nil || len(claims) == 0 {
		t.Fatalf("%d NodeClaims, %v", len(claims), err)
	}
	for _, c := range claims {
		cores := c.Status.Capacity.Cpu().Value()
		reserved := c.Status.Capacity.Cpu().MilliValue() - c.Status.Allocatable.Cpu().MilliValue()
		if cores == 0 || c.Status.Capacity.Pods().Value() != 4*cores || reserved != 50*cores {
			t.Errorf("%s: %v pods and %dm of CPU reserved on %d cores", c.Name, c.Status.Capacity.Pods(), reserved, cores)
		}
	}
}
