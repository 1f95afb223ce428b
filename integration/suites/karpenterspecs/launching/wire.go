package launching

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
)

// apiVersion is the version of EC2's query protocol.
const apiVersion = "2016-11-15"

// ec2Service serves the fake of Karpenter's specs in EC2's query protocol: the specs judge what arrives over HTTP.
type ec2Service struct {
	// fake has the methods of EC2's client.
	fake any
}

// Match recognizes EC2 by its API version.
func (s ec2Service) Match(r *http.Request, body []byte) bool { return query.Is(r, body, apiVersion) }

// ServeHTTP answers one call with the answer of the fake.
func (s ec2Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action := form.Get("Action")
	form.Del("Action")
	form.Del("Version")
	out, err := callFake(r.Context(), s.fake, action, func(input reflect.Value) error { return decodeForm(form, input) })
	if err != nil {
		refuseCall(w, err)
		return
	}
	query.Write(w, http.StatusOK, element{name: action + "Response", value: out})
}

// refuseCall answers with an error of the fake. One without a code is EC2's InternalError.
func refuseCall(w http.ResponseWriter, err error) {
	code, message := "InternalError", err.Error()
	if known := smithy.APIError(nil); errors.As(err, &known) {
		code, message = known.ErrorCode(), known.ErrorMessage()
	}
	type failure struct {
		XMLName xml.Name `xml:"Response"`
		Code    string   `xml:"Errors>Error>Code"`
		Message string   `xml:"Errors>Error>Message"`
		Request string   `xml:"RequestID"`
	}
	query.Write(w, http.StatusBadRequest, failure{Code: code, Message: message, Request: "specs"})
}

// callFake calls the method of an API's fake. fill sets the fields of its input.
func callFake(ctx context.Context, fake any, method string, fill func(input reflect.Value) error) (reflect.Value, error) {
	call := reflect.ValueOf(fake).MethodByName(method)
	if !call.IsValid() {
		return reflect.Value{}, fmt.Errorf("the fake of Karpenter's specs has no method %s", method)
	}
	input := reflect.New(call.Type().In(1).Elem())
	if err := fill(input); err != nil {
		return reflect.Value{}, fmt.Errorf("reading the request %s: %w", method, err)
	}
	results := call.Call([]reflect.Value{reflect.ValueOf(ctx), input})
	if err, failed := reflect.TypeAssert[error](results[1]); failed {
		return reflect.Value{}, err
	}
	return results[0], nil
}

// account is an AWS account whose EC2 is a fake of Karpenter's specs.
type account struct {
	config aws.Config
	server *httptest.Server
}

// newAccount serves the fake on a loopback port. Reads skip HTTP: the fake answers them with the SDK's types.
func newAccount(fake any) account {
	server := httptest.NewServer(fakeaws.New(ec2Service{fake}))
	return account{server: server, config: aws.Config{
		Region: Region, BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDFAKE", "secret", ""),
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(readDirectly(fake), middleware.Before)
		}},
	}}
}

// readDirectly answers Describe calls with the fake's answer.
func readDirectly(fake any) middleware.InitializeMiddleware {
	return middleware.InitializeMiddlewareFunc("readDirectly", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		method := strings.TrimSuffix(reflect.TypeOf(in.Parameters).Elem().Name(), "Input")
		if !strings.HasPrefix(method, "Describe") {
			return next.HandleInitialize(ctx, in)
		}
		out, err := callFake(ctx, fake, method, func(input reflect.Value) error {
			input.Elem().Set(reflect.ValueOf(in.Parameters).Elem())
			return nil
		})
		if err != nil {
			return middleware.InitializeOutput{}, middleware.Metadata{}, err
		}
		return middleware.InitializeOutput{Result: out.Interface()}, middleware.Metadata{}, nil
	})
}
