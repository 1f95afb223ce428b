package noticetest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// truncated adds the event cut off at twelve positions.
func (c *corpus) truncated(b base) {
	text := b.event.text()
	const places = 12
	for i := 1; i <= places; i++ {
		c.raw(b, fmt.Sprintf("cut after %d of 13 parts", i), text[:len(text)*i/(places+1)], Poison)
	}
}

const kib = 1 << 10

// The limits of rule 5.
const (
	sizeMax   = 256 * kib
	depthMax  = 32
	tokensMax = 100_000
)

// sizes adds events that are padded, deeply nested or have many tokens (rule 5).
func (c *corpus) sizes(b base) {
	text := b.event.text()
	for _, size := range []int{200 * kib, sizeMax, sizeMax + 1, 257 * kib, 1024 * kib} {
		want := Act
		if size > sizeMax {
			want = Poison
		}
		blanks := bytes.Repeat([]byte(" "), size-len(text))
		c.raw(b, fmt.Sprintf("%d bytes with blanks in front", size), slices.Concat(blanks, text), want)
		c.raw(b, fmt.Sprintf("%d bytes with blanks behind", size), slices.Concat(text, blanks), want)
		bare := len(b.event.plus("padding", `""`).text())
		padded := b.event.plus("padding", quote(strings.Repeat("p", size-bare)))
		c.as(want, b, fmt.Sprintf("%d bytes with padding inside", size), padded)
	}
	for _, depth := range []int{depthMax - 1, depthMax, depthMax + 1, 10_000} {
		want := Act
		if depth > depthMax {
			want = Poison
		}
		c.as(want, b, fmt.Sprintf("lists nested to %d levels", depth), b.event.plus("x", nested("[", "]", depth-1)))
		c.as(want, b, fmt.Sprintf("objects nested to %d levels", depth), b.event.plus("x", nested(`{"x":`, "}", depth-2)))
		c.as(want, b, fmt.Sprintf("a detail nested to %d levels", depth), b.inside(b.detail.plus("x", nested("[", "]", depth-2))))
	}
	// Tokenizers may or may not count commas: both counts are far from the limit.
	c.add(b, "40000 numbers", b.event.plus("x", list(slices.Repeat([]string{"0"}, tokensMax*2/5)...)))
	c.as(Poison, b, "120000 numbers", b.event.plus("x", list(slices.Repeat([]string{"0"}, tokensMax*6/5)...)))
	many := b.event
	for i := range 2000 {
		many = append(slices.Clip(many), member{fmt.Sprintf("x%d", i), "1"})
	}
	c.add(b, "2000 unknown fields", many)
}

// nested returns a value with the given number of levels; objects end in an empty one.
func nested(open, closing string, levels int) string {
	middle := ""
	if open != "[" {
		middle = "{}"
	}
	return strings.Repeat(open, levels) + middle + strings.Repeat(closing, levels)
}

// wrapped adds events inside another format, which the service does not unwrap (rule 4).
func (c *corpus) wrapped(b base) {
	text := b.event.text()
	str := string(text)
	for _, w := range []struct {
		name string
		body []byte
	}{
		{"in SNS's envelope", snsOf(str).text()},
		{"in a base64", []byte(base64.StdEncoding.EncodeToString(text))},
		{"in a base64 for URLs", []byte(base64.URLEncoding.EncodeToString(text))},
		{"in hexadecimal digits", []byte(hex.EncodeToString(text))},
		{"in a gzip", zipped(text)},
		{"in a base64 of a gzip", []byte(base64.StdEncoding.EncodeToString(zipped(text)))},
		{"in a JSON string", []byte(quote(str))},
		{"in a JSON string of a JSON string", []byte(quote(quote(str)))},
		{"in a list", []byte(list(str))},
		{"twice in a list", []byte(list(str, str))},
		{"twice, with a blank between", []byte(str + " " + str)},
		{"twice, with a line between", []byte(str + "\n" + str)},
		{"twice, with nothing between", []byte(str + str)},
		{"twice, with a comma between", []byte(str + "," + str)},
		{"in an object", object{{"event", str}}.text()},
		{"in an object as its detail", object{{"detail", str}}.text()},
		{"in the records of a function", object{{"Records", list(string(object{{"body", quote(str)}}.text()))}}.text()},
		{"as the detail of its own kind", b.event.with("detail", str).text()},
		{"as the text of its detail", b.event.with("detail", quote(string(b.detail.text()))).text()},
		{"behind two byte order marks", append([]byte("\ufeff\ufeff"), text...)},
		{"in UTF-16, the small end first", wide(str, binary.LittleEndian)},
		{"in UTF-16, the big end first", wide(str, binary.BigEndian)},
		{"before a NUL", append(slices.Clone(text), 0)},
		{"before a character", append(slices.Clone(text), 'x')},
		{"before a brace", append(slices.Clone(text), '}')},
		{"behind a guard against scripts", append([]byte(")]}',\n"), text...)},
		{"behind a comment", append([]byte("// an event\n"), text...)},
		{"with a comment inside", []byte(strings.Replace(str, `"source"`, `/* from */"source"`, 1))},
		{"with a comma too many", []byte(strings.TrimSuffix(str, "}") + ",}")},
		{"with a comma too few", []byte(strings.Replace(str, `,"source"`, `"source"`, 1))},
		{"without quotes around a name", []byte(strings.Replace(str, `"source"`, `source`, 1))},
		{"with single quotes", []byte(strings.ReplaceAll(str, `"`, `'`))},
		{"with a NaN", b.event.plus("x", "NaN").text()},
		{"with a number with a leading zero", b.event.plus("x", "007").text()},
		{"with a line break in a text", b.event.plus("x", "\"a\nb\"").text()},
		{"with a NUL in a text", b.event.plus("x", "\"a\x00b\"").text()},
		{"with an unknown escape", b.event.plus("x", `"\x41"`).text()},
		{"with bytes that are no UTF-8", b.event.plus("x", "\"\xff\xfe\"").text()},
		{"with half a character", b.event.plus("x", "\"\xe2\x82\"").text()},
	} {
		c.raw(b, w.name, w.body, Poison)
	}
	c.raw(b, "behind a byte order mark", append([]byte("\ufeff"), text...), Act)
	// A well-formed EventBridge event of another application.
	relayed := c.event("com.example.relay", "Forwarded", "[]", nil).with("detail", str)
	c.as(Foreign, b, "as the detail of another event", relayed)
}

func snsOf(message string) object {
	return object{
		{"Type", `"Notification"`}, {"MessageId", `"1"`}, {"TopicArn", quote("arn:aws:sns:" + Region + ":" + Account + ":notices")},
		{"Message", quote(message)}, {"Timestamp", `"2026-11-20T12:00:00.000Z"`}, {"SignatureVersion", `"1"`}, {"Signature", `"x"`},
	}
}

func zipped(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	// Writing to a buffer cannot fail.
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

func wide(text string, order binary.AppendByteOrder) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}
