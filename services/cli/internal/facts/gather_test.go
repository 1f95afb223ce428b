package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// answers is an AWS that knows who asks, and refuses all else at once.
type answers struct{ simulated *atomic.Int32 }

func (a answers) Do(r *http.Request) (*http.Response, error) {
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

// refusal is an AWS that does not accept the credentials.
type refusal struct{}

func (refusal) Do(r *http.Request) (*http.Response, error) {
	const text = `<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>The security token is invalid.</Message></Error></ErrorResponse>`
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// TestCredentialsThatAWSRefuses are one entry, not one of each call.
func TestCredentialsThatAWSRefuses(t *testing.T) {
	_, unseen := Gather(t.Context(), Sources{
		Plan: card(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now,
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{Region: "eu-west-1", HTTPClient: refusal{}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, nil
		},
	})
	var whole int
	for _, u := range unseen {
		if u.What == WholeAWS {
			whole++
		}
		if strings.Contains(u.Why, "token is invalid") {
			t.Errorf("%+v", u)
		}
	}
	if whole != 1 {
		t.Errorf("%d entries of AWS: %+v", whole, unseen)
	}
}

// TestAnAPIServerOutOfReach takes no time from the bucket and from IAM, which are asked when
// it has had its own.
func TestAnAPIServerOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var simulated atomic.Int32
		opened, begun := false, time.Now()
		_, unseen := Gather(t.Context(), Sources{
			Plan: card(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now,
			AWS: func(context.Context) (aws.Config, error) {
				return aws.Config{Region: "eu-west-1", HTTPClient: answers{&simulated}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, nil
			},
			Kube: func(ctx context.Context, path string) ([]byte, error) {
				<-ctx.Done()
				return nil, fault.E("reading "+path, fault.Retry, ctx.Err())
			},
			Store: func(ctx context.Context, _, _ string) (blob.Store, error) {
				opened = ctx.Err() == nil
				return nil, errors.New("it is opened, which is enough")
			},
		})
		if !opened || simulated.Load() == 0 {
			t.Errorf("the bucket was opened: %t, and IAM was asked %d times", opened, simulated.Load())
		}
		late := 0
		for _, u := range unseen {
			if strings.Contains(u.Why, "timed out") {
				late++
			}
		}
		if took := time.Since(begun); late != 1 || took > Limit {
			t.Errorf("after %s: %+v", took, unseen)
		}
	})
}

// account is an AWS with a role of nodes and with the catalog's queue and function, which has
// the variables, or which may not be read ("none"); it refuses all else.
type account struct {
	variables string
	// eks counts the calls to EKS, and rights those to IAM's simulator about EKS.
	eks, rights *atomic.Int32
}

func (a account) Do(r *http.Request) (*http.Response, error) {
	var raw []byte
	if r.Body != nil {
		raw, _ = io.ReadAll(r.Body)
	}
	body, status, text := string(raw), http.StatusOK, ""
	switch target := r.Header.Get("X-Amz-Target"); {
	case strings.HasPrefix(r.URL.Host, "eks."):
		a.eks.Add(1)
	case strings.Contains(body, "eks%3ADescribeCluster"):
		a.rights.Add(1)
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

// TestEKSIsAskedWhereItRunsTheControlPlane: by the settings of the catalog's function, else by
// those of the shell.
func TestEKSIsAskedWhereItRunsTheControlPlane(t *testing.T) {
	const deployments = `{"items":[{"metadata":{"namespace":"joist","name":"joist-watcher","labels":{"app.kubernetes.io/component":"watcher"}},` +
		`"spec":{"template":{"spec":{"serviceAccountName":"joist-watcher"}}}}]}`
	for name, test := range map[string]struct {
		variables string
		shell     bool
		asked     bool
	}{
		"as usual":                       {"", false, true},
		"the catalog says so":            {`"EKS_CONTROL_PLANE":"true"`, false, true},
		"the catalog says otherwise":     {`"EKS_CONTROL_PLANE":"false"`, false, false},
		"so does its entry":              {`"JOIST_CLUSTERS":"[{\"JOIST_CLUSTER_NAME\":\"prod\",\"JOIST_QUEUE_URL\":\"https://sqs/1/prod-joist-catalog\",\"EKS_CONTROL_PLANE\":\"false\"}]"`, false, false},
		"only the shell does":            {`"A":"b"`, true, true},
		"no function, and the shell":     {"none", true, false},
		"no function, and not the shell": {"none", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var eks, rights atomic.Int32
			known, unseen := Gather(t.Context(), Sources{
				Plan: card(t).Plan, NodeRole: "nodes", Prefix: "prod", Now: time.Now, NoEKS: test.shell,
				AWS: func(context.Context) (aws.Config, error) {
					return aws.Config{Region: "eu-west-1", HTTPClient: account{test.variables, &eks, &rights}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}, nil
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
			// Two calls: whom the cluster lets in, and the Pod Identity of the ServiceAccount.
			want := map[bool]int32{true: 2}[test.asked]
			if eks.Load() != want || (rights.Load() > 0) != test.asked || (known.SelfManaged == nil) != test.asked || known.Kubernetes != "v1.35.2" {
				t.Errorf("EKS was called %d times, IAM asked about it %d times: %+v, %q", eks.Load(), rights.Load(), known.SelfManaged, known.Kubernetes)
			}
			if !test.asked && strings.Contains(fmt.Sprint(unseen), "eks:") {
				t.Errorf("%+v", unseen)
			}
			if len(known.Accounts) == 0 && !test.asked {
				t.Error("the ServiceAccount is not known")
			}
		})
	}
}
