package convert_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joist-autoscaler/joist/shared/manifest/convert"
)

// scalingGroup returns an Auto Scaling group as the AWS CLI prints it, with tags of some keys.
func scalingGroup(name string, tags ...string) string {
	var list []string
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		list = append(list, fmt.Sprintf(`{"Key": %q, "Value": %q, "PropagateAtLaunch": true}`, key, value))
	}
	return fmt.Sprintf(`{"AutoScalingGroupName": %q, "MaxSize": 3, "VPCZoneIdentifier": "subnet-1", "LaunchTemplate": {"LaunchTemplateId": "lt-%s"}, "Instances": [{"InstanceType": "c5.large"}], "Tags": [%s]}`,
		name, name, strings.Join(list, ", "))
}

// managedGroup returns a managed node group of a cluster as the AWS CLI prints it.
func managedGroup(name, cluster, scaling string) string {
	return fmt.Sprintf(`{"nodegroup": {"nodegroupName": %q, "clusterName": %q, "nodeRole": "nodes", "amiType": "AL2023_x86_64_STANDARD", "instanceTypes": ["m5.large"], "subnets": ["subnet-1"],
		"scalingConfig": {"maxSize": 2}, "resources": {"autoScalingGroups": [{"name": %q}]}}}`, name, cluster, scaling)
}

var poolName = regexp.MustCompile(`kind: NodePool\nmetadata:\n  name: (.*)\n`)

// convertGroups converts answers of the AWS CLI about groups, and returns the names of the NodePools and the remarks.
func convertGroups(cluster string, managed []string, scaling ...string) (pools []string, text, remarks string) {
	answers := append(managed, `{"AutoScalingGroups": [`+strings.Join(scaling, ",\n")+`]}`)
	r := convert.Convert([]convert.Input{{Name: "groups.json", Data: []byte(strings.Join(answers, "\n"))}}, convert.ConversionOptions{ClusterName: cluster})
	text = string(r.Files[0].Text)
	for _, match := range poolName.FindAllStringSubmatch(text, -1) {
		pools = append(pools, match[1])
	}
	var lines []string
	for _, remark := range r.Remarks {
		lines = append(lines, remark.String())
	}
	return pools, text, strings.Join(lines, "\n")
}

// TestConvertsGroupsOfOneCluster converts the groups of one cluster. The AWS CLI's answer has all groups of the region: those of other
// clusters, and those whose instances are no nodes.
func TestConvertsGroupsOfOneCluster(t *testing.T) {
	const tagOfProd, tagOfStaging = "kubernetes.io/cluster/prod=owned", "kubernetes.io/cluster/staging=owned"
	prod, staging, jenkins := scalingGroup("prod-workers", tagOfProd), scalingGroup("staging-workers", tagOfStaging), scalingGroup("jenkins", "team=ci")
	template := `{"LaunchTemplateVersions": [{"LaunchTemplateId": "lt-jenkins", "LaunchTemplateData": {"TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "kubernetes.io/cluster/prod", "Value": "owned"}]}]}}]}`
	for _, tt := range []struct {
		name, cluster    string
		managed, scaling []string
		want             []string
		remarks          []string
	}{
		{"of the named cluster", "prod", nil, []string{prod, staging, jenkins}, []string{"prod-workers"},
			[]string{"check: staging-workers.group: is not converted: it belongs to staging", "unrepaired: jenkins.group: is not converted: no tag names its cluster"}},
		{"of the only cluster", "", nil, []string{prod, jenkins}, []string{"prod-workers"}, []string{"unrepaired: jenkins.group"}},
		{"of several clusters", "", nil, []string{prod, staging}, nil,
			[]string{"unrepaired: prod-workers.group: is not converted: it belongs to prod, and the files have groups of prod, staging", "unrepaired: staging-workers.group"}},
		{"of the managed groups' cluster", "", []string{managedGroup("general", "prod", "eks-1")}, []string{prod, staging}, []string{"general", "prod-workers"}, []string{"check: staging-workers.group"}},
		{"of no cluster", "", nil, []string{jenkins}, nil, []string{"unrepaired: jenkins.group: is not converted: no tag names its cluster", "kubernetes.io/cluster/${CLUSTER_NAME}"}},
		{"shared by two clusters", "prod", nil, []string{scalingGroup("both", tagOfStaging, tagOfProd)}, []string{"both"}, nil},
		{"other tags of a cluster", "prod", nil, []string{scalingGroup("a", "k8s.io/cluster-autoscaler/enabled=true", "k8s.io/cluster-autoscaler/prod=owned"), scalingGroup("b", "eks:cluster-name=prod")}, []string{"a", "b"}, nil},
		{"tags of the launch template", "prod", []string{template}, []string{jenkins}, []string{"jenkins"}, nil},
		{"managed groups of two clusters", "prod", []string{managedGroup("general", "prod", "eks-1"), managedGroup("general", "staging", "eks-2")},
			[]string{scalingGroup("eks-1", tagOfProd, "eks:nodegroup-name=general"), scalingGroup("eks-2", tagOfStaging, "eks:nodegroup-name=general")}, []string{"general"}, []string{"check: general.group: is not converted: it belongs to staging"}},
		{"a managed group of the same name in another cluster", "prod", []string{managedGroup("general", "staging", "eks-2")}, []string{scalingGroup("eks-1", tagOfProd, "eks:nodegroup-name=general")}, []string{"eks-1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pools, text, remarks := convertGroups(tt.cluster, tt.managed, tt.scaling...)
			if !slices.Equal(pools, tt.want) {
				t.Errorf("NodePools %v, want %v\n%s", pools, tt.want, remarks)
			}
			if strings.Contains(text, "staging") {
				t.Errorf("the result names the other cluster:\n%s", text)
			}
			for _, want := range tt.remarks {
				if !strings.Contains(remarks, want) {
					t.Errorf("no remark %q in\n%s", want, remarks)
				}
			}
			if len(tt.want) == 0 && !strings.HasPrefix(text, "# None of its groups is converted") {
				t.Errorf("the result is\n%s", text)
			}
			if got := strings.Count(remarks, "is not converted"); tt.remarks == nil && got > 0 && len(tt.managed) == 0 {
				t.Errorf("%d groups are not converted:\n%s", got, remarks)
			}
		})
	}
}

