package stsrole_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joist-autoscaler/joist/shared/aws/stsrole"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const role = "arn:aws:iam::111122223333:role/prod-joist-planner"

// desk is a fake STS: it records requests, and returns credentials that are valid for a while, or an error.
func desk(t *testing.T, good time.Duration, refuse string) (aws.Config, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		key, _, _ = strings.Cut(key, "/")
		asked = append(asked, key+" takes "+form.Get("RoleArn")+" as "+form.Get("RoleSessionName"))
		if refuse != "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>no</Message></Error></ErrorResponse>", refuse)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA%d</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			len(asked), time.Now().Add(good).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDPROCESS", "secret", ""),
	}, &asked
}

// A role is assumed once while its credentials are valid, with the session name and the process's own credentials.
func TestTake(t *testing.T) {
	config, asked := desk(t, time.Hour, "")
	taken := stsrole.AssumeRole(config, role, "planner@prod")
	if len(*asked) > 0 {
		t.Error("it is taken before it is needed")
	}
	for range 3 {
		found, err := taken.Credentials.Retrieve(t.Context())
		if err != nil || found.AccessKeyID != "ASIA1" {
			t.Errorf("%s, %v", found.AccessKeyID, err)
		}
	}
	if len(*asked) != 1 || (*asked)[0] != "AKIDPROCESS takes "+role+" as planner@prod" {
		t.Errorf("asked %q", *asked)
	}
	if own, err := config.Credentials.Retrieve(t.Context()); err != nil || own.AccessKeyID != "AKIDPROCESS" {
		t.Errorf("the process is %s now: %v", own.AccessKeyID, err)
	}
}

// Credentials that have expired, or expire soon, are renewed.
func TestTakeAgain(t *testing.T) {
	for name, good := range map[string]time.Duration{"ended": -time.Second, "ending": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			config, _ := desk(t, good, "")
			taken := stsrole.AssumeRole(config, role, "planner@prod")
			for _, want := range []string{"ASIA1", "ASIA2"} {
				if found, err := taken.Credentials.Retrieve(t.Context()); err != nil || found.AccessKeyID != want {
					t.Errorf("%s instead of %s: %v", found.AccessKeyID, want, err)
				}
			}
		})
	}
}

// Regardless of the error of STS, the call was not made, and the error names the role whose permission is missing.
func TestRefused(t *testing.T) {
	for _, code := range []string{"AccessDenied", "ExpiredToken", "ValidationError"} {
		config, _ := desk(t, time.Hour, code)
		_, err := stsrole.AssumeRole(config, role, "planner@prod").Credentials.Retrieve(t.Context())
		if !fault.Is(err, fault.Retry) || !strings.Contains(err.Error(), "taking the role "+role) || !strings.Contains(err.Error(), code) ||
			!strings.Contains(fault.FindHint(err), "planner@prod") {
			t.Errorf("%s: %v", code, err)
		}
	}
}
