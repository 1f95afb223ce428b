package release

import (
	"archive/tar"
	"archive/zip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/integration/release"
)

// unpackServices returns a folder with a binary joist-<service> per service: functions from their zips, and the
// services in the cluster from their images.
func (d *dryRun) unpackServices() string {
	d.Helper()
	dir := d.TempDir()
	for _, service := range inCluster {
		images := d.artifacts.Find(release.KindImage)
		i := slices.IndexFunc(images, func(image release.Artifact) bool { return image.Name == "joist-"+service })
		if i < 0 {
			d.Fatalf("the release has no image joist-%s", service)
		}
		d.unpackImage(images[i], filepath.Join(dir, images[i].Name))
	}
	for _, service := range functions {
		d.unpackFunction("joist-"+service, "arm64", filepath.Join(d.TempDir(), service))
		if runtime.GOARCH != "arm64" || service != "spotrole" {
			d.unpackFunction("joist-"+service, runtime.GOARCH, filepath.Join(dir, "joist-"+service))
		}
	}
	return dir
}

// machines are the ELF machines of architectures.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// unpackFunction writes the only file of a function's zip.
func (d *dryRun) unpackFunction(name, arch, into string) {
	d.Helper()
	archive := filepath.Join(testbed.Root, "dist", fmt.Sprintf("%s_%s_lambda_%s.zip", name, strings.TrimPrefix(d.modules.Version, "v"), arch))
	files, err := zip.OpenReader(archive)
	d.require(err)
	defer files.Close()
	if len(files.File) != 1 || files.File[0].Name != "bootstrap" || files.File[0].Mode().Perm() != 0o755 {
		d.Fatalf("%s does not have one executable file bootstrap", archive)
	}
	file, err := files.File[0].Open()
	d.require(err)
	defer file.Close()
	d.writeProgram(into, file)
	binary, err := elf.Open(into)
	d.require(err)
	defer binary.Close()
	libraries, err := binary.ImportedLibraries()
	d.require(err)
	if binary.Machine != machines[arch] || len(libraries) > 0 {
		d.Errorf("%s is for %s with the libraries %q, want a static binary for %s", archive, binary.Machine, libraries, arch)
	}
}

// unpackImage pulls an image for this machine and writes its entrypoint.
func (d *dryRun) unpackImage(artifact release.Artifact, into string) {
	d.Helper()
	reference, err := name.NewDigest(artifact.Reference)
	d.require(err)
	image, err := remote.Image(reference, remote.WithContext(d.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	d.require(err)
	config, err := image.ConfigFile()
	d.require(err)
	if len(config.Config.Entrypoint) != 1 || config.Config.User != "65532" && config.Config.User != "nonroot" {
		d.Fatalf("%s has the entrypoint %q and the user %q", artifact.Name, config.Config.Entrypoint, config.Config.User)
	}
	content := mutate.Extract(image)
	defer content.Close()
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			d.Fatalf("%s does not contain its entrypoint %s", artifact.Name, config.Config.Entrypoint[0])
		}
		d.require(err)
		if "/"+strings.TrimPrefix(header.Name, "/") == config.Config.Entrypoint[0] {
			d.writeProgram(into, files)
			return
		}
	}
}

func (d *dryRun) writeProgram(path string, content io.Reader) {
	d.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	d.require(err)
	_, err = io.Copy(file, content)
	d.require(errors.Join(err, file.Close()))
}
