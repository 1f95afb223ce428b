package podspec_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// variants returns values of a type: the zero value, and one for each field or element that can differ
// from it.
func variants(of reflect.Type) []reflect.Value {
	out := []reflect.Value{reflect.Zero(of)}
	add := func(fill func(into reflect.Value)) {
		one := reflect.New(of).Elem()
		fill(one)
		out = append(out, one)
	}
	if of == reflect.TypeFor[resource.Quantity]() {
		return append(out, reflect.ValueOf(resource.MustParse("3")))
	}
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			for _, inner := range variants(of.Field(i).Type)[1:] {
				add(func(into reflect.Value) { into.Field(i).Set(inner) })
			}
		}
	case reflect.Pointer:
		for _, inner := range variants(of.Elem()) {
			add(func(into reflect.Value) {
				into.Set(reflect.New(of.Elem()))
				into.Elem().Set(inner)
			})
		}
	case reflect.Slice:
		for _, inner := range variants(of.Elem()) {
			add(func(into reflect.Value) { into.Set(reflect.Append(into, inner)) })
			add(func(into reflect.Value) { into.Set(reflect.Append(into, inner, inner)) })
		}
	case reflect.Map:
		for _, key := range variants(of.Key()) {
			for _, value := range variants(of.Elem()) {
				add(func(into reflect.Value) {
					into.Set(reflect.MakeMap(of))
					into.SetMapIndex(key, value)
				})
			}
		}
	case reflect.String:
		add(func(into reflect.Value) { into.SetString("x") })
		add(func(into reflect.Value) { into.SetString("x\x00\x01") })
	case reflect.Int, reflect.Int32, reflect.Int64:
		add(func(into reflect.Value) { into.SetInt(1) })
		add(func(into reflect.Value) { into.SetInt(-1) })
	case reflect.Bool:
		add(func(into reflect.Value) { into.SetBool(true) })
	default:
		panic("no variants of " + of.String())
	}
	return out
}

// TestKeyDependsOnEveryField compares the key with the JSON: specs have the same key exactly if their JSON
// is equal. A new field in a spec, of Joist or Kubernetes, fails here until the key includes it.
func TestKeyDependsOnEveryField(t *testing.T) {
	byKey, byText := map[string]string{}, map[string]string{}
	all := variants(reflect.TypeFor[planning.PodSpec]())
	for _, one := range all {
		spec := one.Interface().(planning.PodSpec)
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		key := podspec.Key(spec)
		if other, known := byKey[key]; known && other != string(text) {
			t.Errorf("two specs have the same key:\n%s\n%s", other, text)
		}
		if other, known := byText[string(text)]; known && other != key {
			t.Errorf("one spec has two keys: %s", text)
		}
		byKey[key], byText[string(text)] = string(text), key
	}
	if len(byKey) < 200 {
		t.Errorf("only %d of %d specs are distinct: the test covers too few variants", len(byKey), len(all))
	}
}
