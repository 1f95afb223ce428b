package release

import (
	"archive/tar"
	"archive/zip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/joist-autoscaler/joist/integration/release"
)

// unpackServices returns a folder with a binary joist-<service> per service: functions from their zips, and the
// services in the cluster from their images.
func (d *dryRun) unpackServices() string {
	d.Helper()
	dir, emulator := d.TempDir(), findEmulator()
	for _, image := range d.artifacts.Find(release.KindImage) {
		d.unpackImage(image, filepath.Join(dir, image.Name))
	}
	functions := d.artifacts.Find(release.KindFunction)
	for _, function := range functions {
		service, _, _ := strings.Cut(function.Name, "_")
		binary := filepath.Join(dir, service+".arm64")
		d.unpackFunction(filepath.Join("..", "..", "..", "dist", function.Path), binary)
		if emulator == nil || service == "joist-spotrole" {
			continue
		}
		script := fmt.Sprintf("#!/bin/sh\nexec %s '%s' \"$@\"\n", strings.Join(emulator, " "), binary)
		d.require(os.WriteFile(filepath.Join(dir, service), []byte(script), 0o700))
	}
	if len(functions) == 0 {
		d.Error("the release has no functions")
	}
	if emulator == nil {
		fmt.Fprintln(os.Stderr, "NOTE: no qemu-aarch64 in PATH: the functions are the binaries of the images, not of the zips")
	}
	return dir
}

// findEmulator returns the words before a command for arm64, or nil if this machine cannot run it.
func findEmulator() []string {
	if runtime.GOARCH == "arm64" {
		return []string{}
	}
	for _, program := range []string{"qemu-aarch64-static", "qemu-aarch64"} {
		if path, err := exec.LookPath(program); err == nil {
			return []string{path}
		}
	}
	return nil
}

// unpackFunction writes the only file of a function's zip.
func (d *dryRun) unpackFunction(archive, into string) {
	d.Helper()
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
	if binary.Machine != elf.EM_AARCH64 || len(d.sharedLibraries(binary)) > 0 {
		d.Errorf("%s is for %s with the libraries %q, want a static binary for arm64", archive, binary.Machine, d.sharedLibraries(binary))
	}
}

func (d *dryRun) sharedLibraries(binary *elf.File) []string {
	libraries, err := binary.ImportedLibraries()
	d.require(err)
	return libraries
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
