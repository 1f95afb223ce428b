package readme

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/infra/config"
)

func checkMake(p place) error {
	for _, arg := range p.Args[1:] {
		if arg == "…" {
			continue
		}
		name, _, assigned := strings.Cut(arg, "=")
		switch {
		case assigned && !p.Variables[name]:
			return fmt.Errorf("make reads no variable %s", name)
		case !assigned && !p.Targets[arg]:
			return fmt.Errorf("make has no target %s", arg)
		}
	}
	return nil
}

// checkGo checks that the packages and the named tests exist.
func checkGo(p place) error {
	if len(p.Args) < 2 {
		return errors.New("go without a command")
	}
	args := p.Args[2:]
	switch p.Args[1] {
	case "install":
		return pinned(args)
	case "clean", "mod", "env":
		return nil
	case "run", "test", "build":
	default:
		return fmt.Errorf("go %s is not known here", p.Args[1])
	}
	packages := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !strings.HasPrefix(arg, "./") })
	for _, arg := range packages {
		if folder, _ := p.packages(arg); folder == "" {
			return fmt.Errorf("there is no package %s", arg)
		}
	}
	if p.Args[1] == "test" {
		return p.named(args, packages)
	}
	return nil
}

// packages returns the folder of a package, or "" if it does not exist, and whether the
// packages below are included.
func (p place) packages(arg string) (folder string, below bool) {
	arg, below = strings.CutSuffix(strings.TrimSuffix(arg, "…"), "/...")
	if folders := p.find(arg); len(folders) > 0 && isDir(folders[0]) {
		return folders[0], below
	}
	return "", below
}

// named checks that the tests in the flags exist in the packages.
func (p place) named(args, packages []string) error {
	for flag, names := range begins {
		for _, pattern := range flagged(args, flag) {
			if len(packages) == 0 {
				return errors.New("tests are named, and no package that they are in")
			}
			if pattern == "^$" {
				continue // -run ^$ selects no tests
			}
			for _, arg := range packages {
				folder, below := p.packages(arg)
				if err := p.tests(names, pattern, folder, below); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// begins are the flags of go test that select functions, with the prefixes of their
// names.
var begins = map[string]*regexp.Regexp{
	"-run": regexp.MustCompile("^(Test|Fuzz)"), "-fuzz": regexp.MustCompile("^Fuzz"), "-bench": regexp.MustCompile("^Benchmark"),
}

// tests checks that a pattern matches a function with the prefix, in a folder or in those
// below it.
func (p place) tests(begins *regexp.Regexp, pattern, folder string, below bool) error {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	for dir, names := range p.Tests {
		dir = filepath.Join(p.Root, dir)
		if dir == filepath.Clean(folder) || below && strings.HasPrefix(dir, filepath.Clean(folder)+"/") {
			if slices.ContainsFunc(names, func(name string) bool { return begins.MatchString(name) && expression.MatchString(name) }) {
				return nil
			}
		}
	}
	return fmt.Errorf("no test of %s is called %s", folder, pattern)
}

// pinned checks that external tools have a version.
func pinned(args []string) error {
	for _, arg := range args {
		if _, version, _ := strings.Cut(arg, "@"); version == "" || version == "latest" {
			return fmt.Errorf("%s has no version", arg)
		}
	}
	return nil
}

// The versions of the CDK's command line and of cdk-assets, which uploads a stack's files
// without it, on the pages.
const (
	cdkVersion    = "aws-cdk@2.1148.1"
	assetsVersion = "cdk-assets@4.7.3"
)

// checkNPX supports only the CDK's tools: their version, and the app's context keys.
func checkNPX(p place) error {
	if len(p.Args) > 2 && p.Args[1] == assetsVersion {
		if p.Args[2] != "publish" {
			return fmt.Errorf("cdk-assets %s is not known here", p.Args[2])
		}
		return nil
	}
	if len(p.Args) < 3 || p.Args[1] != cdkVersion {
		return fmt.Errorf("npx starts something else than %s", cdkVersion)
	}
	if !slices.Contains([]string{"deploy", "synth", "diff", "destroy", "bootstrap"}, p.Args[2]) {
		return fmt.Errorf("cdk %s is not known here", p.Args[2])
	}
	if err := p.exists("cdk.json"); err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, key := range config.Keys() {
		keys[key] = true
	}
	for _, value := range flagged(p.Args, "--context", "-c") {
		key, _, _ := strings.Cut(value, "=")
		if err := known("key of the context", []string{key}, keys); err != nil {
			return err
		}
	}
	return nil
}

// checkTerraform checks the folder of the module.
func checkTerraform(p place) error {
	dir := "."
	for _, arg := range p.Args[1:] {
		if folder, ok := strings.CutPrefix(arg, "-chdir="); ok {
			dir = folder
			continue
		}
		if !slices.Contains([]string{"init", "plan", "apply", "destroy"}, arg) {
			return fmt.Errorf("terraform %s is not known here", arg)
		}
	}
	return p.exists(dir + "/*.tf")
}

// checkKo checks the commands from which images are built.
func checkKo(p place) error {
	for _, arg := range p.Args[2:] {
		if strings.HasPrefix(arg, "./") {
			if err := p.exists(arg + "/main.go"); err != nil {
				return err
			}
		}
	}
	return p.exists(".ko.yaml")
}

// awsCommands are the commands of the AWS CLI that pages use
// (https://docs.aws.amazon.com/cli/latest/reference/).
var awsCommands = map[string]bool{
	"autoscaling describe-auto-scaling-groups": true, "eks describe-nodegroup": true, "ec2 describe-launch-template-versions": true,
	"cloudformation deploy": true, "cloudformation describe-stacks": true, "ec2 describe-instances": true,
	"iam list-instance-profiles-for-role": true, "s3 rb": true, "logs delete-log-group": true,
	"eks update-kubeconfig": true, "sqs create-queue": true, "iam create-service-linked-role": true, "sts decode-authorization-message": true,
	// Only the service; the reader adds the rest.
	"service-quotas": true,
}

var output = regexp.MustCompile(`OutputKey=='([A-Za-z]+)'`)

func checkAWS(p place) error {
	var words []string
	for _, arg := range p.Args[1:] {
		if strings.HasPrefix(arg, "-") {
			break
		}
		words = append(words, arg)
	}
	if err := known("command of AWS's", []string{strings.Join(words, " ")}, awsCommands); err != nil {
		return err
	}
	for _, query := range flagged(p.Args, "--query") {
		for _, key := range output.FindAllStringSubmatch(query, -1) {
			if err := known("output of the stack", []string{key[1]}, p.Outputs); err != nil {
				return err
			}
		}
	}
	return nil
}
