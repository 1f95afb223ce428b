package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// The limits, prices and bandwidths are Go source, which is parsed but not compiled:
// compiling would need each module's whole dependency graph for one map.

// limit is the used part of a VPC limit.
type limit struct {
	IPv4, Branch, Cards, DefaultCardENIs int64
	Trunking, BareMetal                  bool
	Hypervisor                           string
}

func readLimits(path string) (map[string]limit, error) {
	entries, err := variable(path, "Limits")
	if err != nil {
		return nil, err
	}
	limits := map[string]limit{}
	for name, value := range entries {
		fields := fieldsOf(value)
		cards := elements(fields["NetworkCards"])
		l := limit{
			IPv4: integer(fields["IPv4PerInterface"]), Branch: integer(fields["BranchInterface"]), Cards: int64(len(cards)),
			Trunking: boolean(fields["IsTrunkingCompatible"]), BareMetal: boolean(fields["IsBareMetal"]),
			Hypervisor: text(fields["Hypervisor"]),
		}
		if index := integer(fields["DefaultNetworkCardIndex"]); int(index) < len(cards) {
			l.DefaultCardENIs = integer(fieldsOf(cards[index])["MaximumNetworkInterfaces"])
		}
		limits[name] = l
	}
	return limits, nil
}

// readPrices reads the on-demand prices of a partition: AWS, USGov or CN, as in the
// variable's name.
func readPrices(path, partition string) (map[string]map[string]float64, error) {
	entries, err := variable(path, "InitialOnDemandPrices"+partition)
	if err != nil {
		return nil, err
	}
	prices := map[string]map[string]float64{}
	for region, value := range entries {
		prices[region] = numbers(entriesOf(value))
	}
	return prices, nil
}

func readBandwidth(path string) (map[string]float64, error) {
	entries, err := variable(path, "InstanceTypeBandwidthMegabits")
	return numbers(entries), err
}

// variable returns a package variable that is a map literal with string keys.
func variable(path, name string) (map[string]ast.Expr, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	var found map[string]ast.Expr
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && len(spec.Values) == 1 && spec.Names[0].Name == name {
			found = entriesOf(spec.Values[0])
		}
		return found == nil
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("no map %s in %s", name, path)
	}
	return found, nil
}

// entriesOf returns the entries of a map literal with string keys.
func entriesOf(e ast.Expr) map[string]ast.Expr {
	entries := map[string]ast.Expr{}
	for _, element := range elements(e) {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			entries[text(pair.Key)] = pair.Value
		}
	}
	return entries
}

// fieldsOf returns the fields of a struct literal.
func fieldsOf(e ast.Expr) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	for _, element := range elements(e) {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name] = pair.Value
			}
		}
	}
	return fields
}

func elements(e ast.Expr) []ast.Expr {
	if literal, ok := e.(*ast.CompositeLit); ok {
		return literal.Elts
	}
	return nil
}

func numbers(entries map[string]ast.Expr) map[string]float64 {
	values := map[string]float64{}
	for name, value := range entries {
		if literal, ok := value.(*ast.BasicLit); ok {
			values[name], _ = strconv.ParseFloat(literal.Value, 64)
		}
	}
	return values
}

func integer(e ast.Expr) int64 {
	if literal, ok := e.(*ast.BasicLit); ok {
		value, _ := strconv.ParseInt(literal.Value, 0, 64)
		return value
	}
	return 0
}

func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		value, _ := strconv.Unquote(literal.Value)
		return value
	}
	return ""
}

func boolean(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "true"
}
