package report

// Conversion is the output of `joist convert -o json` and `joist lint -o json`, a contract.
type Conversion struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Changed reports whether any file changes.
	Changed bool `json:"changed"`
	// Files are in the order in which they were read.
	Files []ConvertedFile `json:"files"`
	// Values are values of Joist's chart from Karpenter's ConfigMaps, as YAML.
	Values string `json:"values,omitempty"`
	// Remarks are sorted by file and line.
	Remarks []ConversionRemark `json:"remarks"`
}

// ConvertedFile is one file of a conversion.
type ConvertedFile struct {
	Name string `json:"name"`
	// Kind is manifests, values or nodegroups.
	Kind    string `json:"kind"`
	Changed bool   `json:"changed"`
	// Text is the new text; joist lint has none.
	Text string `json:"text,omitempty"`
}

// ConversionRemark is a finding of a conversion.
type ConversionRemark struct {
	File string `json:"file"`
	// Line and Column count from 1; a Column of 0 is the whole line.
	Line   int `json:"line"`
	Column int `json:"column,omitempty"`
	// Severity is converted, check, unrepaired or warning.
	Severity string `json:"severity"`
	// Path is the field in the input, such as spec.limits.resources.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Remedy is what to do, if anything is left to do.
	Remedy string `json:"remedy,omitempty"`
}
