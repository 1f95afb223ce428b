// Package image chooses machine images: where AWS publishes those of an alias,
// which instance types each one boots, and which of several is the one to use.
//
// Of the images that boot the same types one is chosen: one that is not
// deprecated before one that is, then the newest. So the result is small
// whatever a selector finds, and it does not depend on the order of the input.
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

// Requirements say which instance types an image boots.
type Requirements []corev1.NodeSelectorRequirement

func standard() Requirements {
	return Requirements{
		{Key: karpenter.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: karpenter.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpDoesNotExist},
	}
}

func nvidia() Requirements {
	return Requirements{{Key: karpenter.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpExists}}
}

func neuron() Requirements {
	return Requirements{{Key: karpenter.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpExists}}
}

func in(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}

// chosen is an image for one set of requirements.
type chosen struct {
	cloud.Image
	requirements json.RawMessage
}

// Choose picks the images to use, the newest first. Known says what is known of
// an image beside its architecture, by id. Images of another architecture than
// Kubernetes' amd64 and arm64 are passed over.
func Choose(images []cloud.Image, known map[string][]Requirements) ([]event.Image, error) {
	best := map[string]chosen{}
	for _, image := range images {
		if image.Arch != karpenter.ArchitectureAMD64 && image.Arch != karpenter.ArchitectureARM64 {
			continue
		}
		fits := known[image.ID]
		if len(fits) == 0 {
			fits = []Requirements{nil}
		}
		for _, requirements := range fits {
			text, err := encode(requirements, image.Arch)
			if err != nil {
				return nil, fmt.Errorf("encoding the requirements of image %s: %w", image.ID, err)
			}
			have, taken := best[string(text)]
			if !taken || better(image, have.Image) {
				best[string(text)] = chosen{image, text}
			}
		}
	}
	return sorted(best), nil
}

// encode writes requirements in the order in which Karpenter's status has them:
// short keys first.
func encode(requirements Requirements, arch string) (json.RawMessage, error) {
	all := append(slices.Clone(requirements), in(corev1.LabelArchStable, arch))
	slices.SortFunc(all, func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	return json.Marshal(all)
}

// better reports whether a is to be preferred to b. Names, then ids, break ties,
// so that the choice is the same every time.
func better(a, b cloud.Image) bool {
	if a.Deprecated != b.Deprecated {
		return b.Deprecated
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) > 0
}

func sorted(best map[string]chosen) []event.Image {
	var all []chosen
	for _, c := range best {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b chosen) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID), cmp.Compare(string(a.requirements), string(b.requirements)))
	})
	var out []event.Image
	for _, c := range all {
		out = append(out, event.Image{ID: c.ID, Name: c.Name, Deprecated: c.Deprecated, Requirements: c.requirements})
	}
	return out
}
