// Package image chooses machine images. It lists the SSM parameters with the images of an alias,
// and chooses the images to use from the ones that selectors match.
//
// Of images that boot the same instance types it chooses one: images that are not deprecated come
// first, then the newest. The result does not depend on the input's order.
package image

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Requirements are the node selector requirements of instance types that an image boots.
type Requirements []corev1.NodeSelectorRequirement

func requireNoAccelerator() Requirements {
	return Requirements{
		{Key: karpenter.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: karpenter.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpDoesNotExist},
	}
}

func requireNVIDIA() Requirements {
	return Requirements{{Key: karpenter.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpExists}}
}

func requireNeuron() Requirements {
	return Requirements{{Key: karpenter.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpExists}}
}

func requireValue(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}

// candidate is an image with one set of requirements.
type candidate struct {
	cloud.Image
	requirements json.RawMessage
}

// ChooseImages returns the images to use, newest first. known has the requirements of
// images by id, in addition to their architecture. Images of architectures other than
// amd64 and arm64 are skipped.
func ChooseImages(images []cloud.Image, known map[string][]Requirements) ([]event.Image, error) {
	best := map[string]candidate{}
	for _, image := range images {
		if image.Arch != karpenter.ArchitectureAMD64 && image.Arch != karpenter.ArchitectureARM64 {
			continue
		}
		alternatives := known[image.ID]
		if len(alternatives) == 0 {
			alternatives = []Requirements{nil}
		}
		for _, requirements := range alternatives {
			text, err := encodeRequirements(requirements, image.Arch)
			if err != nil {
				return nil, fmt.Errorf("encoding the requirements of image %s: %w", image.ID, err)
			}
			previous, found := best[string(text)]
			if !found || isPreferred(image, previous.Image) {
				best[string(text)] = candidate{image, text}
			}
		}
	}
	return sortImages(best), nil
}

// encodeRequirements encodes requirements in the order of Karpenter's status: short keys
// first.
func encodeRequirements(requirements Requirements, arch string) (json.RawMessage, error) {
	all := append(slices.Clone(requirements), requireValue(corev1.LabelArchStable, arch))
	slices.SortFunc(all, func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	return json.Marshal(all)
}

// isPreferred reports whether a is preferred to b. Names, then ids, break ties, so the
// choice is deterministic.
func isPreferred(a, b cloud.Image) bool {
	if a.Deprecated != b.Deprecated {
		return b.Deprecated
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) > 0
}

func sortImages(best map[string]candidate) []event.Image {
	var all []candidate
	for _, c := range best {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID), cmp.Compare(string(a.requirements), string(b.requirements)))
	})
	var out []event.Image
	for _, c := range all {
		out = append(out, event.Image{ID: c.ID, Name: c.Name, Deprecated: c.Deprecated, Requirements: c.requirements})
	}
	return out
}
