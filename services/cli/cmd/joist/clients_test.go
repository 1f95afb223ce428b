package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

// TestOpenCluster reads paths of an API server with a kubeconfig, including queries, and
// checks the kinds of its errors.
func TestOpenCluster(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"/apis/none": http.StatusNotFound, "/apis/denied": http.StatusForbidden, "/apis/login": http.StatusUnauthorized}[strings.TrimPrefix(r.URL.Path, "/proxy")]
		if agent := r.UserAgent(); agent != build.UserAgent("joist") {
			t.Errorf("the user agent is %q", agent)
		}
		if status == 0 {
			_, _ = fmt.Fprintf(w, "%s: %s of %s", r.URL.Path, r.URL.Query().Get("labelSelector"), r.Header.Get("Authorization"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"User x cannot get this","code":%d}`, status)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + server.URL + `/proxy","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"secret"}}],` +
		`"contexts":[{"name":"here","context":{"cluster":"c","user":"u"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := openCluster(file, "here")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t.Context(), "/apis/apps/v1/deployments?labelSelector=a%20in%20(b,c)")
	if err != nil || string(got) != "/proxy/apis/apps/v1/deployments: a in (b,c) of Bearer secret" {
		t.Errorf("%q, %v", got, err)
	}
	for path, kind := range map[string]fault.Kind{"/apis/none": fault.Missing, "/apis/denied": fault.Denied, "/apis/login": fault.Invalid} {
		_, err := read(t.Context(), path)
		if !fault.Is(err, kind) {
			t.Errorf("%s: %v, want %s", path, err, kind)
		}
		if kind == fault.Denied && !strings.Contains(err.Error(), "User x cannot get this") {
			t.Errorf("%s: %v has not the server's message", path, err)
		}
	}
	if _, err := openCluster(filepath.Join(t.TempDir(), "none"), ""); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.FindHint(err), "update-kubeconfig") {
		t.Errorf("without a file: %v", err)
	}
}

// TestOpenLive lists objects of an API server with a kubeconfig, and takes the cluster's name and region
// from its ARN or its address.
func TestOpenLive(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.UserAgent() != build.UserAgent("joist") {
			t.Errorf("%s by %q", r.Method, r.UserAgent())
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePoolList","items":[{"metadata":{"name":"default"}}]}`))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"token":"secret"}}],"current-context":"arn",` +
		`"clusters":[{"name":"arn:aws:eks:eu-west-1:111122223333:cluster/shop","cluster":{"server":"` + server.URL + `"}},{"name":"eksctl","cluster":{"server":"https://ABC.gr7.us-east-2.eks.amazonaws.com"}}],` +
		`"contexts":[{"name":"arn","context":{"cluster":"arn:aws:eks:eu-west-1:111122223333:cluster/shop","user":"u"}},{"name":"eksctl","context":{"cluster":"eksctl","user":"u"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	byARN, err := openLive(file, "")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := byARN.ListPages(t.Context(), cluster.NodePools, "", "", func([]cluster.Object, int) {})
	if err != nil || len(objects) != 1 || byARN.Name != "shop" || byARN.Region != "eu-west-1" {
		t.Errorf("%d objects of %s in %s: %v", len(objects), byARN.Name, byARN.Region, err)
	}
	if byAddress, err := openLive(file, "eksctl"); err != nil || byAddress.Name != "eksctl" || byAddress.Region != "us-east-2" {
		t.Errorf("%s in %s: %v", byAddress.Name, byAddress.Region, err)
	}
	if _, err := openLive(file, "prod"); err == nil || !strings.Contains(err.Error(), `it has no context "prod"`) || fault.FindHint(err) != "--context with one of arn, eksctl" {
		t.Errorf("a missing context: %v", err)
	}
	binary := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(binary, []byte{0xff, 0xfe, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLive(binary, ""); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), binary) {
		t.Errorf("an unreadable file: %v", err)
	}
}

// TestCredentialsError: without an answer of the metadata service, the error reports that there
// are no credentials.
func TestCredentialsError(t *testing.T) {
	expired := errors.New("the SSO session has expired")
	metadata := fmt.Errorf("no EC2 IMDS role found, %w", &smithy.OperationError{ServiceID: "ec2imds", OperationName: "GetMetadata", Err: errors.New("timeout")})
	for _, test := range []struct {
		err  error
		want string
	}{
		{metadata, "no credentials"}, {context.DeadlineExceeded, "no credentials"}, {expired, expired.Error()}, {context.Canceled, "canceled"},
	} {
		if got := credentialsError(test.err); !strings.Contains(got.Error(), test.want) {
			t.Errorf("%v is %q, want %q", test.err, got, test.want)
		}
	}
}

// TestRunProgram runs an existing program and a missing one.
func TestRunProgram(t *testing.T) {
	if output, err := runProgram(t.Context(), "go", "version"); err != nil || !strings.HasPrefix(output, "go version") {
		t.Errorf("%q, %v", output, err)
	}
	if _, err := runProgram(t.Context(), "joist-is-no-such-program"); !fault.Is(err, fault.Missing) {
		t.Errorf("%v", err)
	}
}

// TestLoadAWS: requests name the command and its version.
func TestLoadAWS(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SDK_UA_APP_ID": ""} {
		t.Setenv(name, value)
	}
	if loaded, err := loadAWS(t.Context()); err != nil || loaded.AppID != build.UserAgent("joist") {
		t.Errorf("%q, %v", loaded.AppID, err)
	}
}
