package karpenterspecs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const karpenterModule = "sigs.k8s.io/karpenter"

// edit replaces a text that occurs so many times in a file of Karpenter.
type edit struct {
	file, old, new string
	times          int
}

// changedPlanner are the changes with which Karpenter plans with Joist.
var changedPlanner = change{folder: "planner", edits: edits, files: func() (map[string]string, error) {
	return readAdded(map[string]string{
		solveFile: "solve.go.txt", staticFolder + "reconcile_joist.go": "static.go.txt", staticFolder + "types_joist_test.go": "statictypes.go.txt",
	})
}}

// readAdded returns the contents of files in testdata, by the path in Karpenter to which they are added.
func readAdded(names map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for path, name := range names {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			return nil, fmt.Errorf("reading a file that is added to Karpenter: %w", err)
		}
		out[path] = string(content)
	}
	return out, nil
}

const (
	fakeTypes       = "pkg/cloudprovider/fake/instancetype.go"
	schedulerFile   = "pkg/controllers/provisioning/scheduling/scheduler.go"
	staticFolder    = "pkg/controllers/static/provisioning/"
	selectionFile   = "pkg/controllers/provisioning/scheduling/instance_selection_test.go"
	schedulingSuite = "pkg/controllers/provisioning/scheduling/suite_test.go"
	solveFile       = "pkg/controllers/provisioning/scheduling/solve_joist.go"
)

// edits are the changes to Karpenter. The labels of the specs' instance types become labels of EC2's instance types, and
// their CSI driver becomes that of EBS, because Joist knows no others.
var edits = []edit{
	{schedulerFile, "func (s *Scheduler) Solve(", "func (s *Scheduler) solveUpstream(", 1},
	{fakeTypes, `= "size"`, `= "karpenter.k8s.aws/instance-size"`, 1},
	{fakeTypes, `= "special"`, `= "karpenter.k8s.aws/instance-family"`, 1},
	{fakeTypes, `= "integer"`, `= "karpenter.k8s.aws/instance-cpu"`, 1},
	{schedulerFile, "		creditReservationCapacity: resolved.creditReservationCapacity,\n", "		creditReservationCapacity: resolved.creditReservationCapacity,\n		isConsolidation: resolved.enforceConsolidateAfter,\n", 1},
	{schedulerFile, "	deletingNodeNames         sets.Set[string]\n", "	deletingNodeNames         sets.Set[string]\n	isConsolidation bool\n", 1},
	{schedulingSuite, `"fake.csi.provider"`, `"ebs.csi.aws.com"`, 1},
	{staticFolder + "controller.go", "func (c *Controller) Reconcile(", "func (c *Controller) reconcileUpstream(", 1},
	{staticFolder + "suite_test.go", "Requirements = inputRequirements\n", "Requirements = inputRequirements\n			cloudProvider.InstanceTypes = templateTypes()\n", 1},
	{selectionFile, "karpenter/numerical-value", "karpenter.k8s.aws/instance-generation", 6},
}

// change is a set of changes to Karpenter, and the folder of the copy that has them.
type change struct {
	folder string
	edits  []edit
	// everywhere are replaced in each Go and YAML file, and in the names of YAML files.
	everywhere []string
	// files are written in addition, by their path.
	files func() (map[string]string, error)
}

// karpenterCopy is a changed copy of Karpenter's module and a go.mod of integration that requires it.
type karpenterCopy struct {
	// integration, module and modFile are absolute paths.
	integration, module, modFile string
}

// copyKarpenter writes a copy with the changes into its folder of the cache.
func copyKarpenter(ctx context.Context, integration, cache string, c change) (karpenterCopy, error) {
	into := filepath.Join(cache, c.folder)
	out := karpenterCopy{integration: integration, module: filepath.Join(into, "karpenter"), modFile: filepath.Join(into, "go.mod")}
	from, err := out.runGo(ctx, "list", "-m", "-f", "{{.Dir}}", karpenterModule)
	if err != nil {
		return out, err
	}
	if err := os.RemoveAll(out.module); err != nil {
		return out, fmt.Errorf("removing the last copy of Karpenter: %w", err)
	}
	for _, part := range []string{"pkg", "kwok"} {
		if err := os.CopyFS(filepath.Join(out.module, part), os.DirFS(filepath.Join(from, part))); err != nil {
			return out, fmt.Errorf("copying Karpenter: %w", err)
		}
	}
	if err := copyFile(filepath.Join(from, "go.mod"), filepath.Join(out.module, "go.mod")); err != nil {
		return out, err
	}
	return out, errors.Join(c.apply(out.module), out.writeModFile())
}

// apply changes a copy.
func (c change) apply(module string) error {
	if err := c.replaceEverywhere(module); err != nil {
		return err
	}
	for _, e := range c.edits {
		if err := applyEdit(module, e); err != nil {
			return err
		}
	}
	files, err := c.files()
	for path, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(module, path), []byte(content), 0o644))
	}
	return err
}

// replaceEverywhere replaces the texts in all files of package pkg.
func (c change) replaceEverywhere(module string) error {
	if len(c.everywhere) == 0 {
		return nil
	}
	replacer := strings.NewReplacer(c.everywhere...)
	return filepath.WalkDir(filepath.Join(module, "pkg"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".yaml"}, filepath.Ext(path)) {
			return err
		}
		before, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("changing Karpenter: %w", err)
		}
		after, name := replacer.Replace(string(before)), filepath.Join(filepath.Dir(path), replacer.Replace(filepath.Base(path)))
		if after == string(before) {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("changing Karpenter: %w", err)
		}
		return os.WriteFile(name, []byte(after), 0o644)
	})
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copying a file: %w", err)
	}
	return os.WriteFile(to, content, 0o644)
}

func applyEdit(module string, e edit) error {
	path := filepath.Join(module, e.file)
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("editing Karpenter: %w", err)
	}
	if n := bytes.Count(content, []byte(e.old)); n != e.times {
		return fmt.Errorf("%s: %q occurs %d times, not %d: change edits in source_test.go for this version of Karpenter", e.file, e.old, n, e.times)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		return fmt.Errorf("editing Karpenter: %w", err)
	}
	return os.WriteFile(path, bytes.ReplaceAll(content, []byte(e.old), []byte(e.new)), 0o644)
}

// writeModFile writes the go.mod and go.sum of integration with Karpenter replaced by the copy. Relative paths in it
// are relative to integration.
func (c karpenterCopy) writeModFile() error {
	content, err := os.ReadFile(filepath.Join(c.integration, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading integration's go.mod: %w", err)
	}
	lines, replaced := strings.Split(string(content), "\n"), 0
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), karpenterModule+" =>") {
			lines[i], replaced = "\t"+karpenterModule+" => "+c.module, replaced+1
		}
	}
	if replaced != 1 {
		return fmt.Errorf("integration/go.mod replaces %s %d times, not once", karpenterModule, replaced)
	}
	if err := os.WriteFile(c.modFile, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		return fmt.Errorf("writing go.mod: %w", err)
	}
	return copyFile(filepath.Join(c.integration, "go.sum"), strings.TrimSuffix(c.modFile, ".mod")+".sum")
}

// build compiles the tests of a package of Karpenter.
func (c karpenterCopy) build(ctx context.Context, pkg, binary string) error {
	_, err := c.runGo(ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-modfile="+c.modFile, "-o", binary, karpenterModule+"/"+pkg)
	return err
}

// runGo runs go in the module integration and returns what it prints.
func (c karpenterCopy) runGo(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = c.integration, append(os.Environ(), "GOWORK=off")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}
