package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joist-autoscaler/joist/services/catalog"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/services/cli/internal/live"
	shared "github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/pricing"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

// readingKubeconfig is what fails when a kubeconfig cannot be used.
const readingKubeconfig = "reading the kubeconfig"

// loadKubeconfig reads the configuration of a cluster like kubectl, and returns the name of the cluster
// in it.
func loadKubeconfig(kubeconfig, kubecontext string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubecontext})
	raw, rawErr := loader.RawConfig()
	if _, known := raw.Contexts[kubecontext]; rawErr == nil && kubecontext != "" && !known {
		return nil, "", fault.F(readingKubeconfig, fault.Invalid, "it has no context %q", kubecontext).
			WithHint("--context with one of %s", cmp.Or(strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "), "none: aws eks update-kubeconfig --name NAME adds one"))
	}
	access, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = fmt.Errorf("%s has no cluster", cmp.Or(kubeconfig, "$KUBECONFIG or ~/.kube/config"))
	}
	if err != nil {
		return nil, "", fault.E(readingKubeconfig, fault.Invalid, err).WithHint("aws eks update-kubeconfig --name NAME, or --kubeconfig FILE")
	}
	name := ""
	if used := raw.Contexts[cmp.Or(kubecontext, raw.CurrentContext)]; used != nil {
		name = used.Cluster
	}
	access.UserAgent = build.UserAgent("joist")
	return access, name, nil
}

// openLive opens a running cluster. It writes nothing: cli.LiveCluster has no function that does.
func openLive(kubeconfig, kubecontext string) (cli.LiveCluster, error) {
	access, name, err := loadKubeconfig(kubeconfig, kubecontext)
	if err != nil {
		return cli.LiveCluster{}, err
	}
	kubecluster.SetLogger(slog.New(slog.DiscardHandler)) // Errors are returned.
	client, err := kubecluster.New(access, "joist")
	if err != nil {
		return cli.LiveCluster{}, err
	}
	return live.NewRunningCluster(client, name, access.Host), nil
}

// readCatalogue reads a region's instance types and prices with the caller's credentials.
func readCatalogue(ctx context.Context, region string) (shared.Catalogue, []string, error) {
	found, err := loadAWS(ctx, config.WithRegion(region))
	if err != nil {
		return shared.Catalogue{}, nil, err
	}
	reader := catalog.Service{Market: ec2cloud.New(found), Prices: pricing.New(found), Region: region, Now: time.Now}
	return reader.ReadCatalogue(ctx, shared.ClusterFacts{})
}

// openCluster opens a cluster like kubectl.
func openCluster(kubeconfig, kubecontext string) (func(ctx context.Context, path string) ([]byte, error), error) {
	config, _, err := loadKubeconfig(kubeconfig, kubecontext)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for the Status of an error
	config.NegotiatedSerializer, config.GroupVersion = serializer.NewCodecFactory(scheme).WithoutConversion(), &schema.GroupVersion{}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fault.E(readingKubeconfig, fault.Invalid, err).WithHint("check with kubectl get nodes")
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		op := "reading " + path
		at, err := url.Parse(path)
		if err != nil {
			return nil, fault.E(op, fault.Bug, err)
		}
		// AbsPath keeps the path of the server's address, which a proxy may need.
		request := client.Get().AbsPath(at.Path)
		for name, values := range at.Query() {
			for _, value := range values {
				request.Param(name, value)
			}
		}
		result := request.Do(ctx)
		text, _ := result.Raw() // Its error has the HTTP status alone.
		err = result.Error()
		switch {
		case err == nil:
			return text, kube.CheckAnswer(op, text)
		case apierrors.IsNotFound(err):
			return nil, fault.E(op, fault.Missing, err)
		case apierrors.IsForbidden(err):
			return nil, fault.E(op, fault.Denied, err)
		}
		return nil, cmp.Or(kube.DescribeFailure(op, err), error(fault.E(op, fault.Retry, err).WithHint("check with kubectl get nodes")))
	}, nil
}

// listContexts returns the names of the contexts in a kubeconfig.
func listContexts(kubeconfig string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = kubeconfig, false
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// runProgram runs a program and returns its output.
func runProgram(ctx context.Context, name string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // doctor has a fixed list of programs
	if err != nil {
		return "", fault.E("running "+name, fault.Missing, err)
	}
	return string(output), nil
}
