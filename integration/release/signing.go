package release

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The source of the releases, and the identity with which GitHub's workflow signs.
const (
	source   = "https://github.com/joist-autoscaler/joist"
	issuer   = "https://token.actions.githubusercontent.com"
	workflow = source + "/.github/workflows/release.yaml@refs/tags/"
)

// prepareSigning generates a key on loopback, unless there is one, and writes a configuration
// of cosign without a transparency log. With Publish and without a key it does nothing: cosign
// signs with the identity of the workflow.
func (w *work) prepareSigning(ctx context.Context) error {
	if w.Publish && w.Key == "" {
		return nil
	}
	if w.Key == "" {
		prefix := filepath.Join(w.scratch, "release")
		if _, err := w.run(ctx, noPassword, "cosign", "generate-key-pair", "--output-key-prefix="+prefix); err != nil {
			return err
		}
		w.Key = prefix + ".key"
	}
	_, err := w.run(ctx, nil, "cosign", "signing-config", "create", "--out="+w.signingConfig())
	return err
}

// noPassword decrypts keys with an empty password.
var noPassword = []string{"COSIGN_PASSWORD="}

// signingConfig is the configuration of cosign without a transparency log.
func (w *work) signingConfig() string { return filepath.Join(w.scratch, "signing-config.json") }

// signingEnviron passes the key to goreleaser's configuration.
func (w *work) signingEnviron() []string {
	if w.Key == "" {
		return nil
	}
	return append([]string{"RELEASE_KEY=" + w.Key, "RELEASE_SIGNING_CONFIG=" + w.signingConfig()}, noPassword...)
}

// signReferences signs the images and charts. With a key it also attests their provenance;
// the workflow does that with GitHub's action.
func (w *work) signReferences(ctx context.Context) error {
	var keyed []string
	if w.Key != "" {
		keyed = []string{"--key=" + w.Key, "--signing-config=" + w.signingConfig()}
	}
	predicate, err := w.writeProvenance()
	if err != nil {
		return err
	}
	for _, artifact := range append(w.made.Find(KindImage), w.made.Find(KindChart)...) {
		args := append([]string{"sign", "--yes"}, keyed...)
		if _, err := w.run(ctx, noPassword, "cosign", append(args, artifact.Reference)...); err != nil {
			return err
		}
		if w.Key == "" {
			continue
		}
		args = append([]string{"attest", "--yes", "--type=slsaprovenance1", "--predicate=" + predicate}, keyed...)
		if _, err := w.run(ctx, noPassword, "cosign", append(args, artifact.Reference)...); err != nil {
			return err
		}
	}
	if w.Key == "" {
		return nil
	}
	public, err := w.run(ctx, noPassword, "cosign", "public-key", "--key="+w.Key)
	if err != nil {
		return err
	}
	w.made.PublicKey = "cosign.pub"
	return os.WriteFile(filepath.Join(w.Into, w.made.PublicKey), []byte(public), 0o644)
}

// writeProvenance writes the predicate of a SLSA provenance, version 1: the source, and the
// program that built.
func (w *work) writeProvenance() (string, error) {
	type object map[string]any
	predicate := object{
		"buildDefinition": object{
			"buildType":            source + "/blob/main/deploy/docs/release.md",
			"externalParameters":   object{"version": w.Version},
			"resolvedDependencies": []object{{"uri": "git+" + source + "@refs/tags/" + w.Version, "digest": object{"gitCommit": w.made.Commit}}},
		},
		"runDetails": object{
			"builder":  object{"id": source + "/tree/main/integration/release"},
			"metadata": object{"finishedOn": time.Now().UTC().Format(time.RFC3339)},
		},
	}
	text, err := json.Marshal(predicate)
	if err != nil {
		return "", fmt.Errorf("encoding the provenance: %w", err)
	}
	path := filepath.Join(w.scratch, "provenance.json")
	return path, os.WriteFile(path, text, 0o600)
}
