package charts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/helm"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
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
// kubelet's probes from everywhere, and /metrics from the test pod and the named peers.
func TestNetworkPolicyIngress(t *testing.T) {
	t.Parallel()
	off := given{namespace: "joist", set: needed}
	if found := off.policies(t); len(found) > 0 {
		t.Errorf("without the value there are %d NetworkPolicies", len(found))
	}
	on := given{namespace: "joist", set: append([]string{"networkPolicy.enabled=true"}, needed...)}
	closed, open := on.policies(t), given{namespace: "joist", files: []string{"testdata/values/everything.yaml"}}.policies(t)
	tester := on.testPod(t)
	for service, deployment := range on.deployments(t) {
		for name, policy := range map[string]*networkingv1.NetworkPolicy{"closed": closed[service], "open": open[service]} {
			if policy == nil || !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}) {
				t.Fatalf("%s has for %s the policy %+v", name, service, policy)
			}
		}
		for key, value := range closed[service].Spec.PodSelector.MatchLabels {
			if deployment.Spec.Template.Labels[key] != value {
				t.Errorf("%s selects pods with %s=%s", service, key, value)
			}
		}
		rules := closed[service].Spec.Ingress
		if len(rules) != 2 || len(rules[0].From) > 0 || portOf(rules[0]) != 8081 || portOf(rules[1]) != 8080 || len(rules[1].From) != 1 {
			t.Fatalf("%s allows ingress %+v", service, rules)
		}
		if from := labels.SelectorFromSet(rules[1].From[0].PodSelector.MatchLabels); !from.Matches(labels.Set(tester.Labels)) || from.Matches(labels.Set(deployment.Spec.Template.Labels)) {
			t.Errorf("%s allows /metrics from %s; the test pod has the labels %v", service, from, tester.Labels)
		}
		if rules := open[service].Spec.Ingress; len(rules) != 2 || portOf(rules[0]) != 9091 || portOf(rules[1]) != 9090 || len(rules[1].From) != 2 {
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

// Pods reach everything that their settings name, and nothing else.
func TestNetworkPolicyEgress(t *testing.T) {
	t.Parallel()
	const dns, everywhere, identity = "[53 53] to pods in kube-system 169.254.20.10/32", "[443] to 0.0.0.0/0 ::/0", "[80] to 169.254.170.23/32 fd00:ec2::23/128"
	defaults := []string{dns, everywhere, everywhere, identity}
	for _, c := range []struct {
		set  []string
		want []string
	}{
		{nil, defaults},
		{[]string{"networkPolicy.podIdentity=false", "networkPolicy.imds=true"}, []string{dns, everywhere, everywhere, "[80] to 169.254.169.254/32 fd00:ec2::254/128"}},
		{[]string{"networkPolicy.apiServerCIDRs={10.0.0.0/24,10.100.0.1/32}", "networkPolicy.apiServerPort=6443", "networkPolicy.awsCIDRs={10.0.1.0/24}"},
			[]string{dns, "[6443] to 10.0.0.0/24 10.100.0.1/32", "[443] to 10.0.1.0/24", identity}},
		{[]string{"settings.tracesEndpoint=http://collector:4318", "settings.cloudWatchMetrics=tcp://cloudwatch-agent:25888"}, append(slices.Clone(defaults), "[4318] to", "[25888] to")},
		{[]string{"settings.tracesEndpoint=https://collector/v1", "settings.cloudWatchMetrics=stdout"}, append(slices.Clone(defaults), "[443] to")},
		{[]string{"settings.tracesEndpoint=http://[fd00::1]:4318/"}, append(slices.Clone(defaults), "[4318] to")},
		{[]string{"networkPolicy.extraEgress[0].ports[0].port=3128", "networkPolicy.extraEgress[0].to[0].ipBlock.cidr=10.0.9.9/32"}, append(slices.Clone(defaults), "[3128] to 10.0.9.9/32")},
	} {
		g := given{namespace: "joist", set: slices.Concat([]string{"networkPolicy.enabled=true"}, needed, c.set)}
		for service, policy := range g.policies(t) {
			var got []string
			for _, rule := range policy.Spec.Egress {
				got = append(got, egressText(rule))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s with %v (-want +got):\n%s", service, c.set, diff)
			}
		}
	}
}

// egressText returns a rule as its ports and destinations.
func egressText(rule networkingv1.NetworkPolicyEgressRule) string {
	var ports []string
	for _, port := range rule.Ports {
		ports = append(ports, port.Port.String())
	}
	to := []string{fmt.Sprint(ports, " to")}
	for _, peer := range rule.To {
		if peer.IPBlock != nil {
			to = append(to, peer.IPBlock.CIDR)
			continue
		}
		to = append(to, "pods in "+peer.NamespaceSelector.MatchLabels[corev1.LabelMetadataName])
	}
	return strings.Join(to, " ")
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
