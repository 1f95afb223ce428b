package bootstrap

import "strings"

// al2 puts the user's parts first and the image's bootstrap script last, because the script starts the
// kubelet.
func (n Node) al2() (string, error) {
	if err := n.joins(); err != nil {
		return "", err
	}
	parts, err := userParts(n.Custom)
	if err != nil {
		return "", unreadable(err, "use a shell script, or a MIME multipart document of scripts, for AL2")
	}
	return writeParts(append(parts, newPart(scriptMedia, n.al2Script())))
}

func (n Node) al2Script() string {
	c := n.Cluster
	lines := []string{
		"/etc/eks/bootstrap.sh " + shellQuote(c.Name),
		"--apiserver-endpoint " + shellQuote(c.Endpoint),
		"--b64-cluster-ca " + shellQuote(c.CABundle),
	}
	if n.ipv6() {
		lines = append(lines, "--ip-family ipv6")
	}
	if dns := n.dns(); len(dns) > 0 {
		lines = append(lines, "--dns-cluster-ip "+shellQuote(dns[0]))
	}
	// The script's own pod count ignores the class.
	lines = append(lines, "--use-max-pods false", "--kubelet-extra-args "+shellQuote(strings.Join(n.flags(), " ")))
	if n.raid0() {
		lines = append(lines, "--local-disks raid0")
	}
	return "#!/bin/bash\nset -ex\n" + strings.Join(lines, " \\\n  ") + "\n"
}

// shellQuote quotes a text as one word for a POSIX shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
