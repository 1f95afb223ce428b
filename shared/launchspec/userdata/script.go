package userdata

import (
	"errors"
	"strings"
)

// bootstrapScript is the script that AL2 user data calls to join.
const bootstrapScript = "/etc/eks/bootstrap.sh"

// parseScripts parses the last call of the bootstrap script in shell scripts, because that call starts
// the kubelet last.
func parseScripts(texts []string) (Joining, error) {
	var words []string
	for _, text := range texts {
		text = strings.ReplaceAll(text, "\\\n", " ")
		for line := range strings.SplitSeq(text, "\n") {
			_, rest, ok := strings.Cut(line, bootstrapScript)
			if ok && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				words = shellWords(rest)
			}
		}
	}
	if words == nil {
		return Joining{}, errors.New("no script calls " + bootstrapScript)
	}
	j := Joining{Format: AL2, Labels: map[string]string{}}
	return j, j.applyBootstrap(words)
}

// applyBootstrap applies the script's arguments: flags with one value each, and the cluster name.
func (j *Joining) applyBootstrap(words []string) error {
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "--") {
			j.ClusterName = words[i]
			continue
		}
		name, value, joined := strings.Cut(words[i], "=")
		if !joined && i+1 < len(words) {
			i++
			value = words[i]
		}
		switch name {
		case "--apiserver-endpoint":
			j.Endpoint = value
		case "--b64-cluster-ca":
			j.Authority = value
		case "--dns-cluster-ip":
			j.ClusterDNS = []string{value}
		case "--local-disks":
			j.RAID0 = value == "raid0"
		case "--kubelet-extra-args":
			if err := j.applyFlags(shellWords(value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// shellWords splits a command line at blanks outside of quotes, and removes the outer quotes.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
