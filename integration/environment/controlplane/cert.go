package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// servingCertificate returns a self-signed certificate for the API server, the only one
// that clients trust. It is valid from an hour ago, for clocks that were just set back,
// and longer than any test run.
func servingCertificate(now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating the serving key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "joist test control plane"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("generating the serving certificate: %w", err)
	}
	keyPEM, err = encodeKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, err
}

// tokenKey returns the key that signs service account tokens.
func tokenKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the service accounts' key: %w", err)
	}
	return encodeKey(key)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// A secrets value has the credentials of a client: the trusted certificate, and a token
// of a member of system:masters, who has all permissions under RBAC as well.
type secrets struct {
	certificate []byte
	token       string
}

// writeSecrets writes keys, certificate and tokens to the layout's folder.
func writeSecrets(l layout) (secrets, error) {
	certificate, key, err := servingCertificate(time.Now())
	if err != nil {
		return secrets{}, err
	}
	signing, err := tokenKey()
	if err != nil {
		return secrets{}, err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return secrets{}, fmt.Errorf("generating the admin's token: %w", err)
	}
	s := secrets{certificate: certificate, token: hex.EncodeToString(random)}
	for path, content := range map[string][]byte{
		l.servingCert():       certificate,
		l.servingKey():        key,
		l.serviceAccountKey(): signing,
		l.tokens():            []byte(s.token + `,admin,admin,"system:masters"` + "\n"),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return secrets{}, fmt.Errorf("writing the control plane's keys: %w", err)
		}
	}
	return s, nil
}
