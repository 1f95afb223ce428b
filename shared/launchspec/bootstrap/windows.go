package bootstrap

import (
	"errors"
	"regexp"
	"strings"
)

// powershell matches the script in user data with tags.
var powershell = regexp.MustCompile(`(?is)<powershell>(.*?)</powershell>`)

// windows appends the call of the image's start script to the user's PowerShell.
func (n Node) windows() (string, error) {
	if err := n.joins(); err != nil {
		return "", err
	}
	script, rest, err := userScript(n.Custom)
	if err != nil {
		return "", unreadable(err, "use PowerShell, with or without <powershell> tags, for Windows")
	}
	var out strings.Builder
	out.WriteString("<powershell>\n")
	if script != "" {
		out.WriteString(script + "\n")
	}
	out.WriteString(n.startScript() + "\n</powershell>\n")
	if rest != "" {
		out.WriteString(rest + "\n")
	}
	return out.String(), nil
}

// userScript returns the user's PowerShell, and the rest of the user data: settings of the launch
// agent such as <persist>.
func userScript(text string) (script, rest string, err error) {
	trimmed := strings.TrimSpace(text)
	lower := strings.ToLower(trimmed)
	switch found := powershell.FindAllStringSubmatchIndex(trimmed, -1); {
	case len(found) == 1:
		at := found[0]
		script = strings.Trim(trimmed[at[2]:at[3]], "\r\n")
		rest = strings.TrimSpace(trimmed[:at[0]] + trimmed[at[1]:])
	case len(found) > 1:
		return "", "", errors.New("the user data has more than one <powershell> tag")
	case strings.HasPrefix(lower, "<script>") || strings.HasPrefix(lower, "version:"):
		return "", "", errors.New("a batch script or an agent's task list cannot be extended")
	default:
		script = strings.TrimRight(text, "\r\n")
	}
	if strings.Contains(strings.ToLower(script+rest), "powershell>") {
		return "", "", errors.New("unbalanced <powershell> tag")
	}
	return script, rest, nil
}

func (n Node) startScript() string {
	c := n.Cluster
	words := []string{
		`& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"`,
		"-EKSClusterName " + windowsQuote(c.Name), "-APIServerEndpoint " + windowsQuote(c.Endpoint),
		"-Base64ClusterCA " + windowsQuote(c.CABundle),
	}
	if dns := n.dns(); len(dns) > 0 {
		words = append(words, "-DNSClusterIP "+windowsQuote(dns[0]))
	}
	words = append(words, "-KubeletExtraArgs "+windowsQuote(strings.Join(n.flags(), " ")))
	return strings.Join(words, " ")
}

// windowsQuote quotes a text as one word for PowerShell.
func windowsQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
