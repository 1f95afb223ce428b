package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joist-autoscaler/joist/services/cli/internal/migrate"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// identityAWS simulates an AWS that returns the caller's identity, counts policy simulations
// and denies all other calls.
type identityAWS struct{ simulated *atomic.Int32 }

func (a identityAWS) Do(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	status, text := http.StatusForbidden, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`
	switch asked := string(body); {
	case strings.Contains(asked, "Action=GetCallerIdentity"):
		status, text = http.StatusOK, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/x</Arn><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`
	case strings.Contains(asked, "Action=SimulatePrincipalPolicy"):
		if r.Context().Err() == nil {
			a.simulated.Add(1)
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, r.Context().Err()
}

// rejectingAWS simulates an AWS that rejects the credentials.
type rejectingAWS struct{}

func (rejectingAWS) Do(r *http.Request) (*http.Response, error) {
	const text = `<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>The security token is invalid.</Message></Error></ErrorResponse>`
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// TestRejectedCredentials: rejected credentials are one entry, not one for each call.
func TestRejectedCredentials(t *testing.T) {
	_, unseen := Gather(t.Context(), Sources{
		Plan: testPermissions(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now,
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{Region: "eu-west-1", HTTPClient: rejectingAWS{}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, nil
		},
	})
	var whole int
	for _, u := range unseen {
		if u.Subject == WholeAWS {
			whole++
		}
		if strings.Contains(u.Reason, "token is invalid") {
			t.Errorf("%+v", u)
		}
	}
	if whole != 1 {
		t.Errorf("%d entries for AWS: %+v", whole, unseen)
	}
}

// TestUnreachableAPIServer: the bucket and IAM are read after the API server's timeout.
func TestUnreachableAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var simulated atomic.Int32
		opened, begun := false, time.Now()
		_, unseen := Gather(t.Context(), Sources{
			Plan: testPermissions(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now,
			AWS: func(context.Context) (aws.Config, error) {
				return aws.Config{Region: "eu-west-1", HTTPClient: identityAWS{&simulated}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, nil
			},
			Kube: func(ctx context.Context, path string) ([]byte, error) {
				<-ctx.Done()
				return nil, fault.E("reading "+path, fault.Retry, ctx.Err())
			},
			Store: func(ctx context.Context, _, _ string) (blob.Store, error) {
				opened = ctx.Err() == nil
				return nil, errors.New("not needed")
			},
		})
		if !opened || simulated.Load() == 0 {
			t.Errorf("bucket opened: %t, %d policy simulations", opened, simulated.Load())
		}
		late := 0
		for _, u := range unseen {
			if strings.Contains(u.Reason, "timed out") {
				late++
			}
		}
		if took := time.Since(begun); late != 1 || took > Timeout {
			t.Errorf("after %s: %+v", took, unseen)
		}
	})
}

// TestLargeCluster: the pages of a cluster of 4,500 nodes take longer than Timeout, and are read within
// ClusterTimeout. So is a slow list of Deployments.
func TestLargeCluster(t *testing.T) {
	for name, test := range map[string]struct {
		limit  time.Duration
		unread bool
	}{
		"the limit of doctor": {0, true},
		"--timeout 2m":        {2 * time.Minute, false},
		"--timeout 3s":        {3 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := GatherMigration(t.Context(), Sources{
					Plan: testPermissions(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now, ClusterTimeout: test.limit,
					AWS: func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("none") },
					Kube: func(ctx context.Context, path string) ([]byte, error) {
						kind, query, _ := strings.Cut(path, "?")
						pages, took := 1, time.Duration(0)
						switch {
						case strings.HasSuffix(kind, "/nodes"), strings.HasSuffix(kind, "/nodeclaims"):
							pages, took = 9, 700*time.Millisecond
						case strings.HasSuffix(kind, "/deployments"):
							took = 4 * time.Second
						}
						select {
						case <-time.After(took):
						case <-ctx.Done():
							return nil, fault.E("reading "+path, fault.Retry, ctx.Err())
						}
						page := 1
						if _, token, found := strings.Cut(query, "continue="); found {
							page, _ = strconv.Atoi(token)
						}
						if page == pages {
							return []byte(`{"items":[{"metadata":{"name":"last"}}]}`), nil
						}
						return fmt.Appendf(nil, `{"metadata":{"continue":"%d"},"items":[]}`, page+1), nil
					},
				}, "joist")
				for _, fact := range []migrate.Fact{migrate.Nodes, migrate.NodeClaims, migrate.Deployments} {
					if s, unread := f.Unread[fact]; unread != test.unread || unread && fact != migrate.Deployments && !strings.Contains(s.Fix, "--timeout") {
						t.Errorf("%s unread: %t %+v", fact, unread, s)
					}
				}
				if read := len(f.Nodes) == 1 && len(f.Claims) == 1; read == test.unread {
					t.Errorf("%d nodes and %d NodeClaims", len(f.Nodes), len(f.Claims))
				}
			})
		})
	}
}

// TestUnreachableAPIServerOfMigration: an API server that does not answer ends the reading early, with any
// --timeout.
func TestUnreachableAPIServerOfMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := GatherMigration(t.Context(), Sources{
			Plan: testPermissions(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now, ClusterTimeout: 2 * time.Minute,
			AWS: func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("none") },
			Kube: func(ctx context.Context, path string) ([]byte, error) {
				<-ctx.Done()
				return nil, fault.E("reading "+path, fault.Retry, ctx.Err())
			},
		}, "joist")
		if took := time.Since(begun); took > Timeout || f.Unread[migrate.Nodes].Subject != WholeCluster {
			t.Errorf("after %s: %+v", took, f.Unread)
		}
	})
}

