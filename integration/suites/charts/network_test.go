package charts

import (
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/helm"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// policies returns the rendered NetworkPolicies by service.
func (g given) policies(t *testing.T) map[string]*networkingv1.NetworkPolicy {
	t.Helper()
	g.flags = nil
	objects, err := helm.Objects(g.render(t))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*networkingv1.NetworkPolicy{}
	for _, object := range objects {
		if policy, ok := object.(*networkingv1.NetworkPolicy); ok {
			found[policy.Spec.PodSelector.MatchLabels["app.kubernetes.io/component"]] = policy
		}
	}
	return found
}

// By default there are no NetworkPolicies. With them, each service's pods accept the
// kubelet's probes from everywhere, /metrics from the named peers, and nothing else.
func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	off := given{namespace: "joist", set: needed}
	if found := off.policies(t); len(found) > 0 {
		t.Errorf("without the value there are %d NetworkPolicies", len(found))
	}
	on := given{namespace: "joist", set: append([]string{"networkPolicy.enabled=true"}, needed...)}
	closed, open := on.policies(t), given{namespace: "joist", files: []string{"testdata/values/everything.yaml"}}.policies(t)
	for service, deployment := range on.deployments(t) {
		for name, policy := range map[string]*networkingv1.NetworkPolicy{"closed": closed[service], "open": open[service]} {
			if policy == nil || len(policy.Spec.PolicyTypes) != 1 || policy.Spec.PolicyTypes[0] != networkingv1.PolicyTypeIngress {
				t.Fatalf("%s has for %s the policy %+v", name, service, policy)
			}
		}
		for key, value := range closed[service].Spec.PodSelector.MatchLabels {
			if deployment.Spec.Template.Labels[key] != value {
				t.Errorf("%s selects pods with %s=%s", service, key, value)
			}
		}
		if rules := closed[service].Spec.Ingress; len(rules) != 1 || len(rules[0].From) > 0 || portOf(rules[0]) != 8081 {
			t.Errorf("%s allows ingress %+v", service, rules)
		}
		if rules := open[service].Spec.Ingress; len(rules) != 2 || portOf(rules[0]) != 9091 || portOf(rules[1]) != 9090 || len(rules[1].From) != 1 {
			t.Errorf("with peers %s allows ingress %+v", service, rules)
		}
	}
	none := given{namespace: "joist", set: append([]string{"networkPolicy.enabled=true", "controller.metrics.port=0", "controller.healthProbe.port=0"}, needed...)}
	for service, policy := range none.policies(t) {
		if len(policy.Spec.Ingress) > 0 {
			t.Errorf("without ports %s allows ingress %+v", service, policy.Spec.Ingress)
		}
	}
}

// portOf returns the only port of a rule, or 0 if it has several.
func portOf(rule networkingv1.NetworkPolicyIngressRule) int32 {
	if len(rule.Ports) != 1 || rule.Ports[0].Port == nil {
		return 0
	}
	return rule.Ports[0].Port.IntVal
}

// Pods without requests are evicted first: by default each service requests its measured
// usage, without a limit. Values replace the default.
func TestResourceRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set         []string
		cpu, memory string
		limited     bool
	}{
		{nil, "100m", "768Mi", false},
		{[]string{"controller.resources.limits.memory=512Mi"}, "0", "0", true},
		{[]string{"watcher.resources.requests.cpu=1", "lifecycle.resources.requests.cpu=1"}, "1", "0", false},
	} {
		for service, d := range (given{namespace: "joist", set: append(test.set, needed...)}).deployments(t) {
			resources := d.Spec.Template.Spec.Containers[0].Resources
			cpu, memory := resources.Requests[corev1.ResourceCPU], resources.Requests[corev1.ResourceMemory]
			if cpu.String() != test.cpu || memory.String() != test.memory || (len(resources.Limits) > 0) != test.limited {
				t.Errorf("with %v %s has the resources %+v", test.set, service, resources)
			}
		}
	}
}
