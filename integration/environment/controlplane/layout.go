package controlplane

import (
	"fmt"
	"path/filepath"
)

// A layout has the file locations and ports of one control plane. Every argument of the
// five programs is derived from it.
type layout struct {
	assets string // folder of the programs
	dir    string // folder of this run: data, keys, configuration
	logs   string // folder of the programs' logs
	ports  ports
	noRBAC bool
	audit  bool
}

// ports are all on 127.0.0.1. The controller-manager, the scheduler and kwok listen on no
// port, so they cannot clash.
type ports struct{ apiserver, etcd, etcdPeer int }

func (l layout) path(name string) string    { return filepath.Join(l.dir, name) }
func (l layout) program(name string) string { return filepath.Join(l.assets, name) }
func (l layout) log(name string) string     { return filepath.Join(l.logs, name+".log") }

func (l layout) servingCert() string       { return l.path("serving.crt") }
func (l layout) servingKey() string        { return l.path("serving.key") }
func (l layout) serviceAccountKey() string { return l.path("service-account.key") }
func (l layout) tokens() string            { return l.path("tokens.csv") }
func (l layout) auditPolicy() string       { return l.path("audit-policy.yaml") }
func (l layout) auditLog() string          { return l.path("audit.log") }
func (l layout) kubeconfig() string        { return l.path("admin.kubeconfig") }

func (l layout) serverURL() string { return fmt.Sprintf("https://127.0.0.1:%d", l.ports.apiserver) }
func (l layout) etcdURL() string   { return loopbackURL(l.ports.etcd) }
func (l layout) peerURL() string   { return loopbackURL(l.ports.etcdPeer) }

func loopbackURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
