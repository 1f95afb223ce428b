package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The programs, by the names of their files in the assets folder.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"

	// kwokStages is a file: the configuration that tells kwok what nodes and
	// pods do in their lives. It has no default for it.
	kwokStages = "kwok-stages.yaml"
)

// executable is the one file that the programs' names are symlinks to.
const executable = "controlplane"

// programs lists what a folder that Build made holds.
func programs() []string {
	return []string{etcd, apiserver, controllerManager, scheduler, kwok}
}

// needed lists the files without which Start cannot work.
func needed(withoutKwok bool) []string {
	if withoutKwok {
		return []string{etcd, apiserver, controllerManager, scheduler}
	}
	return append(programs(), kwokStages)
}

// checkAssets says which files a folder of somebody else's lacks. Kubebuilder's
// own downloads are such folders: they have etcd and the API server, and not the rest.
func checkAssets(dir string, names []string) error {
	var missing []string
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("KUBEBUILDER_ASSETS=%s lacks %s: put them there (%s is the stages of kwok's kustomize/stage/{node,pod}/fast in one file), or unset KUBEBUILDER_ASSETS to have all of them built",
		dir, strings.Join(missing, ", "), kwokStages)
}
