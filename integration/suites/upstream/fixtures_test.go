package upstream

import (
	"os"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"
)

const fixtures = "../../../shared/karpenter/testdata/"

// The golden hashes in shared/karpenter equal upstream's hashes of the same manifests.
func TestGoldenHashesMatchUpstream(t *testing.T) {
	var pool karpv1.NodePool
	var class awsv1.EC2NodeClass
	load(t, "nodepool.yaml", &pool)
	load(t, "ec2nodeclass.yaml", &class)
	authority := "Q0VSVA=="
	want := "nodepool " + karpv1.NodePoolHashVersion + " " + pool.Hash() + "\n" +
		"ec2nodeclass " + awsv1.EC2NodeClassHashVersion + " " + class.Hash(nil) + "\n" +
		"ec2nodeclass with authority " + awsv1.EC2NodeClassHashVersion + " " + class.Hash(&authority) + "\n"
	golden, err := os.ReadFile(fixtures + "hashes.golden")
	if err != nil {
		t.Fatal(err)
	}
	if string(golden) != want {
		t.Errorf("golden:\n%supstream's:\n%s", golden, want)
	}
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(fixtures + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}
