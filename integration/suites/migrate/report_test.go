package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// openSteps are steps that are never done here: the command has no access to AWS, and the test bed runs processes
// instead of the pods of Joist's Deployments.
var openSteps = []string{"aws-resources", "joist-installed"}

// reportedStep is a step in the JSON of the command.
type reportedStep struct{ Step, State, Detail string }

// requireReport runs `joist migrate --check` and compares the states of steps. If complete is set, every step except
// openSteps must be done.
func (w *movedCluster) requireReport(when string, complete bool, active string, states map[string]string) {
	w.Helper()
	text := w.runCheck("text")
	w.Logf("joist migrate --check %s:\n%s", when, text)
	var report struct {
		Active   string
		Takeover []reportedStep
		Return   []reportedStep
	}
	w.RequireNoError(json.Unmarshal([]byte(w.runCheck("json")), &report))
	if report.Active != active {
		w.Errorf("%s, joist migrate --check says that %s acts, want %s", when, report.Active, active)
	}
	for _, s := range slices.Concat(report.Takeover, report.Return) {
		if want := states[s.Step]; want != "" && s.State != want {
			w.Errorf("%s, step %s is %s, want %s: %s", when, s.Step, s.State, want, s.Detail)
		}
	}
	for _, s := range report.Takeover {
		if complete && s.State != "done" && !slices.Contains(openSteps, s.Step) {
			w.Errorf("%s, step %s is %s: %s", when, s.Step, s.State, s.Detail)
		}
	}
}

// openLive opens the cluster as the command does.
func (w *movedCluster) openLive(string, string) (cli.LiveCluster, error) {
	client, err := kubecluster.New(w.Plane.Config, "joist")
	return cli.LiveCluster{PageReader: client, Name: testbed.ClusterName, Region: testbed.Region}, err
}

// runCheck runs the command as a person does who has a kubeconfig and no credentials of AWS.
func (w *movedCluster) runCheck(format string) string {
	w.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(w.Ctx, cli.Env{
		Args:   []string{"migrate", "--check", "--cluster", testbed.ClusterName, "-o", format},
		Stdout: &out, Stderr: &errs, Now: time.Now,
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{}, fault.F("loading credentials", fault.Invalid, "no credentials")
		},
		Kube: func(string, string) (func(ctx context.Context, path string) ([]byte, error), error) {
			return w.read, nil
		},
		Live: w.openLive,
	})
	if code != cli.ExitChanges {
		w.Errorf("joist migrate --check exits with %d: %s", code, errs.String())
	}
	return out.String()
}

// read reads a path of the API server.
func (w *movedCluster) read(ctx context.Context, path string) ([]byte, error) {
	text, err := w.Kube.CoreV1().RESTClient().Get().RequestURI(path).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fault.E("reading "+path, fault.Missing, err)
	case err != nil:
		return nil, fault.E("reading "+path, fault.Retry, err)
	}
	return text, nil
}
