package karpenter

import "testing"

func TestParseAlias(t *testing.T) {
	for text, want := range map[string]Alias{
		"al2@latest":           {AMIFamilyAL2, "latest"},
		"al2023@v20240625":     {AMIFamilyAL2023, "v20240625"},
		"bottlerocket@v1.10.0": {AMIFamilyBottlerocket, "v1.10.0"},
		"windows2019@latest":   {AMIFamilyWindows2019, "latest"},
		"windows2022@latest":   {AMIFamilyWindows2022, "latest"},
		"windows2025@latest":   {AMIFamilyWindows2025, "latest"},
	} {
		got, err := ParseAlias(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, written %s (%v)", text, got, got, err)
		}
	}
	for _, text := range []string{"", "al2", "al2@", "@latest", "AL2@latest", "custom@latest", "ubuntu@latest", "al2@a@b"} {
		if got, err := ParseAlias(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestAMIFamily(t *testing.T) {
	custom := AMIFamilyCustom
	for _, c := range []struct {
		name   string
		family *string
		terms  []AMISelectorTerm
		want   string
		fails  bool
	}{
		{name: "named", family: &custom, terms: []AMISelectorTerm{{Alias: "al2023@latest"}}, want: AMIFamilyCustom},
		{name: "by alias", terms: []AMISelectorTerm{{Alias: "bottlerocket@latest"}}, want: AMIFamilyBottlerocket},
		{name: "neither", terms: []AMISelectorTerm{{ID: "ami-1"}}, want: AMIFamilyCustom},
		{name: "bad alias", terms: []AMISelectorTerm{{Alias: "plan9@latest"}}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			class := &EC2NodeClass{Spec: EC2NodeClassSpec{AMIFamily: c.family, AMISelectorTerms: c.terms}}
			got, err := class.AMIFamily()
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("family %q (%v), want %q", got, err, c.want)
			}
			if _, err := class.Hash(""); (err != nil) != c.fails {
				t.Errorf("hash: %v", err)
			}
		})
	}
}
