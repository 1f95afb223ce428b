package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// module is a Go module that is read as data. Its checksum is pinned here, because it is
// not compiled and therefore not in go.sum.
type module struct {
	catalog.Provenance
	sum string
}

var (
	instancesModule = module{catalog.Provenance{
		Source:  "github.com/LeanerCloud/ec2-instances-info",
		Version: "v0.0.0-20250528091325-32acf84f42eb",
		License: "MIT",
		Date:    "2025-05-28",
		Carries: "hardware, zones, spot prices, on-demand prices outside us-east-1",
	}, "h1:iluzDOiXmKFvLkGHlwg54pu+HkOVF6zacqArEiAppg4="}
	limitsModule = module{catalog.Provenance{
		Source:  "github.com/aws/amazon-vpc-resource-controller-k8s",
		Version: "v1.8.2",
		License: "Apache-2.0",
		Date:    "2026-09-02",
		Carries: "network interfaces, addresses, trunking, hypervisor, bare metal",
	}, "h1:S6fvZf7+Xjho4LLo2AdxT3x9yaOJ37Ly/eGQd+ASWi4="}
	karpenterModule = module{catalog.Provenance{
		Source:  "github.com/aws/karpenter-provider-aws",
		Version: "v1.15.1",
		License: "Apache-2.0",
		Date:    "2026-10-23",
		Carries: "on-demand prices of us-east-1, network bandwidth, devices that drivers publish as ResourceSlices",
	}, "h1:6eH///KgWKDwD2R6wHRnKGN8Vu8OHueaXjNdx64TnuY="}
	driverModule = module{catalog.Provenance{
		Source:  "github.com/kubernetes-sigs/aws-ebs-csi-driver",
		Version: "v1.63.1",
		License: "Apache-2.0",
		Date:    "2026-07-27",
		Carries: "limits of EBS volumes",
	}, "h1:fWvOYJ9DgkSS8G49r2ShJl2F/6Ukkaj16qZUtFlXfvs="}
	ownFacts = catalog.Provenance{
		Source:  "integration/cataloggen/facts.go",
		License: "Apache-2.0",
		Date:    "2026-11-20",
		Carries: "GPU and accelerator models, EFA, encryption in transit, corrections",
	}
)

// sources has everything that was read, before merging.
type sources struct {
	instances []instance
	limits    map[string]limit
	// onDemand has US dollars per hour by region and type.
	onDemand map[string]map[string]float64
	// t apart has the same for regions in other partitions, in their own currency.
	apart     map[string]map[string]float64
	bandwidth map[string]float64
	volumes   map[string]catalog.Attachments
	devices   catalog.StoredDevices
}

func load(progress io.Writer) (src sources, err error) {
	instances, err := download(instancesModule, progress)
	if err != nil {
		return src, err
	}
	limits, err := download(limitsModule, progress)
	if err != nil {
		return src, err
	}
	karpenter, err := download(karpenterModule, progress)
	if err != nil {
		return src, err
	}
	driver, err := download(driverModule, progress)
	if err != nil {
		return src, err
	}
	fmt.Fprintln(progress, "reading  instances (some seconds)")
	if src.instances, err = readInstances(filepath.Join(instances, "data", "instances.json")); err != nil {
		return src, err
	}
	if src.limits, err = readLimits(filepath.Join(limits, "pkg", "aws", "vpc", "limits.go")); err != nil {
		return src, err
	}
	providers := filepath.Join(karpenter, "pkg", "providers")
	prices := filepath.Join(providers, "pricing")
	if src.onDemand, err = readPrices(filepath.Join(prices, "zz_generated.pricing_aws.go"), "AWS"); err != nil {
		return src, err
	}
	if src.apart, err = readApart(prices); err != nil {
		return src, err
	}
	if src.bandwidth, err = readBandwidth(filepath.Join(providers, "instancetype", "zz_generated.bandwidth.go")); err != nil {
		return src, err
	}
	if src.volumes, err = readVolumes(filepath.Join(driver, "pkg", "cloud", "limits")); err != nil {
		return src, err
	}
	src.devices, err = readDevices(karpenter)
	return src, err
}

// regions returns the regions with known zones, sorted. Regions without zones have no
// offerings.
func (s sources) regions() []string {
	seen := map[string]bool{}
	for _, i := range s.instances {
		for region := range i.Zones {
			seen[region] = true
		}
	}
	var regions []string
	for region := range seen {
		regions = append(regions, region)
	}
	slices.Sort(regions)
	return regions
}

// download downloads a module with the go command, and returns its directory if its
// checksum equals the pinned one.
func download(m module, progress io.Writer) (dir string, err error) {
	fmt.Fprintf(progress, "fetching %s@%s\n", m.Source, m.Version)
	cmd := exec.Command("go", "mod", "download", "-json", m.Source+"@"+m.Version)
	// Outside of any module and workspace, so that this generator's own requirements do
	// not matter.
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	answer, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w: %s%s", m.Source, err, answer, stderr.String())
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(answer, &got); err != nil {
		return "", fmt.Errorf("downloading %s: %w", m.Source, err)
	}
	if got.Sum != m.sum {
		return "", fmt.Errorf("downloading %s: checksum %s, pinned %s", m.Source, got.Sum, m.sum)
	}
	return got.Dir, nil
}
