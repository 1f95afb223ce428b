package bootstrap

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Media types of the parts for cloud-init.
const (
	scriptMedia      = `text/x-shellscript; charset="us-ascii"`
	cloudConfigMedia = `text/cloud-config; charset="us-ascii"`
)

// part is one part of a multipart document, as written.
type part struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(media, body string) part {
	return part{textproto.MIMEHeader{"Content-Type": {media}}, body}
}

// media returns the media type of the part, without parameters.
func (p part) media() string {
	media, _, err := mime.ParseMediaType(p.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// text returns the decoded body of the part.
func (p part) text() (string, error) {
	var body io.Reader = strings.NewReader(p.body)
	switch encoding := strings.ToLower(p.header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	default:
		return "", fmt.Errorf("unknown MIME encoding %q", encoding)
	}
	text, err := io.ReadAll(body)
	return string(text), err
}

// userParts splits the user's data into parts; data without MIME becomes one part.
func userParts(text string) ([]part, error) {
	trimmed := strings.TrimSpace(text)
	head := strings.ToLower(trimmed[:min(len(trimmed), len("mime-version:"))])
	switch {
	case trimmed == "":
		return nil, nil
	case head == "mime-version:" || strings.HasPrefix(head, "content-type:"):
		return readParts(strings.TrimLeft(text, " \t\r\n"))
	case strings.HasPrefix(trimmed, "#cloud-config"):
		return []part{newPart(cloudConfigMedia, text)}, nil
	default:
		return []part{newPart(scriptMedia, text)}, nil
	}
}

func readParts(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the MIME header: %w", err)
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(media, "multipart/") {
		return nil, fmt.Errorf("the content type %q is not multipart", message.Header.Get("Content-Type"))
	}
	var out []part
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		// Read the raw part, so that the user's encoding is kept.
		one, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(out)+1, err)
		}
		body, err := io.ReadAll(one)
		if err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(out)+1, err)
		}
		next := part{one.Header, string(body)}
		if _, err := next.text(); err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(out)+1, err)
		}
		out = append(out, next)
	}
}

// writeParts writes a multipart document. The boundary derives from the content, so that it is the
// same each time and no part contains it.
func writeParts(parts []part) (string, error) {
	var bodies []string
	for _, p := range parts {
		bodies = append(bodies, p.body)
	}
	boundary := "joist-" + event.DeriveID("boundary", event.Cluster{}, bodies...)
	var out bytes.Buffer
	writer := multipart.NewWriter(&out)
	if err := writer.SetBoundary(boundary); err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	fmt.Fprintf(&out, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", boundary)
	for _, p := range parts {
		to, err := writer.CreatePart(p.header)
		if err == nil {
			_, err = io.WriteString(to, p.body)
		}
		if err != nil {
			return "", fault.E("writing user data", fault.Bug, err)
		}
	}
	if err := writer.Close(); err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	return out.String(), nil
}
