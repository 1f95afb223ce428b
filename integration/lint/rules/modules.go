package rules

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Absence is a module that another module's go.mod must not require. It repeats a
// transitive rule in the file that a security reviewer reads first.
type Absence struct {
	Module string // directory in this repository
	Absent string // module path, or a prefix that ends in a slash
	Reason string
}

// Absences returns all of them.
func Absences() []Absence {
	var all []Absence
	for _, service := range []string{"launcher", "planner", "disruption", "catalog", "interruption"} {
		all = append(all, Absence{"services/" + service, "k8s.io/client-go", "it has no right in Kubernetes"})
	}
	for _, service := range []string{"lifecycle", "watcher", "planner", "disruption"} {
		all = append(all, Absence{"services/" + service, "github.com/aws/aws-sdk-go-v2/service/ec2", "it has no right in EC2"})
	}
	for _, service := range services {
		dir := "services/" + service
		all = append(all,
			Absence{dir, "github.com/aws/aws-cdk-go/", "the CDK stays out of every service"},
			Absence{dir, "k8s.io/kubernetes", "the control plane's code stays out of every service"},
			Absence{dir, "sigs.k8s.io/karpenter", "upstream Karpenter is a peer, in integration alone"},
		)
	}
	return all
}

// Required returns the modules that the go.mod in dir requires, also indirectly.
func Required(dir string) ([]string, error) {
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(dir, "go.mod")).Output()
	if err != nil {
		return nil, fmt.Errorf("reading %s/go.mod: %w", dir, err)
	}
	var file struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, fmt.Errorf("decoding %s/go.mod: %w", dir, err)
	}
	paths := make([]string, 0, len(file.Require))
	for _, r := range file.Require {
		paths = append(paths, r.Path)
	}
	return paths, nil
}

// Judge returns a message if the required modules include the absent one.
func (a Absence) Judge(required []string) (string, bool) {
	for _, path := range required {
		if path == a.Absent || strings.HasSuffix(a.Absent, "/") && strings.HasPrefix(path, a.Absent) {
			return fmt.Sprintf("%s/go.mod requires %s\n\twhy: %s\n\tfix: find what imports it (go mod why -m %s in %s), move that out, then go mod tidy",
				a.Module, path, a.Reason, path, a.Module), true
		}
	}
	return "", false
}
