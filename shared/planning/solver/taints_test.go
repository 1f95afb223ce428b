package solver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestTolerations(t *testing.T) {
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for _, tt := range []struct {
		name       string
		toleration corev1.Toleration
		want       bool
	}{
		{"equal", corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}, true},
		{"no operator means equal", corev1.Toleration{Key: "k", Value: "v"}, true},
		{"another value", corev1.Toleration{Key: "k", Value: "w"}, false},
		{"another effect", corev1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, false},
		{"exists", corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}, true},
		{"another key exists", corev1.Toleration{Key: "j", Operator: corev1.TolerationOpExists}, false},
		{"anything", corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{"unknown operator", corev1.Toleration{Key: "k", Operator: "Like", Value: "v"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := toleratesTaint(tt.toleration, taint); got != tt.want {
				t.Errorf("tolerates = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestLastingTaints(t *testing.T) {
	stays := corev1.Taint{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	startup := corev1.Taint{Key: "cni", Effect: corev1.TaintEffectNoExecute}
	cloudy := corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	valued := startup
	valued.Value = "of another value"
	all := []corev1.Taint{
		stays, startup, valued, {Key: "readiness.k8s.io/net", Effect: corev1.TaintEffectNoSchedule}, cloudy, karpenter.UnregisteredTaint(),
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}, karpenter.RebootingTaint(),
	}
	if diff := cmp.Diff([]corev1.Taint{stays}, lastingTaints(all, []corev1.Taint{startup})); diff != "" {
		t.Error(diff)
	}
}

func TestPortsClash(t *testing.T) {
	for _, tt := range []struct {
		name        string
		taken, want planning.HostPort
		clash       bool
	}{
		{"same", planning.HostPort{Port: 80}, planning.HostPort{Port: 80, Protocol: corev1.ProtocolTCP}, true},
		{"another port", planning.HostPort{Port: 80}, planning.HostPort{Port: 81}, false},
		{"another protocol", planning.HostPort{Port: 80}, planning.HostPort{Port: 80, Protocol: corev1.ProtocolUDP}, false},
		{"another address", planning.HostPort{Port: 80, IP: "10.0.0.1"}, planning.HostPort{Port: 80, IP: "10.0.0.2"}, false},
		{"wildcard", planning.HostPort{Port: 80, IP: "10.0.0.1"}, planning.HostPort{Port: 80, IP: "0.0.0.0"}, true},
		{"IPv6 wildcard", planning.HostPort{Port: 80, IP: "::"}, planning.HostPort{Port: 80, IP: "fd00::1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := planning.PortsConflict([]planning.HostPort{tt.taken}, []planning.HostPort{tt.want}); got != tt.clash {
				t.Errorf("clash = %v, want %v", got, tt.clash)
			}
		})
	}
}
