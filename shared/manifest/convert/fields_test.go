package convert

import (
	"fmt"
	"strings"
	"testing"
)

// TestFieldsAreConvertedOrNamed converts an object for each field of the older versions that has this field alone.
// The result has its value, or a remark names the field.
func TestFieldsAreConvertedOrNamed(t *testing.T) {
	const pool, class = "karpenter.sh/v1beta1\nkind: NodePool", "karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass"
	for header, fields := range map[string][]string{
		"karpenter.sh/v1alpha5\nkind: Provisioner":          provisionerFields,
		"karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate": templateFields,
		pool: nodePoolFields, class: nodeClassFields,
		"karpenter.sh/v1beta1\nkind: NodeClaim": nodeClaimFields,
	} {
		for _, field := range fields {
			text, value := fieldDocument(header, field)
			// A class with the name that the object refers to, for the settings of kubelets.
			other := "apiVersion: " + class + "\nmetadata:\n  name: other\nspec:\n  amiFamily: AL2023\n  role: r\n"
			if strings.Contains(field, "ubelet") {
				text = strings.Replace(text, "spec:\n", "spec:\n  nodeClassRef:\n    name: other\n", 1)
			}
			r := Convert([]Input{{Name: "a.yaml", Data: []byte(text)}, {Name: "b.yaml", Data: []byte(other)}}, ConversionOptions{})
			if !r.Files[0].Changed {
				t.Errorf("%s: not converted:\n%s%v", field, text, r.Remarks)
			}
			if !strings.Contains(string(r.Files[0].Text)+string(r.Files[1].Text), value) && !isNamed(r, field, value) {
				t.Errorf("%s of %s is lost:\n%s->\n%s%v", field, header, text, r.Files[0].Text, r.Remarks)
			}
		}
	}
}

// fieldDocument returns an object with one field, and the text of its value.
func fieldDocument(header, field string) (text, value string) {
	var b strings.Builder
	b.WriteString("apiVersion: " + header + "\nmetadata:\n  name: other\n")
	indent := ""
	names := strings.Split(field, ".")
	for i, name := range names {
		name, isList := strings.CutSuffix(name, "[]")
		name, isMap := strings.CutSuffix(name, "{}")
		b.WriteString(indent + name + ":")
		indent = strings.ReplaceAll(indent, "-", " ")
		switch {
		case i < len(names)-1 && isList:
			b.WriteString("\n")
			indent += "  - "
		case i < len(names)-1:
			b.WriteString("\n")
			indent += "  "
		case isMap:
			value = "value-7191"
			fmt.Fprintf(&b, "\n%s  key-7191: %s\n", indent, value)
		case isList:
			value = "value-7191"
			fmt.Fprintf(&b, "\n%s  - %s\n", indent, value)
		default:
			value = sampleValue(field)
			fmt.Fprintf(&b, " %s\n", value)
		}
	}
	return b.String(), value
}

// sampleValue returns a value of about the right type.
func sampleValue(field string) string {
	switch {
	case strings.HasSuffix(field, "amiFamily"):
		return "AL2023"
	case strings.HasSuffix(field, "enabled"):
		return "true"
	case strings.HasSuffix(field, "consolidationPolicy"):
		return "WhenEmpty"
	}
	return "7191"
}

// isNamed reports whether a remark names a field, or its parent.
func isNamed(r ConversionResult, field, value string) bool {
	path := strings.NewReplacer("[]", "", "{}", "").Replace(field)
	for _, remark := range r.Remarks {
		at := strings.NewReplacer("[0]", "").Replace(remark.Path)
		parent := strings.HasPrefix(path, at+".") && (strings.HasPrefix(remark.Text, "removed") || strings.HasPrefix(remark.Text, "is now"))
		if at == path || parent || strings.Contains(remark.Text, value) {
			return true
		}
	}
	return false
}
