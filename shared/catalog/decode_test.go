package catalog

import "testing"

// storedBudgetBytes limits the size of the embedded data in the binaries.
const storedBudgetBytes = 1 << 20

func TestStoredSize(t *testing.T) {
	entries, err := storedFiles.ReadDir("data")
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total == 0 || total > storedBudgetBytes {
		t.Errorf("the embedded files are %d bytes, want at most %d", total, storedBudgetBytes)
	}
}

// The time to decompress, decode and join the largest region without caches. Less than 150 ms is not noticeable on a
// command line.
func BenchmarkDecode(b *testing.B) {
	for b.Loop() {
		h, err := decodeStored[Hardware]("hardware")
		if err != nil {
			b.Fatal(err)
		}
		m, err := decodeStored[Market](marketPrefix + "us-east-1")
		if err != nil {
			b.Fatal(err)
		}
		if c := JoinMarket(h, m); len(c.Types) == 0 {
			b.Fatal("no types")
		}
	}
}

func BenchmarkResources(b *testing.B) {
	c, err := EmbeddedCatalogue("us-east-1")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, t := range c.Types {
			NodeResources(t, NodeConfig{AMIFamily: "AL2023"})
		}
	}
}
