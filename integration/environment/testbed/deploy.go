package testbed

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	account = "123456789012"
	// templateFile is what the CDK app makes for this cluster: a golden file of its tests.
	templateFile = Root + "/infra/stack/testdata/" + ClusterName + ".template.json"
	// bucketName is the one that the template makes.
	bucketName = "joist-" + ClusterName + "-" + account + "-" + Region
)

// deployStack creates the queues, buses, rules and schedules of the CDK template. It fails if a source may not
// send to its target, because AWS would drop such messages silently.
func (w *TestBed) deployStack() {
	w.Helper()
	text, err := os.ReadFile(templateFile)
	w.RequireNoError(err)
	w.deployed, err = stack.Read(text, template.Place{
		Account: account, Region: Region, Partition: "aws", Name: "Joist-" + ClusterName, QueueURL: w.Server.QueueURL,
	})
	w.RequireNoError(err)
	w.RequireNoError(w.deployed.Make(w.Broker, template.Place{Account: account, Region: Region}))
	rights, err := authorization.ReadDeployment(w.deployed, w.authorizer.Place)
	w.RequireNoError(err)
	lost, err := rights.Undelivered(w.deployed, w.authorizer.Place)
	w.RequireNoError(err)
	for _, text := range lost {
		w.Error(text)
	}
	w.authorizer.Resources = rights.Resources
	w.authorizer.SetRoles(rights.Roles)
	// The nodes' role is the template's, which the launcher may pass to EC2.
	w.AWS.Role = w.deployed.Outputs["NodeIamRoleName"]
	w.Cloud.AddRole(w.AWS.Role)
	for _, service := range slices.Concat(topology.ClusterServices, topology.ExternalServices) {
		name := ClusterName + "-joist-" + service
		role, ok := rights.Roles[name]
		if !ok {
			w.Fatalf("the template has no role %s", name)
		}
		w.authorizer.AddCaller(accessKey(service), role)
	}
}

// checkPolicies lets each service call the fake AWS with the rights of its role only.
func (w *TestBed) checkPolicies(next http.Handler) http.Handler {
	w.authorizer = &authorization.Authorizer{Place: authorization.Place{Partition: "aws", Account: account, Region: Region}, Cloud: w.Cloud, Next: next}
	return w.authorizer
}

// accessKey returns the access key id that identifies a service.
func accessKey(service string) string { return "AKIDJOIST" + strings.ToUpper(service) }

// functionOf returns the Lambda function of a service in the template, and its queue.
func (w *TestBed) functionOf(service string) (stack.Function, stack.Mapping) {
	w.Helper()
	for _, m := range w.deployed.Mappings {
		f, _, ok := w.deployed.Worker(template.Name(m.EventSourceArn))
		if ok && template.Name(f.Role) == ClusterName+"-joist-"+service {
			return f, m
		}
	}
	w.Fatalf("the template has no function with the role of %s", service)
	return stack.Function{}, stack.Mapping{}
}

// functionEnvironment returns a function's environment by the template, with the address of the fake AWS and short
// intervals.
func (w *TestBed) functionEnvironment(service string) []string {
	f, m := w.functionOf(service)
	variables := maps.Clone(f.Environment.Variables)
	variables[settings.QueueURL] = w.Server.QueueURL(template.Name(m.EventSourceArn))
	out := w.processEnvironment(service)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		out = append(out, name+"="+variables[name])
	}
	return append(append(out, settings.TemplateAge+"="+MaxTemplateAge.String()), w.metricsEnvironment(service)...)
}

// processEnvironment returns the environment that a machine gives to a process.
func (w *TestBed) processEnvironment(service string) []string {
	return slices.Concat(w.Server.Environ(), []string{
		"AWS_ACCESS_KEY_ID=" + accessKey(service),
		"HOME=" + w.TempDir(), "TMPDIR=" + os.TempDir(),
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		settings.Region + "=" + Region, settings.ClusterUID + "=" + w.ID.UID,
		settings.MetricsPort + "=0", settings.HealthPort + "=0",
	})
}

// requireNoDenials requires that no service made a request that the template's policies do not allow, except those of
// Options.AllowsDenial.
func (w *TestBed) requireNoDenials() {
	w.Helper()
	for _, text := range w.authorizer.Denied() {
		if w.options.AllowsDenial == nil || !w.options.AllowsDenial(text) {
			w.Error(text)
		}
	}
}

// Store returns the address of the services' documents in the fake S3, as the flag --store of the commands reads it.
func (w *TestBed) Store() string { return "s3://" + bucketName + "/" + ClusterName }
