// Package convert rewrites manifests of older versions of Karpenter into the current version, and repairs
// common mistakes. Nothing is lost without a remark: each field of the older versions is converted or named.
//
//   - Manifests: Provisioner and AWSNodeTemplate, NodePool, NodeClaim and EC2NodeClass of v1beta1, and the same
//     kinds of v1 with fields of older versions. The settings of kubelets move to EC2NodeClasses, one per
//     distinct setting.
//   - The ConfigMaps karpenter-global-settings and config-logging, and values of Karpenter's chart: they become
//     values of Joist's chart.
//   - Auto Scaling groups and managed node groups, as the AWS CLI prints them: they become NodePools and
//     EC2NodeClasses.
//   - Manifests without indentation: the schemas of their kinds give it back.
//
// Lines that do not change keep their text, comments included. A document without a change keeps its bytes. The
// result of a conversion is not changed by converting it again.
package convert
