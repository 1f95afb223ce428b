package main

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"os/exec"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

// openCluster opens a cluster like kubectl.
func openCluster(kubeconfig, kubecontext string) (func(ctx context.Context, path string) ([]byte, error), error) {
	const what = "reading the kubeconfig"
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubecontext}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("no kubeconfig found")
	}
	if err != nil {
		return nil, fault.E(what, fault.Invalid, err).WithHint("aws eks update-kubeconfig --name NAME, or --kubeconfig FILE")
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	config.GroupVersion = &schema.GroupVersion{}
	config.UserAgent = build.UserAgent("joist")
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fault.E(what, fault.Invalid, err).WithHint("check with kubectl get nodes")
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
		text, err := request.DoRaw(ctx)
		switch {
		case err == nil:
			return text, nil
		case apierrors.IsNotFound(err):
			return nil, fault.E(op, fault.Missing, err)
		case apierrors.IsForbidden(err):
			return nil, fault.E(op, fault.Denied, err)
		case apierrors.IsUnauthorized(err):
			return nil, fault.E(op, fault.Invalid, err).WithHint("log in again: aws eks update-kubeconfig, with credentials that the cluster accepts")
		}
		return nil, fault.E(op, fault.Retry, err).WithHint("check with kubectl get nodes")
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
