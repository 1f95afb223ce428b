package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// installed has the paths of the peers on this machine.
type installed struct {
	// classes is Java's class path, python the interpreter that has moto.
	classes, python string
	// localstack is the Python interpreter that has LocalStack, whose dependencies
	// conflict with moto's; cdk is the script of the CDK's command line.
	localstack, cdk string
}

// tools are the required programs, with how to install them.
var tools = []struct{ name, hint string }{
	{"java", "install a JDK, 17 or newer"},
	{"javac", "install a JDK, 17 or newer; a runtime environment alone has no compiler"},
	{"mvn", "install Apache Maven"},
	{"python3", "install Python 3.10 or newer with its venv module"},
	{"node", "install Node.js 20 or newer"},
	{"npm", "install npm, which comes with Node.js"},
}

// missing returns an error for every missing tool.
func missing() error {
	var all []error
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.name); err != nil {
			all = append(all, fmt.Errorf("%s is not installed. Try: %s", tool.name, tool.hint))
		}
	}
	return errors.Join(all...)
}

// locate returns the folder of the peers, which depends on their versions.
func locate() (dir string, at installed, err error) {
	sum := sha256.New()
	for _, name := range []string{"pom.xml", "requirements.txt", "localstack.txt", "package.json", "ruler/Ask.java"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", at, err
		}
		sum.Write(text)
	}
	dir, err = filepath.Abs(filepath.Join("..", "..", "..", ".cache", "peers", hex.EncodeToString(sum.Sum(nil))[:12]))
	at.classes = filepath.Join(dir, "java", "*") + string(os.PathListSeparator) + filepath.Join(dir, "ruler")
	at.python = filepath.Join(dir, "venv", "bin", "python")
	at.localstack = filepath.Join(dir, "localstack", "bin", "python")
	at.cdk = filepath.Join(dir, "node_modules", "aws-cdk", "bin", "cdk")
	return dir, at, err
}

// install downloads the peers once per set of versions, from the registries that Maven,
// pip and npm are configured for.
func install() error {
	dir, at, err := locate()
	if err != nil {
		return err
	}
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	// npm reads the versions from package.json in the folder.
	versions, err := os.ReadFile("package.json")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), versions, 0o666); err != nil {
		return err
	}
	fmt.Println("installing the peers into .cache/peers (takes some minutes, only once)")
	for _, command := range [][]string{
		{"mvn", "-q", "-B", "-f", "pom.xml", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + filepath.Join(dir, "java")},
		{"javac", "-cp", at.classes, "-d", filepath.Join(dir, "ruler"), filepath.Join("ruler", "Ask.java")},
		{"python3", "-m", "venv", filepath.Join(dir, "venv")},
		{at.python, "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"},
		{"python3", "-m", "venv", filepath.Join(dir, "localstack")},
		{at.localstack, "-m", "pip", "install", "--quiet", "--requirement", "localstack.txt"},
		{"npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", dir},
	} {
		fmt.Printf("  %s\n", strings.Join(command, " "))
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("running %q: %w. Try: read its output above, then run make peers again", command, err)
		}
	}
	return os.WriteFile(done, nil, 0o666)
}
