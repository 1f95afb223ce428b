package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The programs' file names in the assets folder.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"

	// kwokStages is the file with kwok's configuration of the phases of nodes and pods,
	// for which kwok has no default.
	kwokStages = "kwok-stages.yaml"
)

// executable is the file that the programs' symlinks point to.
const executable = "controlplane"

// programs lists the files in a folder that Build created.
func programs() []string {
	return []string{etcd, apiserver, controllerManager, scheduler, kwok}
}

// needed lists the files that Start requires.
func needed(withoutKwok bool) []string {
	if withoutKwok {
		return []string{etcd, apiserver, controllerManager, scheduler}
	}
	return append(programs(), kwokStages)
}

// checkAssets returns an error with the files that a folder lacks. Kubebuilder's
// downloads have only etcd and the API server.
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
