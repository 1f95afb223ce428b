package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// region is the region of all peers.
const region = "eu-west-1"

// config returns the configuration of AWS clients for the peer at the URL.
func config(url string) aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDPEER", "secret", ""),
	}
}

const elasticMQ = `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = %[1]s, context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = %[1]s, sqs-limits = strict }
rest-stats { enabled = false }
`

// startElasticMQ starts a server for this test and returns its URL.
func startElasticMQ(t *testing.T, at installed) string {
	t.Helper()
	port := freePort(t)
	path := filepath.Join(t.TempDir(), "elasticmq.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, elasticMQ, port), 0o666); err != nil {
		t.Fatal(err)
	}
	url := "http://127.0.0.1:" + port
	serve(t, url, "java", "-Dconfig.file="+path, "-cp", at.classes, "org.elasticmq.server.Main")
	return url
}

// startMoto starts a server for this test and returns its URL.
func startMoto(t *testing.T, at installed) string {
	t.Helper()
	port := freePort(t)
	url := "http://127.0.0.1:" + port
	serve(t, url+"/moto-api/", at.python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port)
	return url
}

// startLocalStack starts a server for this test and returns its URL. It runs as a process
// of this machine, also if Docker is available, so that it lacks the same features
// everywhere.
func startLocalStack(t *testing.T, at installed) string {
	t.Helper()
	port, dir := freePort(t), t.TempDir()
	url := "http://127.0.0.1:" + port
	serve(t, url+"/_localstack/health", "env", "GATEWAY_LISTEN=127.0.0.1:"+port, "FILESYSTEM_ROOT="+dir, "DOCKER_HOST=unix:///nonexistent",
		"DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1", "DNS_ADDRESS=0", "EAGER_SERVICE_LOADING=0",
		at.localstack, "-m", "localstack.runtime.main")
	return url
}
