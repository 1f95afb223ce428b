package settings

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/netip"
	"net/url"
	"regexp"
)

// parseEndpoint accepts an absolute URL with a host, as Karpenter does.
func parseEndpoint(s *Settings, text string) error {
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() || u.Hostname() == "" {
		return errors.New("is not a URL such as https://api.prod.example.com")
	}
	s.Endpoint = text
	return nil
}

func parseCertificates(s *Settings, text string) error {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return errors.New("is not base64")
	}
	if block, _ := pem.Decode(decoded); block == nil {
		return errors.New("is not base64 of PEM certificates")
	}
	s.CABundle = text
	return nil
}

var kubernetesVersions = regexp.MustCompile(`^1\.\d{1,3}$`)

func parseAddressRange(s *Settings, text string) error {
	if _, err := netip.ParsePrefix(text); err != nil {
		return errors.New("is not a CIDR such as 10.100.0.0/16")
	}
	s.ServiceCIDR = text
	return nil
}
