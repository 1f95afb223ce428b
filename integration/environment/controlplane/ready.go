package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Every wait has its own limit: a loaded machine needs tens of seconds, and a longer wait
// would not succeed.
const (
	etcdPatience           = 30 * time.Second
	readyPatience          = 90 * time.Second
	serviceAccountPatience = 60 * time.Second
	crdPatience            = 60 * time.Second

	askEvery = 50 * time.Millisecond
)

func awaitEtcd(ctx context.Context, port int) error {
	return await(ctx, "etcd to listen", etcdPatience, func(ctx context.Context) error {
		if !answers(ctx, port) {
			return errors.New("no process listens")
		}
		return nil
	})
}

func awaitReady(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return await(ctx, "kube-apiserver to be ready", readyPatience, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// awaitServiceAccount waits for the default service account. The controller manager
// creates it, and until then admission rejects pods.
func awaitServiceAccount(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return await(ctx, "the default ServiceAccount", serviceAccountPatience, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// await calls ask until it succeeds. A denial is final. The error has the awaited state,
// the reason why the wait ended, and the last error.
func await(ctx context.Context, what string, patience time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	var last error
	err := poll(ctx, askEvery, func() (bool, error) {
		err := ask(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
			return false, err
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil && !errors.Is(err, last):
		return fmt.Errorf("waiting for %s: %w (last answer: %w)", what, err, last)
	default:
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
}
