package release

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/integration/release"
	"github.com/joist-autoscaler/joist/integration/release/modules"
)

// command is the package that users install.
const command = "services/cli/cmd/joist"

// dryRun is a release and its installed command.
type dryRun struct {
	*testing.T
	modules   modules.ModuleRelease
	artifacts release.ArtifactList
	// joist is the installed command.
	joist string
}

// TestDryRun makes a release and uses it as an operator does.
func TestDryRun(t *testing.T) {
	if os.Getenv("JOIST_RELEASE") == "" {
		t.Skip("JOIST_RELEASE is not set: make release-dry-run sets it")
	}
	d := &dryRun{T: t}
	d.runPhase("release commit and file proxy", d.cutModules)
	d.runPhase("go install", d.installCommand)
	d.runPhase("artifacts in dist/ and in a registry on loopback", d.makeArtifacts)
	d.runPhase("each module builds from the file proxy", d.buildModules)
	d.runPhase("quickstart on the installed release", d.runQuickstart)
}

// runPhase runs a part that the following ones depend on, and prints its duration.
func (d *dryRun) runPhase(name string, run func()) {
	began := time.Now()
	run()
	if d.Failed() {
		d.FailNow()
	}
	fmt.Fprintf(os.Stderr, "✓ %s (%.0f s)\n", name, time.Since(began).Seconds())
}

// require ends the test if err is not nil.
func (d *dryRun) require(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *dryRun) cutModules() {
	made, err := modules.Cut(d.Context(), modules.CutOptions{Repository: testbed.Root, Scratch: d.TempDir()})
	d.require(err)
	d.modules = made
	// The test's context has ended when clean-up functions run.
	d.Cleanup(func() { d.require(made.Clean(context.Background())) })
	fmt.Fprintf(os.Stderr, "%s: release commit %s of %s\n", made.Version, made.Commit, made.Source)
}

func (d *dryRun) buildModules() {
	for _, m := range d.modules.Modules {
		d.require(d.modules.Build(d.Context(), m))
	}
}

// installCommand installs the command and checks that it works outside the repository.
func (d *dryRun) installCommand() {
	gobin := d.TempDir()
	d.require(d.modules.Install(d.Context(), command, gobin))
	d.joist = filepath.Join(gobin, "joist")
	if version := d.readVersion(d.joist); version != d.modules.Version {
		d.Errorf("the installed command has version %q, want %s", version, d.modules.Version)
	}
	quickstart, err := filepath.Abs(quickstart)
	d.require(err)
	// Exit code 2: there are nodes to launch.
	plan := d.run(2, d.joist, "plan", "-f", quickstart, "--region", "eu-west-1", "--var", "CLUSTER_NAME=prod")
	golden.Compare(d.T, "../charts/testdata/golden/quickstart.txt", plan)
}

// readVersion returns the version in the output of a command's `version -o json`.
func (d *dryRun) readVersion(program string) string {
	d.Helper()
	var build struct{ Version string }
	d.require(json.Unmarshal([]byte(d.run(0, program, "version", "-o", "json")), &build))
	return build.Version
}

func (d *dryRun) makeArtifacts() {
	root, err := filepath.Abs(testbed.Root)
	d.require(err)
	registry, err := release.StartRegistry(d.Context(), "127.0.0.1:0")
	d.require(err)
	into := filepath.Join(root, "dist")
	d.artifacts, err = release.Make(d.Context(), release.MakeOptions{
		Repository: root, Into: into, Version: d.modules.Version, Registry: registry + "/joist-autoscaler",
		Platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}, Out: os.Stderr,
	})
	d.require(err)
	d.require(release.Verify(d.Context(), root, into, os.Stderr))
	if d.artifacts.Commit != d.modules.Source {
		d.Errorf("the artifacts are of commit %s, want %s", d.artifacts.Commit, d.modules.Source)
	}
}

// runQuickstart installs the release, applies the quickstart's manifests, which have five pods, and scales to zero.
func (d *dryRun) runQuickstart() {
	bin := d.unpackServices()
	ports := newPorts(d.T)
	bed := testbed.New(d.T, testbed.Options{
		Charts: "oci://" + d.artifacts.Registry + "/charts", ChartVersion: strings.TrimPrefix(d.modules.Version, "v"), Environ: ports.environ,
	})
	bed.StartJoist(bin, true)
	d.checkImages(bed)
	d.checkBuilds(bed, ports)
	for _, file := range []string{"ec2nodeclass", "nodepool", "inflate"} {
		bed.Apply(quickstart+"/"+file+".yaml", map[string]string{"CLUSTER_NAME": testbed.ClusterName})
	}
	bed.WaitUntil(time.Minute, "five pods to run", func() bool { return countRunning(bed) == replicas })
	bed.Logf("five pods run on %d instances", len(bed.RunningInstances()))
	scale(bed, 0)
	// consolidateAfter is a minute, and each node is proposed, confirmed after 15 s, and drained.
	bed.WaitUntil(replicas*time.Minute, "the nodes, NodeClaims and instances to be removed", func() bool {
		return len(bed.Nodes())+len(bed.Claims())+len(bed.Pods("inflate")) == 0 && bed.AllTerminated()
	})
	bed.Logf("no node, NodeClaim or instance remains")
	bed.Stop()
}
