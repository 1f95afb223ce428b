package bootstrap_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec/bootstrap"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
)

// written is one part of a multipart document, as written.
type written struct {
	Header textproto.MIMEHeader
	Body   string
}

func parts(t fatal, text string) []written {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var out []written
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, written{part.Header, string(body)})
	}
}

// TestMIMEKeepsUserParts checks that the user's parts are kept unchanged, before Joist's
// part.
func TestMIMEKeepsUserParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var mine []written
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			header := textproto.MIMEHeader{"Content-Type": {rapid.SampledFrom([]string{
				"text/x-shellscript", "text/cloud-config; charset=\"utf-8\"", "text/cloud-boothook", "application/octet-stream",
			}).Draw(t, "media")}}
			if rapid.Bool().Draw(t, "encoded") {
				header.Set("Content-Transfer-Encoding", "base64")
			}
			body := rapid.StringMatching(`[ -~\n]{0,40}`).Draw(t, "body")
			if header.Get("Content-Transfer-Encoding") != "" {
				body = base64.StdEncoding.EncodeToString([]byte(body))
			}
			mine = append(mine, written{header, body})
		}
		var document bytes.Buffer
		writer := multipart.NewWriter(&document)
		document.WriteString("Content-Type: multipart/mixed; boundary=\"" + writer.Boundary() + "\"\nMIME-Version: 1.0\n\n")
		for _, part := range mine {
			to, err := writer.CreatePart(part.Header)
			if err == nil {
				_, err = io.WriteString(to, part.Body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		n := fullNode()
		n.Custom = document.String()
		for _, family := range []string{karpenter.AMIFamilyAL2, karpenter.AMIFamilyAL2023} {
			text, err := bootstrap.Write(family, n)
			if err != nil {
				t.Fatal(err)
			}
			got := parts(t, text)
			if diff := cmp.Diff(mine, got[:len(got)-1]); diff != "" {
				t.Fatal(diff)
			}
			if joining, err := userdata.Parse(text); err != nil || joining.MaxPods != 42 {
				t.Fatalf("%s: joining as %+v, %v", family, joining, err)
			}
		}
	})
}

// settings generates a TOML table.
func settings(t *rapid.T, depth int) map[string]any {
	key := rapid.StringMatching(`[a-z]{1,6}(-[a-z]{1,6})?|[a-z]+\.[a-z]+/[a-z]+`)
	value := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "?") }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { return f }),
		rapid.Map(rapid.SliceOf(rapid.StringMatching(`[a-z ]{0,5}`)), func(list []string) any {
			out := []any{}
			for _, s := range list {
				out = append(out, s)
			}
			return out
		}),
	)
	out := rapid.MapOfN(key, value, 0, 4).Draw(t, "values")
	if depth > 0 {
		for _, name := range rapid.SliceOfN(key, 0, 2).Draw(t, "tables") {
			out[name] = settings(t, depth-1)
		}
	}
	return out
}

// ourKeys are the keys under settings.kubernetes that Joist sets for the rich node.
var ourKeys = []string{
	"api-server", "cluster-certificate", "cluster-dns-ip", "cluster-name", "cpu-cfs-quota-enforced", "eviction-max-pod-grace-period",
	"image-gc-high-threshold-percent", "image-gc-low-threshold-percent", "max-pods", "eviction-hard", "eviction-soft",
	"eviction-soft-grace-period", "kube-reserved", "system-reserved", "node-labels", "node-taints",
}

// TestTOMLKeepsUserSettings checks that every user setting is kept unchanged, except
// Joist's own, which are the same as without the user's.
func TestTOMLKeepsUserSettings(t *testing.T) {
	alone := read(t, write(t, fullNode()))
	rapid.Check(t, func(t *rapid.T) {
		theirs := map[string]any{"settings": settings(t, 2)}
		kubernetes := settings(t, 1)
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom(ourKeys[:9]), rapid.ID).Draw(t, "contested") {
			kubernetes[key] = rapid.SampledFrom([]any{"theirs", int64(3), true}).Draw(t, "value")
		}
		labels := map[string]any{"mine": "kept", "team": "theirs"}
		kubernetes["node-labels"], kubernetes["node-taints"] = labels, map[string]any{"mine": []any{"x:NoSchedule"}}
		theirs["settings"].(map[string]any)["kubernetes"] = kubernetes
		delete(theirs["settings"].(map[string]any), "bootstrap-commands")
		custom, err := toml.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		theirs = read(t, string(custom)) // as TOML decodes it
		n := fullNode()
		n.Custom = string(custom)
		got := read(t, write(t, n))
		kept(t, "", theirs, got)
		ours, both := below(alone, "settings", "kubernetes"), below(got, "settings", "kubernetes")
		for _, key := range ourKeys {
			want := ours[key]
			if key == "node-labels" {
				merged := maps.Clone(want.(map[string]any))
				merged["mine"], want = "kept", merged
			}
			if diff := cmp.Diff(want, both[key]); diff != "" {
				t.Fatalf("%s: Joist's setting must win: %s", key, diff)
			}
		}
		if again := write(t, n); again != write(t, n) {
			t.Fatal("two writes of the same node differ")
		}
	})
}

