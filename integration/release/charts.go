package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"
)

// charts are folders of deploy/charts.
var charts = []string{"joist-crd", "joist"}

// pushCharts packages the charts with the version, the registry and the digests of the
// images, and pushes them.
func (w *work) pushCharts(ctx context.Context) error {
	for _, chart := range charts {
		if err := w.pushChart(ctx, chart); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) pushChart(ctx context.Context, chart string) error {
	folder := filepath.Join(w.scratch, chart)
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(w.Repository, "deploy", "charts", chart))); err != nil {
		return fmt.Errorf("copying the chart %s: %w", chart, err)
	}
	if err := setVersion(filepath.Join(folder, "Chart.yaml"), w.Registry, w.Version); err != nil {
		return err
	}
	if chart == "joist" {
		if err := setImages(filepath.Join(folder, "values.yaml"), w.Registry, w.made.Find(KindImage)); err != nil {
			return err
		}
	}
	version := strings.TrimPrefix(w.Version, "v")
	if _, err := w.run(ctx, nil, "helm", "package", folder, "--version="+version, "--app-version="+version, "--destination="+w.Into); err != nil {
		return err
	}
	packaged := filepath.Join(w.Into, chart+"-"+version+".tgz")
	if err := w.addFile(KindPackage, packaged); err != nil {
		return err
	}
	push := []string{"push", packaged, "oci://" + w.Registry + "/charts"}
	if !w.Publish {
		push = append(push, "--plain-http")
	}
	if _, err := w.run(ctx, nil, "helm", push...); err != nil {
		return err
	}
	tag, err := name.NewTag(w.Registry + "/charts/" + chart + ":" + version)
	if err != nil {
		return fmt.Errorf("naming the chart %s: %w", chart, err)
	}
	pushed, err := remote.Head(tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("reading the digest of the chart %s: %w", tag, err)
	}
	return w.addReference(KindChart, chart, tag.Context().Name()+"@"+pushed.Digest.String())
}

var listedImage = regexp.MustCompile(`( image: )\S+/(joist-[a-z]+):\S+`)

// setVersion sets what Artifact Hub reads in Chart.yaml: the images, and whether the version is
// a prerelease. Helm sets the chart's own versions.
func setVersion(file, registry, version string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the chart's description: %w", err)
	}
	edited := listedImage.ReplaceAllString(string(text), "${1}"+registry+"/${2}:"+version)
	if strings.Contains(version, "-") {
		edited = strings.Replace(edited, `artifacthub.io/prerelease: "false"`, `artifacthub.io/prerelease: "true"`, 1)
	}
	return os.WriteFile(file, []byte(edited), 0o644)
}

// setImages sets the registry and the digests of images as defaults in values.yaml, and keeps
// its comments.
func setImages(file, registry string, images []Artifact) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the chart's values: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("decoding the chart's values: %w", err)
	}
	values := map[string]string{"controller.image.repository": registry}
	for _, image := range images {
		service := strings.TrimPrefix(image.Name, "joist-")
		if service == "watcher" || service == "lifecycle" {
			values[service+".image.digest"] = image.Digest
		}
	}
	for path, value := range values {
		node := document.Content[0]
		for key := range strings.SplitSeq(path, ".") {
			if node = child(node, key); node == nil {
				return fmt.Errorf("the chart has no value %s", path)
			}
		}
		node.SetString(value)
	}
	var edited bytes.Buffer
	encoder := yaml.NewEncoder(&edited)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return fmt.Errorf("encoding the chart's values: %w", err)
	}
	return os.WriteFile(file, edited.Bytes(), 0o644)
}

// child returns a field of a mapping, or nil.
func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
