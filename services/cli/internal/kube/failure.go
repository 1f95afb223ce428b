package kube

import (
	"errors"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// missingPlugin and failedPlugin match client-go's errors about the program that a kubeconfig runs for credentials.
var (
	missingPlugin = regexp.MustCompile(`getting credentials: exec: executable (\S+) not found`)
	failedPlugin  = regexp.MustCompile(`getting credentials: (?:exec: )?([^\n]+)`)
)

// errPage is the cause if a page is received instead of an object.
var errPage = errors.New("the answer is a page for browsers, not of an API server: a proxy may have sent it")

const pageHint = "check the server in the kubeconfig, HTTPS_PROXY and NO_PROXY"

// DescribeFailure returns the error of a read that failed for the whole cluster, with its cause and a remedy: no connection,
// wrong credentials, or a program for credentials that is missing or fails. It returns nil for any other error.
func DescribeFailure(what string, err error) error {
	text := err.Error()
	if apierrors.IsUnauthorized(err) {
		return fault.F(what, fault.Invalid, "the API server does not accept your credentials: they are wrong or have expired").
			WithHint("log in again (aws sso login, or aws eks update-kubeconfig --name NAME), and check with kubectl auth whoami")
	}
	if found := missingPlugin.FindStringSubmatch(text); found != nil {
		return fault.F(what, fault.Invalid, "the program %s, from which the kubeconfig gets credentials, is not installed", found[1]).
			WithHint("install %s, or add its folder to PATH", found[1])
	}
	if found := failedPlugin.FindStringSubmatch(text); found != nil {
		return fault.F(what, fault.Invalid, "the program from which the kubeconfig gets credentials failed: %s", found[1]).
			WithHint("log in again (aws sso login), and check with kubectl auth whoami")
	}
	if strings.Contains(text, "serializer for text/html") {
		return fault.E(what, fault.Invalid, errPage).WithHint(pageHint)
	}
	if connection, ok := errors.AsType[*url.Error](err); ok {
		server := connection.URL
		if at, err := url.Parse(server); err == nil {
			server = at.Scheme + "://" + at.Host
		}
		return fault.F(what, fault.Retry, "no connection to %s: %w", server, connection.Err).
			WithHint("check the server in the kubeconfig, and with kubectl get nodes that it can be reached from here")
	}
	return nil
}

// CheckAnswer returns an error if a text is a page for browsers.
func CheckAnswer(what string, text []byte) error {
	if strings.HasPrefix(strings.TrimSpace(string(text[:min(len(text), 100)])), "<") {
		return fault.E(what, fault.Invalid, errPage).WithHint(pageHint)
	}
	return nil
}
