// Command site prepares the pages of the documentation site for its generator, and checks what the generator wrote.
//
//	go run ./integration/site stage .cache/docs      # writes mkdocs.yml and pages/
//	go run ./integration/site check .cache/docs/site # nothing is loaded from another host
//
// The pages are written for GitHub: in deploy/docs, and in READMEs of other folders. In the site, a link to a file of the
// repository leads to the page that shows it, or else to GitHub, and the comment <!-- run-by: TestName --> above a command
// is a visible line. The staged pages are plain Markdown, so that another generator needs no code of ours.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/joist-autoscaler/joist/integration/lint/repolint"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "stage" {
		files, err := repolint.Files(".")
		if err != nil {
			return err
		}
		return stage(".", args[1], files)
	}
	if len(args) == 2 && args[0] == "check" {
		return checkLoads(args[1])
	}
	return errors.New("usage: site stage FOLDER | site check FOLDER")
}
