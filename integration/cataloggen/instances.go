package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

// instance is the used part of an entry of instances.json.
type instance struct {
	Name      string              `json:"instance_type"`
	Arch      []string            `json:"arch"`
	VCPU      int64               `json:"vCPU"`
	MemoryGiB float64             `json:"memory"`
	GPUs      int64               `json:"GPU"`
	GPUModel  string              `json:"GPU_model"`
	Zones     map[string][]string `json:"availability_zones"`
	Clock     string              `json:"clock_speed_ghz"`
	EBSMbps   int64               `json:"ebs_max_bandwidth"`
	EBS       bool                `json:"ebs_optimized"`
	Processor string              `json:"physical_processor"`
	Virtual   []string            `json:"linux_virtualization_types"`
	Storage   *struct {
		Devices int64  `json:"devices"`
		Size    int64  `json:"size"`
		Unit    string `json:"size_unit"`
		NVMe    bool   `json:"nvme_ssd"`
	} `json:"storage"`
	VPC *struct {
		IPs  int64 `json:"ips_per_eni"`
		ENIs int64 `json:"max_enis"`
	} `json:"vpc"`
	Pricing map[string]struct {
		Linux struct {
			OnDemand price `json:"ondemand"`
			Spot     price `json:"spot_avg"`
		} `json:"linux"`
	} `json:"pricing"`
}

// price is a string with US dollars per hour; other strings mean no price.
type price float64

func (p *price) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) != nil {
		s = string(text)
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil {
		value = 0
	}
	*p = price(value)
	return nil
}

// readInstances decodes one entry at a time, because the file has 96 MB, mostly unused
// prices.
func readInstances(path string) ([]instance, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading instances: %w", err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("reading instances: %w", err)
	}
	var all []instance
	for decoder.More() {
		var one instance
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("reading instances after entry %d: %w", len(all), err)
		}
		all = append(all, one)
	}
	return all, nil
}
