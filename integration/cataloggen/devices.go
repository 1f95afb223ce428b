package main

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// gpuModels maps the data's marketing names to EC2's: its short name, and the memory of
// one card that software sees, which is less than the nominal size.
var gpuModels = map[string]catalog.GPU{
	"NVIDIA T4 Tensor Core":  {Manufacturer: "NVIDIA", Name: "T4", MemoryMiB: 16384},
	"NVIDIA T4G Tensor Core": {Manufacturer: "NVIDIA", Name: "T4g", MemoryMiB: 16384},
	"NVIDIA A10G":            {Manufacturer: "NVIDIA", Name: "A10G", MemoryMiB: 22888},
	"NVIDIA L4":              {Manufacturer: "NVIDIA", Name: "L4", MemoryMiB: 22888},
	"NVIDIA L40S":            {Manufacturer: "NVIDIA", Name: "L40S", MemoryMiB: 45776},
	"NVIDIA Tesla V100":      {Manufacturer: "NVIDIA", Name: "V100", MemoryMiB: 16384},
	"NVIDIA Tesla M60":       {Manufacturer: "NVIDIA", Name: "M60", MemoryMiB: 8192},
	"NVIDIA Tesla K80":       {Manufacturer: "NVIDIA", Name: "K80", MemoryMiB: 12288},
	"NVIDIA GRID K520":       {Manufacturer: "NVIDIA", Name: "K520", MemoryMiB: 4096},
	"NVIDIA A100":            {Manufacturer: "NVIDIA", Name: "A100", MemoryMiB: 40960},
	"NVIDIA H100":            {Manufacturer: "NVIDIA", Name: "H100", MemoryMiB: 81920},
	"NVIDIA H200":            {Manufacturer: "NVIDIA", Name: "H200", MemoryMiB: 144384},
	"AMD Radeon Pro V520":    {Manufacturer: "AMD", Name: "Radeon Pro V520", MemoryMiB: 8192},
}

// gpuMemoryMiB are families with the larger edition of a model.
var gpuMemoryMiB = map[string]int64{"p3dn": 32768, "p4de": 81920}

// neuron are the families of AWS's own chips. The data calls Trainium an Inferentia, and
// miscounts Trainium2.
var neuron = map[string]catalog.Accelerator{
	"inf1":  {Manufacturer: "AWS", Name: "Inferentia", CoresPerDevice: 4},
	"inf2":  {Manufacturer: "AWS", Name: "Inferentia2", CoresPerDevice: 2},
	"trn1":  {Manufacturer: "AWS", Name: "Trainium", CoresPerDevice: 2},
	"trn1n": {Manufacturer: "AWS", Name: "Trainium", CoresPerDevice: 2},
	"trn2":  {Manufacturer: "AWS", Name: "Trainium2", CoresPerDevice: 8, Count: 16},
}

// habana are devices that the data lacks. EC2 lists Gaudi cards among the GPUs.
var habana = map[string]catalog.GPU{
	"dl1": {Manufacturer: "Habana", Name: "Gaudi HL-205", Count: 8, MemoryMiB: 32768},
}

// qualcomm are inference accelerators that are not Neuron devices.
var qualcomm = map[string]catalog.Accelerator{
	"dl2q": {Manufacturer: "Qualcomm", Name: "Qualcomm AI100", Count: 8},
}

func devices(i instance) ([]catalog.GPU, []catalog.Accelerator) {
	family, _, _ := strings.Cut(i.Name, ".")
	if chip, ok := neuron[family]; ok {
		if chip.Count == 0 {
			chip.Count = i.GPUs
		}
		return nil, []catalog.Accelerator{chip}
	}
	if card, ok := habana[family]; ok {
		return []catalog.GPU{card}, nil
	}
	if device, ok := qualcomm[family]; ok {
		return nil, []catalog.Accelerator{device}
	}
	card, ok := gpuModels[i.GPUModel]
	if !ok || i.GPUs == 0 {
		return nil, nil
	}
	card.Count = i.GPUs
	if larger, ok := gpuMemoryMiB[family]; ok {
		card.MemoryMiB = larger
	}
	return []catalog.GPU{card}, nil
}
