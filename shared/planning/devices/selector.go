package devices

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	resourcev1 "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// selector is a compiled CEL expression over a device.
type selector struct {
	expression string
	program    cel.Program
	emptyMap   ref.Val
	// err is why the expression does not compile.
	err error
}

// environment is the CEL environment of device selectors in Kubernetes 1.37 (Kubernetes:
// k8s.io/apiserver/pkg/cel/environment/base.go and k8s.io/dynamic-resource-allocation/cel). The
// Kubernetes package itself also links metrics, feature gates and command-line flags.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		library.URLs(), library.Regex(), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib(library.SemverVersion(1)), library.Lists(library.ListsVersion(1)),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.TwoVarComprehensions(), ext.Lists(ext.ListsVersion(3)), ext.Bindings(ext.BindingsVersion(0)),
		cel.CostEstimatorOptions(checker.PresenceTestHasCost(false)),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(), cel.ValidateHomogeneousAggregateLiterals()),
	)
	if err != nil {
		return nil, err
	}
	attributes := apiservercel.NewMapType(apiservercel.StringType, apiservercel.AnyType, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
	capacities := apiservercel.NewMapType(apiservercel.StringType, apiservercel.QuantityDeclType, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
	byDomain := func(t *apiservercel.DeclType) *apiservercel.DeclType {
		return apiservercel.NewMapType(apiservercel.StringType, t, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
	}
	fields := map[string]*apiservercel.DeclField{}
	for name, t := range map[string]*apiservercel.DeclType{
		"driver": apiservercel.StringType, "allowMultipleAllocations": apiservercel.BoolType,
		"attributes": byDomain(attributes), "capacity": byDomain(capacities),
	} {
		fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
	}
	device := apiservercel.NewObjectType("kubernetes.DRADevice", fields)
	options, err := apiservercel.NewDeclTypeProvider(device).EnvOptions(env.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	return env.Extend(append(options, cel.Variable("device", device.CelType()))...)
}

// compileSelector compiles an expression. The error is in the result.
func compileSelector(expression string) *selector {
	s := &selector{expression: expression}
	s.program, s.emptyMap, s.err = compileProgram(expression)
	return s
}

func compileProgram(expression string) (cel.Program, ref.Val, error) {
	env, err := environment()
	if err != nil {
		return nil, nil, fmt.Errorf("building the CEL environment: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, issues.Err()
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.AnyType) {
		return nil, nil, fmt.Errorf("the expression has type %s, not bool", t)
	}
	program, err := env.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(resourcev1.CELSelectorExpressionMaxCost),
		cel.CostTrackerOptions(interpreter.PresenceTestHasCost(false)), cel.CostTracking(&library.CostEstimator{}))
	return program, env.CELTypeAdapter().NativeToValue(map[string]any{}), err
}

// matchesDevice evaluates the expression for a device.
func (s *selector) matchesDevice(d *device) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	if d.variables == nil {
		d.variables, d.badAttribute = newVariables(d, s.emptyMap)
	}
	if d.badAttribute != nil {
		return false, d.badAttribute
	}
	result, _, err := s.program.Eval(map[string]any{"device": d.variables})
	if err != nil {
		return false, err
	}
	matches, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the result has type %s, not bool", result.Type().TypeName())
	}
	return matches, nil
}

// newVariables returns the fields of the variable device. Attributes and capacities without a domain
// are in the domain of the driver.
func newVariables(d *device, emptyMap ref.Val) (map[string]any, error) {
	attributes, capacities := map[string]any{}, map[string]any{}
	for name := range d.spec.Attributes {
		value, err := attributeValue(d.spec.Attributes[name])
		if err != nil {
			return map[string]any{}, fmt.Errorf("attribute %s: %w", name, err)
		}
		addByDomain(attributes, name, d.id.Driver, value)
	}
	for name, capacity := range d.spec.Capacity {
		addByDomain(capacities, name, d.id.Driver, apiservercel.Quantity{Quantity: &capacity.Value})
	}
	return map[string]any{
		"driver": d.id.Driver, "allowMultipleAllocations": d.isShared(),
		"attributes": domainMap{types.NewStringInterfaceMap(types.DefaultTypeAdapter, attributes), emptyMap},
		"capacity":   domainMap{types.NewStringInterfaceMap(types.DefaultTypeAdapter, capacities), emptyMap},
	}, nil
}

func addByDomain(to map[string]any, name resourcev1.QualifiedName, driver string, value any) {
	domain, id, found := strings.Cut(string(name), "/")
	if !found {
		domain, id = driver, string(name)
	}
	if to[domain] == nil {
		to[domain] = map[string]any{}
	}
	to[domain].(map[string]any)[id] = value
}

func attributeValue(a resourcev1.DeviceAttribute) (any, error) {
	switch {
	case a.IntValue != nil:
		return *a.IntValue, nil
	case a.BoolValue != nil:
		return *a.BoolValue, nil
	case a.StringValue != nil:
		return *a.StringValue, nil
	case a.VersionValue != nil:
		version, err := semver.Parse(*a.VersionValue)
		return apiservercel.Semver{Version: version}, err
	}
	return nil, errors.New("its type is not supported (string, int, bool and version are)")
}

// domainMap is a map from domains in which an unknown domain is an empty map, so that
// device.attributes["example.com"].?name needs no check of the domain.
type domainMap struct {
	traits.Mapper
	empty ref.Val
}

// Find implements traits.Mapper.
func (m domainMap) Find(key ref.Val) (ref.Val, bool) {
	if value, found := m.Mapper.Find(key); found {
		return value, true
	}
	return m.empty, true
}
