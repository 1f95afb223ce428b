package check

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// FindKubeletProblem returns the first problem of spec.kubelet that its text alone shows, in Karpenter's order and
// with its reasons and messages, because the schema checks nothing there (Karpenter:
// pkg/controllers/nodeclass/validation.go).
func FindKubeletProblem(class karpenter.EC2NodeClass, settings planning.Settings) *event.Problem {
	if errs := kubelet.Validate(class.Spec.Kubelet); len(errs) > 0 {
		var texts []string
		for _, err := range errs {
			texts = append(texts, err.Error())
		}
		return newProblem(event.InvalidKubeletConfiguration, strings.Join(texts, "; "))
	}
	parsed, err := class.Spec.Kubelet.Parse()
	if err != nil {
		return newProblem(event.InvalidKubeletConfiguration, err.Error())
	}
	if expression.Uses(parsed) && !settings.Gates.NodeClassCEL {
		return newProblem(event.KubeletExpressionsDisabled, expression.ErrDisabled.Error())
	}
	if errs := expression.Check(parsed); len(errs) > 0 {
		return newProblem(event.KubeletExpressionInvalid, errs[0].Error())
	}
	family, err := class.AMIFamily()
	if err != nil {
		return nil // The condition of the images reports it.
	}
	if err := kubelet.CheckFamily(family, class.Spec.Kubelet); err != nil {
		return newProblem(event.UnsupportedKubeletConfiguration, err.Error())
	}
	return nil
}

// HasExpressions reports whether the class needs EvaluateExpressions.
func HasExpressions(class karpenter.EC2NodeClass) bool {
	parsed, err := class.Spec.Kubelet.Parse()
	return err == nil && expression.Uses(parsed)
}

// EvaluateExpressions returns the problem of the first type for which an expression gives no usable number, or
// nil. It is a problem although the class may not use the type.
func EvaluateExpressions(class karpenter.EC2NodeClass, settings planning.Settings, types []catalog.InstanceType) *event.Problem {
	config, err := instancetypes.NewNodeConfig(&class, settings)
	for i := 0; err == nil && i < len(types); i++ {
		_, err = expression.Resolve(types[i], config)
	}
	if err != nil {
		return newProblem(event.KubeletExpressionEvaluationFailed, err.Error())
	}
	return nil
}
