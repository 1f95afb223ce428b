package documents

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// document is a tutorial with its steps in its own order.
type document struct {
	name  string
	steps []step
}

// step is one step of a document.
type step struct {
	topic *topic
	// does is what this document does.
	does string
	// play does it with Joist and checks the result. Without it, the tests of the topic cover the step.
	play func(r *reader)
}

// documents are the tutorials, from the newest version of Karpenter to the oldest, and a reference of fields.
var documents = []document{
	{"Karpenter 1 with Terraform and Helm", terraformSteps},
	{"Karpenter 1 with Terraform and Helm, printed without indentation", flatSteps},
	{"Karpenter 0.26 with eksctl and CloudFormation", cloudformationSteps},
	{"Karpenter 0.17 with eksctl", eksctlSteps},
	{"Reference of the v1beta1 fields", referenceSteps},
}

// TestDocuments follows every document, one after the other, on one control plane.
func TestDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane and seven services")
	}
	services, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := testbed.BuildTools()
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(testbed.New(t, testbed.Options{}), services, tools)
	_, err = r.Kube.CoreV1().Namespaces().Create(r.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karpenter"}}, metav1.CreateOptions{})
	r.RequireNoError(err)
	r.StartOutside(services, true)
	for _, d := range documents {
		for i, s := range d.steps {
			name := fmt.Sprintf("%s, step %d: %s", d.name, i+1, s.does)
			if s.play == nil {
				r.Logf("– %s: it does not run here; %v cover it", name, s.topic.tests)
				continue
			}
			r.RunPhase(name, func() { s.play(r) })
		}
	}
	r.Stop()
}