// catalogAWS simulates an AWS with a node role and with the catalog's queue and function. The
// function has the given variables, or cannot be read ("none"). All other calls are denied.
type catalogAWS struct {
	variables string
	// eks counts the calls to EKS, and simulations the policy simulations about EKS.
	eks, simulations *atomic.Int32
}

func (a catalogAWS) Do(r *http.Request) (*http.Response, error) {
	var raw []byte
	if r.Body != nil {
		raw, _ = io.ReadAll(r.Body)
	}
	body, status, text := string(raw), http.StatusOK, ""
	switch target := r.Header.Get("X-Amz-Target"); {
	case strings.HasPrefix(r.URL.Host, "eks."):
		a.eks.Add(1)
	case strings.Contains(body, "eks%3ADescribeCluster"):
		a.simulations.Add(1)
	case strings.HasSuffix(target, ".GetQueueUrl") && strings.Contains(body, `-catalog"`):
		text = `{"QueueUrl":"https://sqs/1/prod-joist-catalog"}`
	case strings.HasSuffix(target, ".GetQueueAttributes"):
		text = `{"Attributes":{"QueueArn":"arn:aws:sqs:eu-west-1:1:prod-joist-catalog"}}`
	case strings.HasPrefix(r.URL.Host, "lambda.") && strings.Contains(r.URL.Path, "event-source-mappings"):
		text = `{"EventSourceMappings":[{"FunctionArn":"arn:aws:lambda:eu-west-1:1:function:c","State":"Enabled"}]}`
	case strings.HasPrefix(r.URL.Host, "lambda.") && a.variables != "none":
		text = `{"FunctionName":"c","Environment":{"Variables":{` + a.variables + `}}}`
	case strings.Contains(body, "Action=GetCallerIdentity"):
		text = `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/x</Arn><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`
	case strings.Contains(body, "Action=GetRole&RoleName=nodes"):
		text = `<GetRoleResponse><GetRoleResult><Role><Arn>arn:aws:iam::1:role/nodes</Arn></Role></GetRoleResult></GetRoleResponse>`
	case strings.Contains(body, "Action=ListAttachedRolePolicies"):
		text = `<ListAttachedRolePoliciesResponse><ListAttachedRolePoliciesResult></ListAttachedRolePoliciesResult></ListAttachedRolePoliciesResponse>`
	}
	if text == "" {
		status, text = http.StatusForbidden, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, r.Context().Err()
}

// TestEKSIsCalledOnlyIfItRunsTheControlPlane: the settings of the catalog's function decide,
// else the settings of the shell.
func TestEKSIsCalledOnlyIfItRunsTheControlPlane(t *testing.T) {
	const deployments = `{"items":[{"metadata":{"namespace":"joist","name":"joist-watcher","labels":{"app.kubernetes.io/component":"watcher"}},` +
		`"spec":{"template":{"spec":{"serviceAccountName":"joist-watcher"}}}}]}`
	for name, test := range map[string]struct {
		variables string
		shell     bool
		calls     bool
	}{
		"default":                           {"", false, true},
		"true in the function":              {`"EKS_CONTROL_PLANE":"true"`, false, true},
		"false in the function":             {`"EKS_CONTROL_PLANE":"false"`, false, false},
		"false in the entry of the cluster": {`"JOIST_CLUSTERS":"[{\"JOIST_CLUSTER_NAME\":\"prod\",\"JOIST_QUEUE_URL\":\"https://sqs/1/prod-joist-catalog\",\"EKS_CONTROL_PLANE\":\"false\"}]"`, false, false},
		"false only in the shell":           {`"A":"b"`, true, true},
		"no function, false in the shell":   {"none", true, false},
		"no function, not set":              {"none", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var eks, rights atomic.Int32
			known, unseen := Gather(t.Context(), Sources{
				Plan: testPermissions(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now, NoEKS: test.shell,
				AWS: func(context.Context) (aws.Config, error) {
					return aws.Config{Region: "eu-west-1", HTTPClient: catalogAWS{test.variables, &eks, &rights}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}, nil
				},
				Kube: func(_ context.Context, path string) ([]byte, error) {
					switch {
					case strings.HasPrefix(path, "/apis/apps/v1/deployments"):
						return []byte(deployments), nil
					case path == "/version":
						return []byte(`{"gitVersion":"v1.35.2"}`), nil
					}
					return []byte(`{}`), nil
				},
			})
			// Two calls: the access configuration and the Pod Identity of the ServiceAccount.
			want := map[bool]int32{true: 2}[test.calls]
			if eks.Load() != want || (rights.Load() > 0) != test.calls || (known.SelfManaged == nil) != test.calls || known.Kubernetes != "v1.35.2" {
				t.Errorf("%d calls to EKS, %d policy simulations about it: %+v, %q", eks.Load(), rights.Load(), known.SelfManaged, known.Kubernetes)
			}
			if !test.calls && strings.Contains(fmt.Sprint(unseen), "eks:") {
				t.Errorf("%+v", unseen)
			}
			if len(known.Accounts) == 0 && !test.calls {
				t.Error("the ServiceAccount is missing")
			}
		})
	}
}
