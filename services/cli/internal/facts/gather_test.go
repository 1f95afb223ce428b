package facts

import (
	"context"
	"errors"
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
			if strings.Contains(u.Why, "longer than") {
				late++
			}
		}
		if took := time.Since(begun); late != 1 || took > Limit {
			t.Errorf("after %s: %+v", took, unseen)
		}
	})
}