// TestNamesOfGroups gives each group's NodePool a name that the API server accepts and that no other object of the files has.
func TestNamesOfGroups(t *testing.T) {
	long := strings.Repeat("a", 62)
	for _, tt := range []struct {
		name    string
		groups  []string
		want    []string
		remarks []string
	}{
		{"names that become equal", []string{"Workers_Spot", "workers-spot", "workers.spot", "WORKERS SPOT"}, []string{"workers-spot", "workers-spot-2", "workers.spot", "workers-spot-3"},
			[]string{"check: workers-spot.name: becomes workers-spot-2, because the group Workers_Spot has the name", "check: WORKERS SPOT.name: becomes workers-spot-3"}},
		{"the numbered name of another group", []string{"a-2", "a", "A"}, []string{"a-2", "a", "a-3"}, []string{"check: A.name"}},
		{"a cut before a hyphen", []string{long + "-b"}, []string{long}, nil},
		{"long names that become equal", []string{long + "bc", long + "bd", long + "-b"}, []string{long + "b", long[:61] + "-2", long}, []string{"becomes " + long[:61] + "-2"}},
		{"labels of a name", []string{"a.-b", "-c-", "d..e", "f-.g"}, []string{"a.b", "c", "d.e", "f.g"}, nil},
		{"no valid character", []string{"___", "---"}, []string{"node-group", "node-group-2"}, []string{"check: ---.name"}},
		{"the same group in two answers", []string{"a", "a"}, []string{"a"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var scaling []string
			for _, name := range tt.groups {
				scaling = append(scaling, scalingGroup(name, "kubernetes.io/cluster/prod=owned"))
			}
			pools, _, remarks := convertGroups("prod", nil, scaling...)
			if !slices.Equal(pools, tt.want) {
				t.Errorf("NodePools %q, want %q\n%s", pools, tt.want, remarks)
			}
			for _, name := range pools {
				if problems := append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...); len(problems) > 0 {
					t.Errorf("%q: %v", name, problems)
				}
			}
			for _, want := range tt.remarks {
				if !strings.Contains(remarks, want) {
					t.Errorf("no remark %q in\n%s", want, remarks)
				}
			}
			if got := strings.Count(remarks, ".name: becomes"); got != len(tt.remarks) {
				t.Errorf("%d names are changed, want %d:\n%s", got, len(tt.remarks), remarks)
			}
		})
	}
}

// TestNamesOfGroupsAndObjects adds a number to the name of a group that a NodePool of another file has.
func TestNamesOfGroupsAndObjects(t *testing.T) {
	pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: workers\n"
	r := convert.Convert([]convert.Input{
		{Name: "pool.yaml", Data: []byte(pool)},
		{Name: "groups.json", Data: []byte(`{"AutoScalingGroups": [` + scalingGroup("Workers", "kubernetes.io/cluster/prod=owned") + `]}`)},
	}, convert.ConversionOptions{})
	if text := string(r.Files[1].Text); !strings.Contains(text, "kind: NodePool\nmetadata:\n  name: workers-2\n") {
		t.Errorf("the result is\n%s", text)
	}
}
