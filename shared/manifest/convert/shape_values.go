package convert

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// valueTypes are the types of values that are objects of Kubernetes.
var valueTypes = map[string]reflect.Type{
	"additionalAnnotations":      reflect.TypeFor[map[string]string](),
	"additionalLabels":           reflect.TypeFor[map[string]string](),
	"affinity":                   reflect.TypeFor[corev1.Affinity](),
	"controller.env":             reflect.TypeFor[[]corev1.EnvVar](),
	"controller.envFrom":         reflect.TypeFor[[]corev1.EnvFromSource](),
	"controller.resources":       reflect.TypeFor[corev1.ResourceRequirements](),
	"dnsConfig":                  reflect.TypeFor[corev1.PodDNSConfig](),
	"extraVolumes":               reflect.TypeFor[[]corev1.Volume](),
	"imagePullSecrets":           reflect.TypeFor[[]corev1.LocalObjectReference](),
	"nodeSelector":               reflect.TypeFor[map[string]string](),
	"podAnnotations":             reflect.TypeFor[map[string]string](),
	"podLabels":                  reflect.TypeFor[map[string]string](),
	"podSecurityContext":         reflect.TypeFor[corev1.PodSecurityContext](),
	"serviceAccount.annotations": reflect.TypeFor[map[string]string](),
	"strategy":                   reflect.TypeFor[appsv1.DeploymentStrategy](),
	"tolerations":                reflect.TypeFor[[]corev1.Toleration](),
	"topologySpreadConstraints":  reflect.TypeFor[[]corev1.TopologySpreadConstraint](),
}

// valuesShape returns the shape of files of values.
func valuesShape() *shape {
	root := &shape{}
	for path := range readChart().keys {
		root.addPath(path)
	}
	for path, t := range valueTypes {
		keys := strings.Split(path, ".")
		in := root
		for _, key := range keys[:len(keys)-1] {
			in = in.field(key)
		}
		in.fields[keys[len(keys)-1]] = typeShape(t)
	}
	return root
}

// looksLikeValues reports whether a text without structure begins like a file of values.
func looksLikeValues(lines []string) bool {
	for _, text := range lines {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' || text == "---" {
			continue
		}
		key, _, ok := cutField(text)
		return ok && knownValue(key)
	}
	return false
}
