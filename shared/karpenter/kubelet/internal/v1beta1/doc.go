// Package v1beta1 has the fields of the kubelet's configuration, generated from k8s.io/kubelet. The original package
// links metrics, a command line and a template engine. Its name is the original's because decoding errors contain it.
package v1beta1
