package controlplane

import (
	"strconv"
	"strings"
)

// The node annotation that selects kwok's nodes. kwok ignores other nodes, so that a test
// can set their conditions itself.
const (
	NodeAnnotation      = "kwok.x-k8s.io/node"
	NodeAnnotationValue = "fake"
)

// switchedOff are the controllers that are useless or harmful here: they need a cloud,
// kubelet certificates, or volume drivers. The controllers that remove the protection
// finalizers of volumes and claims are not listed: admission adds the finalizers, and
// without the controllers a volume could never be deleted.
var switchedOff = []string{
	"bootstrap-signer-controller",
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller",
	"cloud-node-lifecycle-controller",
	"node-ipam-controller",
	"node-route-controller",
	"persistentvolume-attach-detach-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-expander-controller",
	"service-lb-controller",
	"token-cleaner-controller",
	"ttl-controller",
}

func (l layout) etcdArgs() []string {
	return []string{
		"--name=default",
		"--data-dir=" + l.path("etcd"),
		"--listen-client-urls=" + l.etcdURL(),
		"--advertise-client-urls=" + l.etcdURL(),
		"--listen-peer-urls=" + l.peerURL(),
		"--initial-advertise-peer-urls=" + l.peerURL(),
		"--initial-cluster=default=" + l.peerURL(),
		// The data is removed after the test, so syncing it to disk is useless.
		"--unsafe-no-fsync",
		// The ports stay reserved until Stop (see port.go).
		"--socket-reuse-port",
		"--log-level=warn",
	}
}

func (l layout) apiserverArgs() []string {
	authorization := "RBAC"
	if l.noRBAC {
		authorization = "AlwaysAllow"
	}
	args := []string{
		"--etcd-servers=" + l.etcdURL(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.ports.apiserver),
		"--permit-port-sharing",
		"--tls-cert-file=" + l.servingCert(),
		"--tls-private-key-file=" + l.servingKey(),
		"--token-auth-file=" + l.tokens(),
		"--authorization-mode=" + authorization,
		"--service-account-issuer=" + l.serverURL(),
		"--service-account-signing-key-file=" + l.serviceAccountKey(),
		"--service-account-key-file=" + l.serviceAccountKey(),
		"--service-cluster-ip-range=10.96.0.0/16",
		// A loopback address is not a valid endpoint, and no client looks it up.
		"--endpoint-reconciler-type=none",
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1000",
	}
	if l.audit {
		args = append(args, "--audit-policy-file="+l.auditPolicy(), "--audit-log-path="+l.auditLog())
	}
	return args
}

func (l layout) controllerManagerArgs() []string {
	return append(l.clientArgs(),
		"--controllers=*,-"+strings.Join(switchedOff, ",-"),
		"--service-account-private-key-file="+l.serviceAccountKey(),
		"--root-ca-file="+l.servingCert(),
		// kwok renews no leases (see kwokArgs), so missing leases must not matter. The
		// node-lifecycle controller stays on, because it removes the not-ready taint.
		"--node-monitor-grace-period=1h",
		"--node-startup-grace-period=1h",
	)
}

func (l layout) schedulerArgs() []string { return l.clientArgs() }

// clientArgs are the flags of the two programs that are only clients of the API server.
func (l layout) clientArgs() []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(),
		"--authentication-skip-lookup",
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
	}
}

func (l layout) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(),
		"--config=" + l.program(kwokStages),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + NodeAnnotation + "=" + NodeAnnotationValue,
		"--cidr=10.128.0.0/9",
		// With leases, pods on deleted and recreated nodes never ran.
		"--node-lease-duration-seconds=0",
	}
}
