package controlplane

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// restConfig returns the admin's configuration. Its rate limits are far above a test's
// load, so that client-side throttling never slows a test.
func restConfig(server string, s secrets) *rest.Config {
	return &rest.Config{
		Host:            server,
		BearerToken:     s.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.certificate},
		QPS:             1000,
		Burst:           2000,
	}
}

// writeKubeconfig writes the same access for processes that read KUBECONFIG. With a user,
// the admin impersonates that user.
func writeKubeconfig(path string, config *rest.Config, user string) error {
	file := api.NewConfig()
	file.CurrentContext = "joist"
	file.Clusters["joist"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["joist"] = &api.AuthInfo{Token: config.BearerToken, Impersonate: user}
	file.Contexts["joist"] = &api.Context{Cluster: "joist", AuthInfo: "joist"}
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}
