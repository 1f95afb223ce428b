package settings

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestControlPlane(t *testing.T) {
	bundle := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	read := func(env map[string]string) (Settings, error) {
		return Read(func(name string) (string, bool) { text, ok := env[name]; return text, ok })
	}
	s, err := read(map[string]string{
		Endpoint: "https://api.example.com", CABundle: bundle, ControlPlane: "false", Kubernetes: "1.35", ServiceCIDR: "fd00::/108",
	})
	if err != nil || s.Endpoint != "https://api.example.com" || s.CABundle != bundle || !s.IsSelfManaged || s.KubernetesVersion != "1.35" || s.ServiceCIDR != "fd00::/108" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := read(nil); err != nil || s.IsSelfManaged || s.Endpoint+s.CABundle+s.KubernetesVersion+s.ServiceCIDR != "" {
		t.Errorf("nothing is set: %+v, %v", s, err)
	}
	for name, values := range map[string][]string{
		Endpoint: {"api.example.com", "https://", "/x"}, CABundle: {"?", "AAAA"}, ControlPlane: {"not a boolean"},
		Kubernetes: {"v1.35", "1.35.1", "latest"}, ServiceCIDR: {"10.0.0.1", "10.0.0.0/33"},
	} {
		for _, value := range values {
			if _, err := read(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
}

func TestMarketSettings(t *testing.T) {
	for text, want := range map[string]bool{"": false, "true": true, "false": false} {
		s, err := Read(func(name string) (string, bool) {
			return text, name == IsolatedVPC || name == ZonalShift
		})
		if err != nil || s.IsolatedVPC != want || s.ZonalShift != want {
			t.Errorf("%q: isolated %t, shifts %t (%v)", text, s.IsolatedVPC, s.ZonalShift, err)
		}
	}
}
