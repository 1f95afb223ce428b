package release

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Verify checks the artifacts of a folder and of its registry as an operator does: checksums,
// signatures and, of images and charts that a local key signed, provenance.
func Verify(ctx context.Context, repository, folder string, out io.Writer) error {
	found, err := Read(folder)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "joist-release.")
	if err != nil {
		return fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	w := &work{MakeOptions: MakeOptions{Repository: repository, Into: folder, Version: found.Version, Out: out}, made: found, scratch: scratch}
	return runSteps(ctx, out, []step{
		{"build the tools", w.buildTools},
		{"verify the checksums", w.verifyChecksums},
		{"verify the signature of the checksums", w.verifyBlob},
		{"verify the signatures of the images and charts", w.verifyReferences},
		{"find the SBOMs of the images", w.findSBOMs},
	})
}

// verifyChecksums compares the files with checksums.txt and with release.json.
func (w *work) verifyChecksums(context.Context) error {
	file, err := os.Open(filepath.Join(w.Into, "checksums.txt"))
	if err != nil {
		return fmt.Errorf("reading the checksums: %w", err)
	}
	defer file.Close()
	sums := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		sum, file, _ := strings.Cut(lines.Text(), "  ")
		sums[file] = "sha256:" + sum
	}
	var problems []error
	for _, artifact := range w.made.Artifacts {
		if artifact.Path == "" {
			continue
		}
		digest, err := hashFile(filepath.Join(w.Into, artifact.Path))
		switch {
		case err != nil:
			problems = append(problems, err)
		case digest != artifact.Digest:
			problems = append(problems, fmt.Errorf("%s has the digest %s, and release.json lists %s", artifact.Name, digest, artifact.Digest))
		case hasChecksum(artifact.Kind) && digest != sums[artifact.Name]:
			problems = append(problems, fmt.Errorf("%s has the digest %s, and checksums.txt lists %q", artifact.Name, digest, sums[artifact.Name]))
		}
	}
	fmt.Fprintf(w.Out, "    %d files in checksums.txt, %d artifacts in release.json\n", len(sums), len(w.made.Artifacts))
	return errors.Join(problems...)
}

// hasChecksum reports whether checksums.txt lists files of a kind.
func hasChecksum(kind ArtifactKind) bool {
	return kind == KindArchive || kind == KindFunction || kind == KindSBOM
}

// verifyBlob verifies the signature of checksums.txt.
func (w *work) verifyBlob(ctx context.Context) error {
	checksums := filepath.Join(w.Into, "checksums.txt")
	_, err := w.run(ctx, nil, "cosign", append(append([]string{"verify-blob"}, w.trust()...), "--bundle="+checksums+".sigstore.json", checksums)...)
	return err
}

// verifyReferences verifies the signatures of the images and charts.
func (w *work) verifyReferences(ctx context.Context) error {
	for _, artifact := range append(w.made.Find(KindImage), w.made.Find(KindChart)...) {
		if _, err := w.run(ctx, nil, "cosign", append(append([]string{"verify"}, w.trust()...), artifact.Reference)...); err != nil {
			return err
		}
		if w.made.PublicKey == "" {
			continue
		}
		args := append([]string{"verify-attestation", "--type=slsaprovenance1"}, w.trust()...)
		if _, err := w.run(ctx, nil, "cosign", append(args, artifact.Reference)...); err != nil {
			return err
		}
	}
	return nil
}

// findSBOMs checks that each image has the SBOM that ko attaches.
func (w *work) findSBOMs(ctx context.Context) error {
	for _, image := range w.made.Find(KindImage) {
		repository, digest, _ := strings.Cut(image.Reference, "@")
		tag, err := name.NewTag(repository + ":" + strings.Replace(digest, ":", "-", 1) + ".sbom")
		if err != nil {
			return fmt.Errorf("naming the SBOM of %s: %w", image.Name, err)
		}
		if _, err := remote.Head(tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("reading the SBOM of %s: %w", image.Name, err)
		}
	}
	return nil
}

// trust are the arguments of cosign with the key or the identity that must have signed.
func (w *work) trust() []string {
	if w.made.PublicKey != "" {
		return []string{"--key=" + filepath.Join(w.Into, w.made.PublicKey), "--insecure-ignore-tlog=true"}
	}
	return []string{"--certificate-oidc-issuer=" + issuer, "--certificate-identity=" + workflow + w.Version}
}
