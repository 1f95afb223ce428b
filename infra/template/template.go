package template

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Template is a template with unresolved functions. Its numbers are [json.Number], which
// keeps their spelling.
type Template struct {
	Parameters map[string]Parameter
	// Conditions are the conditions by name.
	Conditions map[string]any
	// Resources are the resources by logical id.
	Resources map[string]Resource
	Outputs   map[string]Output
}

// Parameter is an input of a template.
type Parameter struct{ Default any }

// Output is an output of a stack.
type Output struct {
	Value     any
	Condition string
}

// Resource is a resource of a stack.
type Resource struct {
	Type string
	// Condition is the name of its condition; empty if it is always created.
	Condition string
	// DeletionPolicy is Delete, Retain or another policy of CloudFormation.
	DeletionPolicy string
	Properties     map[string]any
}

// Parse parses a template in JSON.
func Parse(text []byte) (Template, error) {
	var t Template
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&t); err != nil {
		return Template{}, fmt.Errorf("parsing the template: %w", err)
	}
	return t, nil
}

// Place is the account, region and name of a deployment.
type Place struct {
	// Account has twelve digits; Partition is aws, aws-cn or aws-us-gov.
	Account, Region, Partition string
	// Name is the stack's.
	Name string
	// Parameters override the template's defaults.
	Parameters map[string]string
	// QueueURL returns the URL of a queue; nil uses SQS's URLs.
	QueueURL func(name string) string
}

// domainSuffix returns the domain of the partition's services.
func (p Place) domainSuffix() string {
	if p.Partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

func (p Place) queueURL(name string) string {
	if p.QueueURL != nil {
		return p.QueueURL(name)
	}
	return "https://sqs." + p.Region + "." + p.domainSuffix() + "/" + p.Account + "/" + name
}

// Stack is a template with a place.
type Stack struct {
	Template
	place Place
	// resolving are the logical ids that are being resolved, to detect cycles.
	resolving []string
}

// DeployTo returns the template with a place.
func (t Template) DeployTo(place Place) *Stack { return &Stack{Template: t, place: place} }

// IsCreated reports whether a resource is created: it has no condition, or a true one.
func (s *Stack) IsCreated(id string) (bool, error) {
	r, ok := s.Resources[id]
	if !ok {
		return false, fmt.Errorf("the template has no parameter and no resource %q", id)
	}
	if r.Condition == "" {
		return true, nil
	}
	return s.evaluateCondition(r.Condition)
}

// Resource returns a resource with resolved properties. An error names the resource and
// the property.
func (s *Stack) Resource(id string) (Resource, error) {
	r := s.Resources[id]
	v, err := s.Value(r.Properties)
	if err != nil {
		return Resource{}, fmt.Errorf("the resource %s (%s): %w", id, r.Type, err)
	}
	r.Properties, _ = v.(map[string]any)
	return r, nil
}

// Output returns the value of an output.
func (s *Stack) Output(name string) (string, error) {
	v, err := s.Value(s.Outputs[name].Value)
	if err != nil {
		return "", fmt.Errorf("the output %s: %w", name, err)
	}
	return fmt.Sprint(v), nil
}
