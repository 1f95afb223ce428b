package karpenter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzParseProviderID: an accepted id is written as it was read, and an error quotes the id.
func FuzzParseProviderID(f *testing.F) {
	for _, text := range []string{"aws:///us-east-1a/i-0123456789abcdef0", "aws:////i-0123", "aws:///us-east-1a/fargate-ip-10-0-0-1", "eks-hybrid:///eu/x/y", "aws://us-east-1a/i-1", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseProviderID(text)
		if err != nil {
			if !strings.Contains(err.Error(), "invalid provider ID") || id != (ProviderID{}) {
				t.Fatalf("%+v, %v", id, err)
			}
			return
		}
		if id.String() != text || id.Zone == "" || id.InstanceID == "" {
			t.Fatalf("%q became %+v", text, id)
		}
	})
}

// FuzzDuration: a duration keeps its spelling and its value, and an error quotes the text.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{Never, "30s", "720h", "720h0m0s", "-1h", "1.5h", "", "9223372036854775807ns", "1e3s", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseNillableDuration(text)
		if err != nil {
			if !strings.Contains(err.Error(), "reading duration") {
				t.Fatal(err)
			}
			return
		}
		encoded, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again NillableDuration
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatalf("%s cannot be read again: %v", encoded, err)
		}
		if again.IsNever() != d.IsNever() || !d.IsNever() && *again.Duration != *d.Duration || again.String() != text {
			t.Fatalf("%q became %s, then %s", text, d, again)
		}
		now := time.Unix(1_800_000_000, 0)
		if d.IsNever() && d.HasElapsed(now, now) {
			t.Fatal("Never has elapsed")
		}
	})
}

// FuzzKubelet: kubelet settings of any JSON are read or rejected, and written with the same meaning.
func FuzzKubelet(f *testing.F) {
	f.Add([]byte(`{"maxPods": 110, "podsPerCore": 4, "systemReserved": {"cpu": "100m"}, "evictionHard": {"memory.available": "5%"}, "evictionMaxPodGracePeriod": 60, "imageGCHighThresholdPercent": 85, "cpuCFSQuota": true}`))
	f.Add([]byte(`{"evictionSoftGracePeriod": {"nodefs.available": "1m30s"}, "clusterDNS": ["10.0.0.10"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var config KubeletConfiguration
		if json.Unmarshal(text, &config) != nil {
			return
		}
		parsed, err := config.Parse()
		if err != nil {
			if !strings.Contains(err.Error(), "reading kubelet settings") {
				t.Fatal(err)
			}
			return
		}
		encoded, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		var again KubeletConfiguration
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		other, err := again.Parse()
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if a, b := toJSON(t, parsed), toJSON(t, other); a != b {
			t.Fatalf("%s became %s", a, b)
		}
	})
}

// FuzzAlias: an alias is a family and a version, or the error quotes it.
func FuzzAlias(f *testing.F) {
	for _, text := range []string{"al2023@latest", "bottlerocket@v1.20.0", "windows2022@latest", "al2@", "@", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		alias, err := ParseAlias(text)
		if err == nil && (alias.Family == "" || alias.Version == "") {
			t.Fatalf("%q became %+v", text, alias)
		}
		if err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
	})
}

// FuzzObjects: objects of the API are written as JSON that reads the same again.
func FuzzObjects(f *testing.F) {
	files, err := filepath.Glob("../planning/testdata/documents/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no documents", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var document struct {
			Snapshot struct {
				NodePools, NodeClasses, NodeClaims []json.RawMessage
			}
		}
		if err := json.Unmarshal(text, &document); err != nil {
			f.Fatal(err)
		}
		for _, list := range [][]json.RawMessage{document.Snapshot.NodePools, document.Snapshot.NodeClasses, document.Snapshot.NodeClaims} {
			for _, one := range list {
				f.Add([]byte(one))
			}
		}
	}
	f.Add([]byte(`{"spec":{"disruption":{"consolidateAfter":"Never","budgets":[{"nodes":"10%","schedule":"@daily","duration":"10m"}]},"template":{"spec":{"expireAfter":"720h","terminationGracePeriod":"1h"}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		readAgain[NodePool](t, text)
		readAgain[NodeClaim](t, text)
		readAgain[EC2NodeClass](t, text)
	})
}

// readAgain writes the value, reads the text again, and compares the texts of both values.
func readAgain[T any](t *testing.T, text []byte) {
	t.Helper()
	var once, twice T
	if json.Unmarshal(text, &once) != nil {
		return
	}
	first := toJSON(t, once)
	if err := json.Unmarshal([]byte(first), &twice); err != nil {
		t.Fatalf("%T: cannot read %s again: %v", once, first, err)
	}
	if second := toJSON(t, twice); first != second {
		t.Fatalf("%T changed from\n%s\nto\n%s", once, first, second)
	}
}

func toJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
