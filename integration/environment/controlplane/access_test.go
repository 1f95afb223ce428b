package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
)

func TestServingCertificate(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	certificate, key, err := servingCertificate(now)
	check(t, err)
	pair, err := tls.X509KeyPair(certificate, key)
	check(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		t.Fatal("the certificate is not a CA certificate")
	}
	tests := []struct {
		name string
		host string
		when time.Time
		ok   bool
	}{
		{"loopback", "127.0.0.1", now, true},
		{"the API server's name in a pod", "kubernetes.default.svc", now, true},
		{"a clock that was set back", "127.0.0.1", now.Add(-59 * time.Minute), true},
		{"after four weeks", "127.0.0.1", now.Add(29 * 24 * time.Hour), true},
		{"after two months", "127.0.0.1", now.Add(60 * 24 * time.Hour), false},
		{"another host", "example.com", now, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: tt.host, Roots: roots, CurrentTime: tt.when})
			if (err == nil) != tt.ok {
				t.Errorf("Verify returned %v, want success %t", err, tt.ok)
			}
		})
	}
}

// TestSecretsAreReadableByOwnerOnly checks that only the owner can read the keys, and that clients get the same
// token that the server reads.
func TestSecretsAreReadableByOwnerOnly(t *testing.T) {
	l := layout{dir: t.TempDir()}
	s, err := writeSecrets(l)
	check(t, err)
	for _, path := range []string{l.servingCert(), l.servingKey(), l.serviceAccountKey(), l.tokens()} {
		info, err := os.Stat(path)
		check(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	content, err := os.ReadFile(l.tokens())
	check(t, err)
	rows, err := csv.NewReader(strings.NewReader(string(content))).ReadAll()
	check(t, err)
	if len(rows) != 1 || rows[0][0] != s.token || rows[0][3] != "system:masters" || len(s.token) < 32 {
		t.Errorf("tokens %q for a client's token of %d characters", rows, len(s.token))
	}
}

func TestKubeconfig(t *testing.T) {
	want := restConfig("https://127.0.0.1:1", secrets{certificate: []byte("certificate"), token: "token"})
	for _, user := range []string{"", "system:serviceaccount:joist:watcher"} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		check(t, writeKubeconfig(path, want, user))
		got, err := clientcmd.BuildConfigFromFlags("", path)
		check(t, err)
		if got.Host != want.Host || got.BearerToken != want.BearerToken || string(got.CAData) != string(want.CAData) {
			t.Errorf("got %v, want %v", got, want)
		}
		if got.Impersonate.UserName != user {
			t.Errorf("acts as %v, want %q", got.Impersonate, user)
		}
	}
}

// TestReservedPorts checks that a server that shares the port can use it, and that other
// processes cannot.
func TestReservedPorts(t *testing.T) {
	p, held, err := reservePorts()
	check(t, err)
	defer held.release()
	if p.apiserver == p.etcd || p.etcd == p.etcdPeer || p.apiserver == p.etcdPeer {
		t.Errorf("the ports are not distinct: %+v", p)
	}
	address := strings.TrimPrefix(loopbackURL(p.etcd), "http://")
	if stranger, err := net.Listen("tcp", address); err == nil {
		_ = stranger.Close()
		t.Error("another process bound a reserved port")
	}
	if answers(t.Context(), p.etcd) {
		t.Error("a reserved port accepts connections before its server runs")
	}
	server, err := (&net.ListenConfig{Control: sharePort}).Listen(t.Context(), "tcp", address)
	check(t, err)
	defer server.Close()
	if !answers(t.Context(), p.etcd) {
		t.Error("a server that shares the port is not reached")
	}
}

func TestReleasedPortsAreFree(t *testing.T) {
	p, held, err := reservePorts()
	check(t, err)
	held.release()
	server, err := net.Listen("tcp", strings.TrimPrefix(loopbackURL(p.apiserver), "http://"))
	if err != nil {
		t.Fatalf("a released port is still bound: %v", err)
	}
	_ = server.Close()
}

// sharePort sets the socket option that the flags of etcd and the API server set.
func sharePort(_, _ string, conn syscall.RawConn) error {
	var err error
	control := conn.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(control, err)
}
