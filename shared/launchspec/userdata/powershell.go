package userdata

import (
	"errors"
	"regexp"
	"strings"
)

// startScript is the script that Windows user data calls to join.
const startScript = `Start-EKSBootstrap.ps1"`

// scripts matches the PowerShell in user data.
var scripts = regexp.MustCompile(`(?is)<powershell>(.*?)</powershell>`)

// parsePowerShell parses the last call of the start script.
func parsePowerShell(text string) (Joining, error) {
	found := scripts.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		return Joining{}, errors.New("the <powershell> tag is not closed, or there are several")
	}
	var words []string
	for line := range strings.SplitSeq(found[0][1], "\n") {
		if _, rest, ok := strings.Cut(line, startScript); ok && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			words = shellWords(rest)
		}
	}
	if words == nil {
		return Joining{}, errors.New("no script calls " + strings.TrimSuffix(startScript, `"`))
	}
	j := Joining{Format: Windows, Labels: map[string]string{}}
	return j, j.applyStart(words)
}

// applyStart applies the script's parameters, which have one value each.
func (j *Joining) applyStart(words []string) error {
	for i := 0; i+1 < len(words); i += 2 {
		value := words[i+1]
		switch words[i] {
		case "-EKSClusterName":
			j.ClusterName = value
		case "-APIServerEndpoint":
			j.Endpoint = value
		case "-Base64ClusterCA":
			j.Authority = value
		case "-DNSClusterIP":
			j.ClusterDNS = []string{value}
		case "-KubeletExtraArgs":
			if err := j.applyFlags(shellWords(value)); err != nil {
				return err
			}
		}
	}
	return nil
}
