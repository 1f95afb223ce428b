// Package github checks the files in .github: GitHub reads them, and reports a mistake only after a push.
//
// actionlint checks the syntax, expressions and events of the workflows. The other checks find actions that
// are not pinned to a commit, workflows whose token may write everywhere, commands of this repository that do not
// exist, and modules that Dependabot does not update.
// Each check is a function from texts to findings.
package github

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"

	"github.com/joist-autoscaler/joist/integration/lint/readme"
)

// lintWorkflow returns actionlint's findings about a workflow. It starts no shellcheck.
func lintWorkflow(name string, text []byte, project *actionlint.Project) ([]string, error) {
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		return nil, fmt.Errorf("starting actionlint: %w", err)
	}
	found, err := linter.Lint(name, text, project)
	if err != nil {
		return nil, fmt.Errorf("checking %s with actionlint: %w", name, err)
	}
	var findings []string
	for _, f := range found {
		findings = append(findings, f.Error())
	}
	return findings, nil
}

var (
	pinnedAction   = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	versionComment = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
)

// findUnpinned returns a finding for each action of a workflow or of a composite action
// that is not pinned as `uses: owner/name@<commit> # v1.2.3`. A tag can be moved to other
// code. Actions of this repository need no pin.
func findUnpinned(text []byte) ([]string, error) {
	root, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	var findings []string
	var walk func(*yaml.Node)
	walk = func(node *yaml.Node) {
		for i, child := range node.Content {
			isUses := node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "uses" && child.Kind == yaml.ScalarNode
			if isUses && !strings.HasPrefix(child.Value, "./") && (!pinnedAction.MatchString(child.Value) || !versionComment.MatchString(child.LineComment)) {
				findings = append(findings, fmt.Sprintf("line %d: %s %s is not pinned\n\tfix: uses: owner/name@<commit of 40 digits> # v1.2.3", child.Line, child.Value, child.LineComment))
			}
			walk(child)
		}
	}
	walk(root)
	return findings, nil
}

// findWideToken returns a finding if every job of a workflow gets a token that can write.
// A job that writes states its own permissions.
func findWideToken(text []byte) ([]string, error) {
	var workflow struct {
		Permissions yaml.Node `yaml:"permissions"`
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return nil, fmt.Errorf("decoding the workflow: %w", err)
	}
	permissions := workflow.Permissions
	if permissions.Kind != yaml.MappingNode {
		return []string{"permissions of the workflow are missing, or are not a list\n\tfix: permissions: {contents: read}"}, nil
	}
	for i := 1; i < len(permissions.Content); i += 2 {
		if value := permissions.Content[i].Value; value != "read" && value != "none" {
			return []string{fmt.Sprintf("every job may %s %s\n\tfix: move it to the permissions of the job that needs it", value, permissions.Content[i-1].Value)}, nil
		}
	}
	return nil, nil
}

// findBrokenCommands returns a finding for each command of a workflow's scripts that starts
// a program of this repository and does not exist, such as a make target that was renamed.
func findBrokenCommands(text []byte, repository readme.Repository) ([]string, error) {
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct {
					Target []string `yaml:"target"`
				} `yaml:"matrix"`
			} `yaml:"strategy"`
			Steps []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return nil, fmt.Errorf("decoding the workflow: %w", err)
	}
	var findings []string
	for name, job := range workflow.Jobs {
		for _, step := range job.Steps {
			script := strings.ReplaceAll(step.Run, "${{ matrix.target }}", strings.Join(job.Strategy.Matrix.Target, " "))
			commands, err := readme.Parse(script)
			if err != nil {
				findings = append(findings, fmt.Sprintf("job %s: %v\n\tfix: pass expressions to the script in env", name, err))
			}
			for _, c := range commands {
				if c.Args[0] != "make" && c.Args[0] != "go" {
					continue
				}
				if err := repository.Check(c, ".", false); err != nil {
					findings = append(findings, fmt.Sprintf("job %s: %s: %v", name, strings.Join(c.Args, " "), err))
				}
			}
		}
	}
	return findings, nil
}

// ecosystems are Dependabot's names for the kinds of manifest.
var ecosystems = map[string]string{"go.mod": "gomod", "package.json": "npm", "requirements.txt": "pip"}

// findUnlisted compares dependabot.yml with the files of the repository. It returns a finding for each manifest in a
// directory that is not listed, and for each listed directory without a manifest.
func findUnlisted(config []byte, files []string) ([]string, error) {
	var dependabot struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	if err := yaml.Unmarshal(config, &dependabot); err != nil {
		return nil, fmt.Errorf("decoding dependabot.yml: %w", err)
	}
	listed := map[string]bool{}
	for _, update := range dependabot.Updates {
		for _, dir := range update.Directories {
			listed[update.Ecosystem+" "+dir] = true
		}
	}
	var findings []string
	for _, file := range files {
		ecosystem, ok := ecosystems[path.Base(file)]
		if !ok || slices.Contains(strings.Split(file, "/"), "testdata") {
			continue
		}
		entry := ecosystem + " " + path.Clean("/"+path.Dir(file))
		if !listed[entry] {
			findings = append(findings, fmt.Sprintf("%s is not updated\n\tfix: add its directory to the entry %s of .github/dependabot.yml", file, ecosystem))
		}
		delete(listed, entry)
	}
	for entry := range listed {
		if !strings.HasPrefix(entry, "github-actions ") {
			findings = append(findings, entry+" is listed, and has no manifest\n\tfix: remove it from .github/dependabot.yml")
		}
	}
	return findings, nil
}

func parseDocument(text []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&root); err != nil {
		return nil, fmt.Errorf("parsing YAML: %w", err)
	}
	return &root, nil
}
