package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

func TestZoneLetter(t *testing.T) {
	for id, want := range map[string]string{
		"apne2-az1": "a", "cac1-az4": "d", "use1-az6": "f",
		"apne1-az4": "a", "apne1-az1": "c", "apne1-az2": "d",
		"use1-bos1-az1": "", "usw2-lax1": "", "": "", "use1-az0": "", "use1-az27": "",
	} {
		if got := zoneLetter(id); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}

func TestClockMHz(t *testing.T) {
	for text, want := range map[string]int64{"2.5 GHz": 2500, "Up to 3.49 GHz": 3490, "3 GHz": 3000, "": 0, "unknown": 0} {
		if got := clockMHz(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestPriceReadsStringsNumbersAndNeither(t *testing.T) {
	for text, want := range map[string]price{`"0.0416"`: 0.0416, `1.5`: 1.5, `"N/A"`: 0, `null`: 0, `""`: 0} {
		var got price
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestFacts(t *testing.T) {
	tests := []struct {
		name     string
		encrypts bool
		efas     int64
		clock    int64
	}{
		{"t4g.medium", false, 0, 0},
		{"m6g.large", false, 0, 2500},
		{"c7g.large", true, 0, 2600},
		{"c7gn.16xlarge", true, 1, 0},
		{"trn1.32xlarge", true, 8, 0},
		{"p5.48xlarge", true, 32, 3600},
		{"u7i-12tb.224xlarge", true, 1, 1900},
		{"u-6tb1.56xlarge", true, 0, 2100},
		{"r8g.48xlarge", true, 1, 2700},
		{"r8g.metal-24xl", true, 1, 2800},
	}
	for _, test := range tests {
		if got := encryptsInTransit(test.name); got != test.encrypts {
			t.Errorf("%s: encrypts %t", test.name, got)
		}
		if got := efas(test.name); got != test.efas {
			t.Errorf("%s: %d adapters, want %d", test.name, got, test.efas)
		}
		if got := clockFact(test.name); got != test.clock {
			t.Errorf("%s: %d MHz, want %d", test.name, got, test.clock)
		}
	}
}

func TestLiterals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.go")
	const source = `package vpc
var Limits = map[string]*VPCLimits{
	"a1.large": {Interface: 6, IPv4PerInterface: 10, IsTrunkingCompatible: true, BranchInterface: 9,
		DefaultNetworkCardIndex: 1,
		NetworkCards: []NetworkCard{{MaximumNetworkInterfaces: 3}, {MaximumNetworkInterfaces: 2, NetworkCardIndex: 1}},
		Hypervisor: "nitro", IsBareMetal: false},
}
var InstanceTypeBandwidthMegabits = map[string]int64{"a1.large": 750}
`
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	limits, err := readLimits(path)
	want := limit{IPv4: 10, Branch: 9, Cards: 2, DefaultCardENIs: 2, Trunking: true, Hypervisor: "nitro"}
	if err != nil || limits["a1.large"] != want {
		t.Errorf("got %+v, %v, want %+v", limits, err, want)
	}
	bandwidth, err := readBandwidth(path)
	if err != nil || bandwidth["a1.large"] != 750 {
		t.Errorf("got %v, %v", bandwidth, err)
	}
	if _, err := readPrices(path, "AWS"); err == nil {
		t.Error("a missing variable is no error")
	}
}

func TestReadDevices(t *testing.T) {
	module := t.TempDir()
	folder := filepath.Join(module, "pkg", "providers", "drametadata")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(file, name, count string) {
		source := "package drametadata\nvar " + name + ` = map[string]*DeviceMetadata{
	"a1.large": {Count: ` + count + `, Devices: []DRADevice{{
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: strPtr("gpu")}, "version": {VersionValue: strPtr("7.5.0")}, "node": {IntValue: intPtr(1)}, "rdma": {BoolValue: boolPtr(true)}},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("15Gi")}},
	}}},
}
`
		if err := os.WriteFile(filepath.Join(folder, file), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("zz_generated_gpu_metadata.go", "GPUMetadataByInstanceType", "1")
	write("zz_generated_efa_metadata.go", "EFAMetadataByInstanceType", "1")
	got, err := readDevices(module)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got.Types)
	const devices = `"attributes":{"node":{"int":1},"rdma":{"bool":true},"type":{"string":"gpu"},"version":{"version":"7.5.0"}},"capacity":{"memory":{"value":"15Gi"}}}]}`
	if want := `[{"type":"a1.large","templates":[{"driver":"gpu.nvidia.com","pool":"gpus-a1.large","devices":[{"name":"gpu-0",` + devices +
		`,{"driver":"dra.net","pool":"network-a1.large","devices":[{"name":"efa-0",` + devices + `]}]`; string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	write("zz_generated_gpu_metadata.go", "GPUMetadataByInstanceType", "2")
	if _, err := readDevices(module); err == nil {
		t.Error("a wrong count of devices is no error")
	}
}

func TestMarketPrices(t *testing.T) {
	var one instance
	const entry = `{"instance_type":"a1.large","availability_zones":{"r":["r-az1","r-az3"]},
		"pricing":{"r":{"linux":{"ondemand":"2.0","spot_avg":"1.5"}}}}`
	if err := json.Unmarshal([]byte(entry), &one); err != nil {
		t.Fatal(err)
	}
	src := sources{instances: []instance{one}}
	zones := []catalog.Zone{{Name: "ra", ID: "r-az1"}, {Name: "rb", ID: "r-az2"}, {Name: "rc", ID: "r-az3"}}
	got, reason := pricesOf(one, src, "r", zones)
	if want := (catalog.Price{Type: "a1.large", OnDemand: 2, Spot: 1.5, Zones: 0b101}); got != want || reason != "" {
		t.Errorf("got %+v %q, want %+v", got, reason, want)
	}
	// The newer on-demand price is used, and the older spot price is lowered to it.
	src.onDemand = map[string]map[string]float64{"r": {"a1.large": 1}}
	if got, _ := pricesOf(one, src, "r", zones); got.OnDemand != 1 || got.Spot != 1 {
		t.Errorf("got %+v, want both at 1", got)
	}
	if _, reason := pricesOf(one, src, "r", nil); reason == "" {
		t.Error("a price without a zone is not left out")
	}
}

func TestPackIsDeterministic(t *testing.T) {
	value := catalog.Market{Region: "r", AsOf: day(instancesModule.Date), Prices: []catalog.Price{{Type: "a1.large", OnDemand: 1, Zones: 1}}}
	first, err := pack(value)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := pack(value); !bytes.Equal(first, second) {
		t.Error("packing twice gave different bytes")
	}
}

func TestSourceDates(t *testing.T) {
	for _, p := range []catalog.Provenance{instancesModule.Provenance, limitsModule.Provenance, karpenterModule.Provenance, ownFacts} {
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
			t.Errorf("%s: %v", p.Source, err)
		}
	}
}
