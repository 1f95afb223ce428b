package userdata

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
)

// mimePart is one decoded part of a multipart document.
type mimePart struct{ media, body string }

func isMIME(text string) bool {
	head := strings.ToLower(text[:min(len(text), 256)])
	return strings.HasPrefix(head, "mime-version:") || strings.HasPrefix(head, "content-type:")
}

// splitMIME splits a multipart document into its parts.
func splitMIME(raw string) ([]mimePart, error) {
	message, err := mail.ReadMessage(strings.NewReader(strings.TrimLeft(raw, "\r\n\t ")))
	if err != nil {
		return nil, fmt.Errorf("reading the MIME header: %w", err)
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("reading the content type: %w", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		return nil, fmt.Errorf("the content type is %s, not multipart", media)
	}
	reader := multipart.NewReader(message.Body, params["boundary"])
	var parts []mimePart
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(parts)+1, err)
		}
		one, err := readPart(part)
		if err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(parts)+1, err)
		}
		parts = append(parts, one)
	}
}

// readPart decodes a part. A part without a readable content type is plain text, as for cloud-init (RFC 2045, section 5.2).
func readPart(part *multipart.Part) (mimePart, error) {
	media, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil {
		media = "text/plain"
	}
	body := io.Reader(part)
	if strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "base64") {
		body = base64.NewDecoder(base64.StdEncoding, part)
	}
	text, err := io.ReadAll(body)
	return mimePart{media, string(text)}, err
}
