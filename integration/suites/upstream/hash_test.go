package upstream

import (
	"fmt"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Nodes that one side launched have not drifted for the other.
func TestSameNodePoolHash(t *testing.T) {
	if karpenter.NodePoolHashVersion != karpv1.NodePoolHashVersion {
		t.Fatalf("hash version %s, upstream's %s", karpenter.NodePoolHashVersion, karpv1.NodePoolHashVersion)
	}
	compareHashes(t, func(seed int64) (ours, theirs string, err error) {
		var start, one karpv1.NodePool
		var other karpenter.NodePool
		fill(seed, &start)
		text := encode(t, &start)
		decode(t, text, &one)
		decode(t, text, &other)
		ours, err = other.Hash()
		return ours, one.Hash(), err
	})
}

// The same for node classes, with and without the cluster's certificate authority.
func TestSameEC2NodeClassHash(t *testing.T) {
	if karpenter.EC2NodeClassHashVersion != awsv1.EC2NodeClassHashVersion {
		t.Fatalf("hash version %s, upstream's %s", karpenter.EC2NodeClassHashVersion, awsv1.EC2NodeClassHashVersion)
	}
	for _, authority := range []string{"", "Q0VSVA=="} {
		t.Run(fmt.Sprintf("authority %q", authority), func(t *testing.T) {
			compareHashes(t, func(seed int64) (ours, theirs string, err error) {
				var start, one awsv1.EC2NodeClass
				var other karpenter.EC2NodeClass
				fill(seed, &start)
				text := encode(t, &start)
				decode(t, text, &one)
				decode(t, text, &other)
				ours, err = other.Hash(authority)
				return ours, one.Hash(&authority), err
			})
		})
	}
}

func compareHashes(t *testing.T, pair func(seed int64) (ours, theirs string, err error)) {
	t.Helper()
	different := map[string]bool{}
	for seed := range int64(seeds) {
		ours, theirs, err := pair(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if ours != theirs {
			t.Fatalf("seed %d: Joist's hash %s, upstream's %s", seed, ours, theirs)
		}
		different[ours] = true
	}
	if len(different) < seeds*9/10 {
		t.Errorf("%d seeds gave only %d different hashes", seeds, len(different))
	}
}

// Hashes of empty objects are equal, too; upstream treats an absent authority as the
// empty one.
func TestSameHashOfEmptyObjects(t *testing.T) {
	pool, err := new(karpenter.NodePool).Hash()
	if want := new(karpv1.NodePool).Hash(); err != nil || pool != want {
		t.Errorf("empty pool: hash %s (%v), upstream's %s", pool, err, want)
	}
	class, err := new(karpenter.EC2NodeClass).Hash("")
	if want := new(awsv1.EC2NodeClass).Hash(nil); err != nil || class != want {
		t.Errorf("empty class: hash %s (%v), upstream's %s", class, err, want)
	}
}
