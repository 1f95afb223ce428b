package template

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Template is one as it is written, with functions and references in it. Its numbers
// are [json.Number], which keeps how they are written.
type Template struct {
	Parameters map[string]Parameter
	// Conditions are by the names that resources and Fn::If call them.
	Conditions map[string]any
	// Resources are by their logical ids.
	Resources map[string]Resource
	Outputs   map[string]Output
}

// Parameter is an input of a template.
type Parameter struct{ Default any }

// Output is what a stack tells about itself.
type Output struct {
	Value     any
	Condition string
}

// Resource is one thing that a stack makes.
type Resource struct {
	Type string
	// Condition names the one under which it is made; without a name it is.
	Condition string
	// DeletionPolicy says what becomes of it when the stack is deleted.
	DeletionPolicy string
	Properties     map[string]any
}

// Parse reads a template that is written in JSON, as the CDK writes them.
func Parse(text []byte) (Template, error) {
	var t Template
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&t); err != nil {
		return Template{}, fmt.Errorf("reading the template: %w", err)
	}
	return t, nil
}

// Place is where a stack is made, and how.
type Place struct {
	// Account has twelve digits; Partition is aws, aws-cn or aws-us-gov.
	Account, Region, Partition string
	// Name is the stack's.
	Name string
	// Parameters override the template's defaults.
	Parameters map[string]string
	// QueueURL is the URL of a queue of that name; without it, it is as SQS has them.
	QueueURL func(name string) string
}

// domainSuffix is the domain of a partition's services.
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

// Stack is a template in its place.
type Stack struct {
	Template
	place Place
	// resolving are the logical ids that are being resolved, to find circles.
	resolving []string
}

// DeployTo puts a template into a place.
func (t Template) DeployTo(place Place) *Stack { return &Stack{Template: t, place: place} }

// IsCreated tells whether a resource is made: it is unless its condition does not hold.
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

// Resource is a resource with its properties resolved. An error names the resource and
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

// Output is what the stack tells under a name, as text.
func (s *Stack) Output(name string) (string, error) {
	v, err := s.Value(s.Outputs[name].Value)
	if err != nil {
		return "", fmt.Errorf("the output %s: %w", name, err)
	}
	return fmt.Sprint(v), nil
}
