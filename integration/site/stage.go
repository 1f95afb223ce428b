package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/joist-autoscaler/joist/integration/lint/repolint"
)

// configFile is the generator's configuration. The staged copy has no optional pages that do not exist.
const configFile = "deploy/site/mkdocs.yml"

var declaredTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// stage writes mkdocs.yml and the folder pages into a folder. files are the repository's text files.
func stage(root, into string, files []repolint.File) error {
	document, s, err := readConfig(filepath.Join(root, configFile))
	if err != nil {
		return err
	}
	w := newWriter(s, files)
	dropEntries(member(document.Content[0], "nav"), slices.DeleteFunc(slices.Clone(s.Extra.Optional), func(page string) bool {
		return w.pages[path.Join(docs, page)] != ""
	}))
	pages := filepath.Join(into, "pages")
	if err := os.RemoveAll(pages); err != nil {
		return fmt.Errorf("removing the pages of the last run: %w", err)
	}
	if err := os.CopyFS(pages, os.DirFS(filepath.Join(root, docs))); err != nil {
		return fmt.Errorf("copying %s: %w", docs, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		texts[file.Path] = file.Text
	}
	for source, page := range w.pages {
		text, err := w.rewrite(source, texts[source])
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(pages, page), text); err != nil {
			return err
		}
	}
	config, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return writeFile(filepath.Join(into, "mkdocs.yml"), string(config))
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating a folder of the site: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing a page of the site: %w", err)
	}
	return nil
}

// newWriter finds the pages, files, folders and tests of the repository.
func newWriter(s settings, files []repolint.File) writer {
	w := writer{repository: s.Repository, pages: map[string]string{}, isFolder: map[string]bool{}, tests: map[string]string{}}
	for page, source := range s.Extra.Outside {
		w.pages[source] = page
	}
	for _, file := range files {
		w.isFolder[file.Path] = false
		for folder := path.Dir(file.Path); folder != "."; folder = path.Dir(folder) {
			w.isFolder[folder] = true
		}
		if page, ok := strings.CutPrefix(file.Path, docs+"/"); ok && strings.HasSuffix(page, ".md") {
			w.pages[file.Path] = page
		}
		if strings.HasSuffix(file.Path, "_test.go") {
			for _, test := range declaredTest.FindAllStringSubmatch(file.Text, -1) {
				w.tests[test[1]] = file.Path
			}
		}
	}
	return w
}
