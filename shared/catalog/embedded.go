package catalog

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// storedFiles are the committed data: hardware.json.zst, market-<region>.json.zst for each region with known zones, and
// prices-<region>.json.zst for regions with prices only. `make catalog` writes them.
//
//go:embed data/*.zst
var storedFiles embed.FS

const (
	storedSuffix = ".json.zst"
	marketPrefix = "market-"
	// storedBytesMax limits the decompressed size of one file; the largest is less than 1 MB.
	storedBytesMax = 16 << 20
)

// EmbeddedCatalogue returns the offline catalogue of a region. It needs no account and no network, but prices are of
// the day AsOf, spot prices are the region's average instead of the zone's, and zone names follow a fixed rule, while
// each account has its own mapping. It is decoded on first use and shared: treat it as read-only.
func EmbeddedCatalogue(region string) (Catalogue, error) {
	if !slices.Contains(Regions(), region) {
		return Catalogue{}, fmt.Errorf("no embedded catalogue of region %q; there are %s", region, strings.Join(Regions(), ", "))
	}
	decode, _ := embeddedCatalogues.LoadOrStore(region, sync.OnceValues(func() (Catalogue, error) { return decodeEmbedded(region) }))
	return decode.(func() (Catalogue, error))()
}

// embeddedCatalogues caches one decoding function for each requested region.
var embeddedCatalogues sync.Map

// Regions returns the regions of EmbeddedCatalogue, sorted.
var Regions = sync.OnceValue(func() []string {
	entries, err := storedFiles.ReadDir("data")
	if err != nil {
		return nil // Unreachable: the directory is part of the binary.
	}
	var regions []string
	for _, entry := range entries {
		name, isMarket := strings.CutPrefix(entry.Name(), marketPrefix)
		if region, whole := strings.CutSuffix(name, storedSuffix); isMarket && whole {
			regions = append(regions, region)
		}
	}
	return regions
})

var embeddedHardware = sync.OnceValues(func() (Hardware, error) { return decodeStored[Hardware]("hardware") })

func decodeEmbedded(region string) (Catalogue, error) {
	h, err := embeddedHardware()
	if err != nil {
		return Catalogue{}, err
	}
	m, err := decodeStored[Market](marketPrefix + region)
	if err != nil {
		return Catalogue{}, err
	}
	return JoinMarket(h, m), nil
}

func decodeStored[T any](name string) (value T, err error) {
	packed, err := storedFiles.ReadFile(path.Join("data", name+storedSuffix))
	if err != nil {
		return value, fmt.Errorf("reading the embedded %s: %w", name, err)
	}
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(storedBytesMax))
	if err != nil {
		return value, fmt.Errorf("unpacking the embedded %s: %w", name, err)
	}
	defer reader.Close()
	text, err := reader.DecodeAll(packed, nil)
	if err != nil {
		return value, fmt.Errorf("unpacking the embedded %s: %w", name, err)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, fmt.Errorf("decoding the embedded %s: %w", name, err)
	}
	return value, nil
}
