package release

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// services have images. The functions have images too, because they can run as pollers.
var services = []string{"watcher", "lifecycle", "planner", "disruption", "interruption", "catalog", "launcher"}

// imagePlatforms are the platforms of defaultPlatforms in .ko.yaml.
var imagePlatforms = []string{"linux/amd64", "linux/arm64"}

// pushImages builds the images with ko and pushes them with their SBOMs.
func (w *work) pushImages(ctx context.Context) error {
	environ := []string{
		"KO_DOCKER_REPO=" + w.Registry, "KO_CONFIG_PATH=" + w.Repository, "SOURCE_DATE_EPOCH=" + strconv.FormatInt(w.date.Unix(), 10),
		"RELEASE_VERSION=" + w.Version, "RELEASE_COMMIT=" + w.made.Commit, "RELEASE_DATE=" + w.date.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if !w.Publish {
		base, err := w.pushBase(ctx)
		if err != nil {
			return err
		}
		environ = append(environ, "KO_DEFAULTBASEIMAGE="+base)
	}
	for _, service := range services {
		if err := w.pushImage(ctx, environ, service); err != nil {
			return err
		}
	}
	return nil
}

// pushImage pushes the image of one service.
func (w *work) pushImage(ctx context.Context, environ []string, service string) error {
	args := []string{"build", "--base-import-paths", "--tags=" + w.Version, "--sbom=spdx", "--jobs=2"}
	if len(w.Platforms) > 0 {
		args = append(args, "--platform="+strings.Join(linuxOnly(w.Platforms), ","))
	}
	for _, label := range []string{
		"source=https://github.com/joist-autoscaler/joist", "version=" + w.Version, "revision=" + w.made.Commit,
		"created=" + w.date.UTC().Format("2006-01-02T15:04:05Z"), "licenses=Apache-2.0", "title=joist-" + service,
		"documentation=https://github.com/joist-autoscaler/joist/blob/" + w.Version + "/services/" + service + "/README.md",
	} {
		args = append(args, "--image-label=org.opencontainers.image."+label)
	}
	reference, err := w.run(ctx, environ, "ko", append(args, fmt.Sprintf("./services/%s/cmd/joist-%s", service, service))...)
	if err != nil {
		return err
	}
	return w.addReference(KindImage, "joist-"+service, reference)
}

// linuxOnly returns the platforms of images.
func linuxOnly(platforms []string) []string {
	var found []string
	for _, platform := range platforms {
		if strings.HasPrefix(platform, "linux/") {
			found = append(found, platform)
		}
	}
	return found
}

// addReference adds an image or chart of the registry, as name@sha256:….
func (w *work) addReference(kind ArtifactKind, title, reference string) error {
	digest, err := name.NewDigest(strings.TrimSpace(reference))
	if err != nil {
		return fmt.Errorf("reading the reference %q: %w", reference, err)
	}
	w.made.Artifacts = append(w.made.Artifacts, Artifact{Kind: kind, Name: title, Digest: digest.DigestStr(), Reference: digest.Context().Name() + "@" + digest.DigestStr()})
	return nil
}

// pushBase pushes an empty base image for both platforms, and returns its reference. It
// replaces distroless where no other registry can be reached: the binaries are static, and
// the user is distroless's nonroot. It has no CA certificates and no time zones.
func (w *work) pushBase(ctx context.Context) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range imagePlatforms {
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return "", fmt.Errorf("parsing the platform %s: %w", platform, err)
		}
		image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
			OS: parsed.OS, Architecture: parsed.Architecture, Config: v1.Config{User: "65532", WorkingDir: "/"}, RootFS: v1.RootFS{Type: "layers"},
		})
		if err != nil {
			return "", fmt.Errorf("making the base image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: parsed}})
	}
	repository, err := name.NewRepository(w.Registry + "/base")
	if err != nil {
		return "", fmt.Errorf("naming the base image: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("computing the digest of the base image: %w", err)
	}
	reference := repository.Digest(digest.String())
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("pushing the base image to %s: %w", w.Registry, err)
	}
	return reference.Name(), nil
}
