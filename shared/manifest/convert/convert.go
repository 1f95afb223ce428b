package convert

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// Input is one file.
type Input struct {
	// Name is the file's name in remarks.
	Name string
	Data []byte
}

// ConversionOptions of a conversion.
type ConversionOptions struct {
	// ClusterName is the EKS cluster's name in assumed tags and roles, and the cluster whose node groups are converted;
	// ${CLUSTER_NAME} and the only cluster that the groups name if empty.
	ClusterName string
	// Lint adds the warnings of manifest.Lint to the remarks.
	Lint bool
	// ValuesInput is the name of an input whose values are added to the Values of the result, and which is not in its Files.
	ValuesInput string
}

// FileResult is the result for one input.
type FileResult struct {
	Name string
	// Text is the file's new text, equal to the input if Changed is false.
	Text    []byte
	Changed bool
	// Kind is what the file has: manifests, values of a chart, the output of the AWS CLI, or no text.
	Kind FileKind
}

// FileKind is the kind of a file.
type FileKind string

// Kinds of files.
const (
	Manifests  FileKind = "manifests"
	Values     FileKind = "values"
	NodeGroups FileKind = "nodegroups"
	Unreadable FileKind = "unreadable"
)

// ConversionResult is the result of a conversion.
type ConversionResult struct {
	// Files are in the order of the inputs.
	Files []FileResult
	// Values are values of Joist's chart from ConfigMaps and ValuesInput, as YAML; empty without these.
	Values string
	// Remarks are sorted by file and line.
	Remarks []Remark
}

// Changed reports whether any file changed.
func (r ConversionResult) Changed() bool {
	for _, file := range r.Files {
		if file.Changed {
			return true
		}
	}
	return false
}

// Count returns the number of remarks of a severity.
func (r ConversionResult) Count(severity RemarkSeverity) (n int) {
	for _, remark := range r.Remarks {
		if remark.Severity == severity {
			n++
		}
	}
	return n
}

// converter converts the files of one conversion together, because NodePools refer to EC2NodeClasses of
// other files.
type converter struct {
	options ConversionOptions
	files   []*file
	remarks []Remark
	// profile is the default instance profile of Karpenter's settings, and profileUsed whether a class got it.
	profile     string
	profileUsed bool
	// values are those of the ConfigMaps.
	values *node
	groups nodeGroups
}

// file is one input with its documents.
type file struct {
	name     string
	kind     FileKind
	sections []*section
}

// object is one object of a document.
type object struct {
	root             *node
	apiVersion, kind string
	section          *section
	// old is set if the object is of a version that is no longer served.
	old bool
	// settings is set if the object is a ConfigMap whose values become those of Joist's chart.
	settings bool
	// added is set if the conversion added the object.
	added bool
}

func (o *object) name() string { return o.root.textAt("metadata", "name") }

// isClass and isPool report whether the object is an EC2NodeClass or a NodePool, also one of an older version.
func (o *object) isClass() bool { return o.isKind(cluster.NodeClasses) }
func (o *object) isPool() bool  { return o.isKind(cluster.NodePools) }

func (o *object) isKind(kind cluster.Kind) bool {
	if o.apiVersion == kind.APIVersion() && o.kind == kind.Kind {
		return true
	}
	now, old := manifest.CurrentKind(o.apiVersion, o.kind)
	return old && now == kind
}

// Convert converts files. It never fails: what it cannot convert is in the remarks.
func Convert(inputs []Input, options ConversionOptions) ConversionResult {
	c := &converter{options: options, values: newMapping()}
	for _, input := range inputs {
		c.files = append(c.files, c.readFile(input))
	}
	c.eachObject(c.readSettings)
	c.readProfiles()
	c.eachObject(c.convertObject)
	c.convertNodeGroups()
	c.splitKubelets()
	c.nameDuplicates()
	c.convertSettings()
	c.eachObject(c.quoteTexts)
	c.convertValueFiles()
	return c.finish()
}

// eachObject calls a function for each object, also for added ones.
func (c *converter) eachObject(do func(*object)) {
	for _, f := range c.files {
		for _, s := range f.sections {
			for i := 0; i < len(s.objects); i++ {
				do(s.objects[i])
			}
		}
	}
}

func (c *converter) convertObject(o *object) {
	switch {
	case o.isKind(cluster.NodePools):
		c.convertNodePool(o)
	case o.isKind(cluster.NodeClasses):
		c.convertNodeClass(o)
	case o.isKind(cluster.NodeClaims):
		c.convertNodeClaim(o)
	default:
		c.convertWorkload(o)
	}
}

// remark adds a remark about a value of an object.
func (c *converter) remark(o *object, severity RemarkSeverity, line, column int, path, text, remedy string) {
	if line == 0 {
		line, column = max(1, o.root.line), o.root.column
	}
	c.remarks = append(c.remarks, Remark{manifest.Place{File: o.section.file.name, Line: o.section.before + line, Column: column}, severity, path, text, remedy})
}

// remarkEntry adds a remark about an entry, or about its object if it is nil.
func (c *converter) remarkEntry(o *object, severity RemarkSeverity, e *entry, path, text, remedy string) {
	line, column := 0, 0
	if e != nil {
		line, column = e.first, e.column
		if line == 0 && e.value != nil {
			line, column = e.value.line, e.value.column
		}
	}
	c.remark(o, severity, line, column, path, text, remedy)
}

// setHeader makes the object one of a current kind.
func (c *converter) setHeader(o *object, kind cluster.Kind) {
	if o.apiVersion == kind.APIVersion() && o.kind == kind.Kind {
		return
	}
	o.old = true
	e := o.root.set("apiVersion", newScalar(kind.APIVersion()))
	o.root.set("kind", newScalar(kind.Kind))
	c.remarkEntry(o, Converted, e, "", fmt.Sprintf("%s of %s is now %s of %s", o.kind, o.apiVersion, kind.Kind, kind.APIVersion()), "")
}

// clusterName returns the cluster's name, or its placeholder.
func (c *converter) clusterName() string {
	if c.options.ClusterName != "" {
		return c.options.ClusterName
	}
	return "${CLUSTER_NAME}"
}

// nameDuplicates names objects that are in the files twice.
func (c *converter) nameDuplicates() {
	seen := map[string]Remark{}
	c.eachObject(func(o *object) {
		if !o.isPool() && !o.isClass() || o.name() == "" || !o.section.isConvertible() {
			return
		}
		kind := "NodePool"
		if o.isClass() {
			kind = "EC2NodeClass"
		}
		key := kind + " " + o.name()
		here := manifest.Place{File: o.section.file.name, Line: o.section.before + max(1, o.root.line)}
		if first, twice := seen[key]; twice {
			c.remark(o, Check, 0, 0, "metadata.name", key+" is also at "+first.Place.String()+"; the last one that is applied replaces the others", "keep one, with the fields of all")
			return
		}
		seen[key] = Remark{Place: here}
	})
}

var awsGroup = karpenter.AWSGroup
