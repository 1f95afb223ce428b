package launchspec_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// FuzzParseRef: an accepted reference has an S3 key of one folder and one digest, and is written with the same value.
func FuzzParseRef(f *testing.F) {
	digest := string(event.DigestOf([]byte("a")))
	for _, text := range []string{"intents/" + digest + "/12", "plans/" + digest + "/0", "../" + digest + "/1", "a/b/c", digest, "", "intents/" + strings.ToUpper(digest) + "/+7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := launchspec.ParseRef(text)
		if err != nil {
			if !strings.Contains(err.Error(), `"`) && !strings.Contains(err.Error(), "size") {
				t.Fatalf("the error does not say where: %v", err)
			}
			return
		}
		again, err := launchspec.ParseRef(launchspec.FormatRef(ref))
		if err != nil || again != ref {
			t.Fatalf("%+v became %+v: %v", ref, again, err)
		}
		if key := ref.Key(); strings.Count(key, "/") != 1 || strings.Contains(key, "..") || key != filepath.ToSlash(filepath.Clean(key)) || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' }) {
			t.Fatalf("the key is %q", key)
		}
	})
}

// FuzzDocuments: each kind of document is Poison, or is stored and read with the same content. The first byte chooses
// the kind. Compressed and uncompressed documents are the same.
func FuzzDocuments(f *testing.F) {
	for kind, pattern := range []string{"../planning/testdata/documents/*.json", "testdata/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no documents in %s: %v", pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(kind, text)
			if _, packed, err := blob.Encode(event.BatchKind, json.RawMessage(text)); err == nil {
				f.Add(kind, packed)
			}
		}
	}
	f.Add(2, []byte(`{"seq":1,"intents":[{"ref":{"kind":"intents","size":1}}],"nominations":[{"pod":"a","node":"b"}]}`))
	f.Add(3, []byte(`{"region":"us-east-1","types":[{"name":"m5.large"}]}`))
	f.Add(0, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xff})
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		switch kind {
		case 0:
			storeAgain[planning.Batch](t, data)
		case 1:
			storeAgain[launchspec.Intent](t, data)
		case 2:
			storeAgain[planning.Plan](t, data)
		case 3:
			storeAgain[catalog.Catalogue](t, data)
		}
	})
}

func storeAgain[T any](t *testing.T, data []byte) {
	t.Helper()
	var once, twice T
	if err := blob.DecodeFile("the-file", data, &once); err != nil {
		if !fault.Is(err, fault.Poison) || !strings.Contains(err.Error(), "the-file") {
			t.Fatalf("%s: %v", fault.KindOf(err), err)
		}
		return
	}
	ref, packed, err := blob.Encode("things", once)
	if err != nil {
		t.Fatalf("%T was read and cannot be stored: %v", once, err)
	}
	if err := blob.Decode(ref, packed, &twice); err != nil {
		t.Fatalf("%T was stored and cannot be read: %v", once, err)
	}
	if _, again, err := blob.Encode("things", twice); err != nil || !bytes.Equal(packed, again) {
		t.Fatalf("%T changed on its way (%v): %+v, then %+v", once, err, once, twice)
	}
	damaged := bytes.Clone(packed)
	damaged[len(damaged)/2] ^= 1
	if err := blob.Decode(ref, damaged, &twice); !fault.Is(err, fault.Poison) {
		t.Fatalf("a damaged object was read: %v", err)
	}
}
