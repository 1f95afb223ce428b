package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// loaded matches an element for which a browser loads something from another host.
var loaded = regexp.MustCompile(`<(?:script|link|img|iframe|source|object)\b[^>]*\b(?:src|href|data)=["']?(?:https?:)?//[^>]*>`)

// checkLoads returns an error that names the pages of a site that need another host.
func checkLoads(site string) error {
	root, err := os.OpenRoot(site)
	if err != nil {
		return fmt.Errorf("reading the site: %w", err)
	}
	defer root.Close()
	pages, problems := 0, []string{}
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		pages++
		text, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		for _, element := range loaded.FindAllString(string(text), -1) {
			problems = append(problems, filepath.Join(site, name)+": "+element)
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("reading the site: %w", err)
	case pages == 0:
		return fmt.Errorf("%s has no pages", site)
	case len(problems) > 0:
		return fmt.Errorf("pages load from other hosts:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}