// Bottlerocket's own settings of reserved memory have no counterpart in spec.kubelet.
func TestTOMLKeepsReservedMemory(t *testing.T) {
	n := fullNode()
	n.Custom = "[settings.kubernetes]\nmemory-manager-policy = 'Static'\n" +
		"[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\nmemory = '1124Mi'\nhugepages-2Mi = '2Mi'\n"
	got := below(read(t, write(t, n)), "settings", "kubernetes")
	want := map[string]any{"0": map[string]any{"enabled": true, "memory": "1124Mi", "hugepages-2Mi": "2Mi"}}
	if diff := cmp.Diff(want, got["memory-manager-reserved-memory"]); diff != "" || got["memory-manager-policy"] != "Static" {
		t.Errorf("policy %v, reserved memory (-want +got):\n%s", got["memory-manager-policy"], diff)
	}
}

type fatal interface{ Fatal(args ...any) }

func write(t fatal, n bootstrap.Node) string {
	text, err := bootstrap.Write(karpenter.AMIFamilyBottlerocket, n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(t fatal, text string) map[string]any {
	out := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func below(table map[string]any, names ...string) map[string]any {
	for _, name := range names {
		table = table[name].(map[string]any)
	}
	return table
}

// kept compares all of the user's settings except Joist's own.
func kept(t *rapid.T, path string, theirs, got map[string]any) {
	for key, value := range theirs {
		if path == ".settings.kubernetes" && slices.Contains(ourKeys, key) {
			continue
		}
		if table, ok := value.(map[string]any); ok {
			in, ok := got[key].(map[string]any)
			if !ok {
				t.Fatalf("%s.%s is not a table any more", path, key)
			}
			kept(t, path+"."+key, table, in)
			continue
		}
		if diff := cmp.Diff(value, got[key]); diff != "" {
			t.Fatalf("%s.%s: %s", path, key, diff)
		}
	}
}

// FuzzCustom checks that any user data is either rejected with a hint, or the instance joins as the
// planned node.
func FuzzCustom(f *testing.F) {
	for _, family := range families {
		f.Add(family.name, family.custom)
	}
	f.Add(karpenter.AMIFamilyAL2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 3\n")
	f.Add(karpenter.AMIFamilyAL2, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--B--\n")
	f.Add(karpenter.AMIFamilyAL2023, "#cloud-config\npackages: [jq]\n")
	f.Add(karpenter.AMIFamilyAL2023, "0: node.eks.aws/v1alpha1")
	f.Add(karpenter.AMIFamilyWindows2019, "\xff Ⱥ is shorter than its lower case")
	f.Fuzz(func(t *testing.T, family, custom string) {
		n := fullNode()
		n.Custom = custom
		text, err := bootstrap.Write(family, n)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" {
				t.Fatalf("error without a hint for the user: %v", err)
			}
			return
		}
		if len(text) > bootstrap.Limit {
			t.Fatalf("%d bytes exceed EC2's limit", len(text))
		}
		if family == karpenter.AMIFamilyCustom {
			return
		}
		joining, err := userdata.Parse(text)
		if err != nil && family == karpenter.AMIFamilyAL2023 {
			// Package userdata is stricter with a user's NodeConfig than package bootstrap. Joist's
			// own part joins.
			all := parts(t, text)
			joining, err = userdata.Parse(all[len(all)-1].Body)
		}
		if err != nil {
			t.Fatalf("the node cannot join: %v\n%s", err, text)
		}
		if joining.MaxPods != 42 || joining.ClusterName != "demo" || len(joining.Taints) != 3 {
			t.Fatalf("the node joins with other settings: %+v\n%s", joining, text)
		}
	})
}
