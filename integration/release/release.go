package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// MakeOptions has the inputs of a release.
type MakeOptions struct {
	// Repository is the root of the repository. Into is the folder of the artifacts; its
	// previous content is removed.
	Repository, Into string
	// Version is the release: v0.1.0.
	Version string
	// Registry is a host, or a host and a folder: ghcr.io/joist-autoscaler. Images are pushed
	// into it, and charts into its folder charts.
	Registry string
	// Key is the file of a private key of cosign with an empty password. If it is empty,
	// cosign signs with the identity of the workflow; on loopback a key is generated.
	Key string
	// Platforms limits the command and the images: linux/amd64. All if empty. The functions
	// are built for linux/arm64 in any case, and for these platforms of linux.
	Platforms []string
	// Publish creates the draft of the GitHub release, and permits other registries than
	// loopback.
	Publish bool
	// Out receives the progress and the output of the programs.
	Out io.Writer
}

// ArtifactList lists the artifacts of a release. It is the content of dist/release.json.
type ArtifactList struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Registry string `json:"registry"`
	// PublicKey is a file in the folder. It is empty if the signatures are those of the
	// workflow.
	PublicKey string     `json:"publicKey,omitempty"`
	Artifacts []Artifact `json:"artifacts"`
}

// Artifact is one file, image or chart.
type Artifact struct {
	Kind ArtifactKind `json:"kind"`
	// Name is a file's name, or the name of an image or chart: joist-watcher.
	Name string `json:"name"`
	// Digest is sha256:… of a file's content, or of the image's or chart's manifest.
	Digest string `json:"digest"`
	// Path is a file's path in the folder.
	Path string `json:"path,omitempty"`
	// Reference is an image's or chart's name in the registry, with its digest.
	Reference string `json:"reference,omitempty"`
}

// ArtifactKind is the kind of an artifact.
type ArtifactKind string

// The kinds.
const (
	KindArchive   ArtifactKind = "archive"
	KindFunction  ArtifactKind = "function"
	KindSBOM      ArtifactKind = "sbom"
	KindChecksums ArtifactKind = "checksums"
	KindSignature ArtifactKind = "signature"
	KindManifest  ArtifactKind = "manifest" // of krew and Homebrew
	KindPackage   ArtifactKind = "package"  // a chart as a file
	KindImage     ArtifactKind = "image"
	KindChart     ArtifactKind = "chart" // in the registry
)

// Find returns the artifacts of a kind.
func (l ArtifactList) Find(kind ArtifactKind) []Artifact {
	var found []Artifact
	for _, artifact := range l.Artifacts {
		if artifact.Kind == kind {
			found = append(found, artifact)
		}
	}
	return found
}

// work is a release in progress.
type work struct {
	MakeOptions
	made ArtifactList
	// scratch is a temporary folder.
	scratch string
	// date is the date of the commit.
	date time.Time
}

var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// Make makes all artifacts and writes release.json.
func Make(ctx context.Context, options MakeOptions) (ArtifactList, error) {
	if err := options.check(); err != nil {
		return ArtifactList{}, err
	}
	scratch, err := os.MkdirTemp("", "joist-release.")
	if err != nil {
		return ArtifactList{}, fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	w := &work{MakeOptions: options, made: ArtifactList{Version: options.Version, Registry: options.Registry}, scratch: scratch}
	err = runSteps(ctx, options.Out, []step{
		{"build the tools", w.buildTools},
		{"read the commit", w.readCommit},
		{"prepare the signatures", w.prepareSigning},
		{"make the archives, functions, SBOMs and checksums", w.makeFiles},
		{"push the images", w.pushImages},
		{"push the charts", w.pushCharts},
		{"sign the images and charts", w.signReferences},
		{"write release.json", w.writeRelease},
	})
	return w.made, err
}

// check reports options that cannot work, or that would publish by mistake.
func (o MakeOptions) check() error {
	host, _, _ := strings.Cut(o.Registry, "/")
	switch {
	case !semver.MatchString(o.Version):
		return fmt.Errorf("the version %q is not like v0.1.0", o.Version)
	case o.Registry == "":
		return errors.New("no registry is set (use ghcr.io/joist-autoscaler, or an address on loopback)")
	case !o.Publish && !isLoopback(host):
		return fmt.Errorf("the registry %s is not on loopback: only a published release is pushed there", host)
	}
	return nil
}

// isLoopback reports whether a registry's host, with or without a port, is this machine.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

// writeRelease writes release.json.
func (w *work) writeRelease(context.Context) error {
	text, err := json.MarshalIndent(w.made, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the list of artifacts: %w", err)
	}
	return os.WriteFile(filepath.Join(w.Into, "release.json"), append(text, '\n'), 0o644)
}

// Read reads release.json of a folder.
func Read(folder string) (ArtifactList, error) {
	text, err := os.ReadFile(filepath.Join(folder, "release.json"))
	if err != nil {
		return ArtifactList{}, fmt.Errorf("reading the list of artifacts: %w", err)
	}
	var found ArtifactList
	if err := json.Unmarshal(text, &found); err != nil {
		return ArtifactList{}, fmt.Errorf("decoding %s/release.json: %w", folder, err)
	}
	return found, nil
}
