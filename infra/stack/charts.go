package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// addCharts installs the charts with the CDK's own Python functions in a nested stack, which
// assume KubectlRole.
func (p clusterStack) addCharts() {
	scope := constructs.NewConstruct(p.scope, jsii.String("Charts"))
	cluster := awseks.Cluster_FromClusterAttributes(scope, jsii.String("EKS"), &awseks.ClusterAttributes{
		ClusterName: jsii.String(p.cluster.Name), KubectlRoleArn: jsii.String(p.config.Charts.KubectlRole),
		KubectlLayer: awslambda.LayerVersion_FromLayerVersionArn(scope, jsii.String("Kubectl"), jsii.String(p.config.Charts.KubectlLayer)),
	})
	crds := p.addChart(scope, cluster, "joist-crd", nil)
	joist := p.addChart(scope, cluster, "joist", nestedValues(p.chartValues()))
	joist.Node().AddDependency(crds)
	for _, service := range []string{"watcher", "lifecycle"} {
		joist.Node().AddDependency(p.roles[service])
	}
	for _, child := range *awscdk.Stack_Of(p.scope).Node().Children() {
		if strings.HasSuffix(*child.Node().Id(), "KubectlProvider") {
			suppress(child, installerSuppressions...)
		}
	}
}

func (p clusterStack) addChart(scope constructs.Construct, cluster awseks.ICluster, name string, values map[string]any) awseks.HelmChart {
	return awseks.NewHelmChart(scope, jsii.String(name), &awseks.HelmChartProps{
		Cluster: cluster, Release: jsii.String(name), Namespace: jsii.String(p.cluster.Namespace), CreateNamespace: jsii.Bool(true), Values: &values,
		ChartAsset: awss3assets.NewAsset(scope, jsii.String(name+"-asset"), &awss3assets.AssetProps{Path: jsii.String(p.config.Charts.Folder + "/" + name)}),
	})
}

// nestedValues converts --set paths to nested Helm values. A dot after a backslash is part of
// the key.
func nestedValues(values [][2]string) map[string]any {
	const dot = "\x00"
	all := map[string]any{}
	for _, v := range values {
		at, keys := all, strings.Split(strings.ReplaceAll(v[0], `\.`, dot), ".")
		for _, key := range keys[:len(keys)-1] {
			inner, ok := at[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[key] = inner
			}
			at = inner
		}
		at[strings.ReplaceAll(keys[len(keys)-1], dot, ".")] = v[1]
	}
	return all
}
