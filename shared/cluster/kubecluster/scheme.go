package kubecluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Built-in kinds are read and written as protobuf, which costs a fraction of JSON. Custom
// kinds only support JSON.
const (
	protobuf = runtime.ContentTypeProtobuf
	json     = runtime.ContentTypeJSON
)

// Scheme has the Go type of every kind.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, policyv1.AddToScheme,
		schedulingv1.AddToScheme, coordinationv1.AddToScheme, resourcev1.AddToScheme, karpenter.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, nil
}

func groupVersion(kind cluster.Kind) schema.GroupVersion {
	return schema.GroupVersion{Group: kind.Group, Version: kind.Version}
}

// newRESTClients returns one REST client for each API group. They share a connection pool
// and a rate limit.
func newRESTClients(config *rest.Config, scheme *runtime.Scheme) (map[schema.GroupVersion]rest.Interface, error) {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = "joist"
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(QPS, Burst)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fault.E("connecting to the API server", fault.Denied, err)
	}
	clients := map[schema.GroupVersion]rest.Interface{}
	for _, kind := range cluster.Kinds {
		gv := groupVersion(kind)
		if clients[gv] != nil {
			continue
		}
		own := rest.CopyConfig(config)
		own.GroupVersion = &gv
		own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		own.APIPath = "/apis"
		own.ContentType, own.AcceptContentTypes = protobuf, protobuf+","+json
		if gv.Group == "" {
			own.APIPath = "/api"
		}
		if slices.Contains([]string{karpenter.Group, karpenter.AWSGroup, karpenter.BufferGroup}, gv.Group) {
			own.ContentType, own.AcceptContentTypes = json, json
		}
		if clients[gv], err = rest.RESTClientForConfigAndClient(own, transport); err != nil {
			return nil, fault.E("connecting to the API group "+gv.String(), fault.Bug, err)
		}
	}
	return clients, nil
}
