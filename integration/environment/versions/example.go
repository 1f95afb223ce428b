package versions

import (
	"encoding/json"
	"hash/fnv"
	"reflect"
	"strings"
	"time"
)

// example returns a value of a type in which every field is set, derived from the path alone, so that a new field
// changes no other value. A type that contains itself is filled once.
func example(t reflect.Type, path string, above map[reflect.Type]bool) reflect.Value {
	v := reflect.New(t).Elem()
	if encodesItself(t) {
		fillEncoded(v)
		return v
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(path))
	number := hash.Sum32()%1000 + 1
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(example(t.Elem(), path, above))
	case reflect.Struct:
		if above[t] {
			return v
		}
		above[t] = true
		defer delete(above, t)
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() {
				v.Field(i).Set(example(field.Type, path+"."+field.Name, above))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		v.Index(0).Set(example(t.Elem(), path+"[]", above))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("key").Convert(t.Key()), example(t.Elem(), path+"{}", above))
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(number) + 0.5)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(number)%99 + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(number)%99 + 1)
	}
	return v
}

// fillEncoded sets a value that has an encoding of its own, such as a time or a quantity, to the first text that it
// accepts and writes again.
func fillEncoded(v reflect.Value) {
	for _, text := range []string{`"` + time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC).Format(time.RFC3339) + `"`, `"2026-11-20T12:00:00.000000Z"`, `"5m0s"`, `"5m"`, `"8"`, `{"key":"value"}`, `7`} {
		into := reflect.New(v.Type())
		if json.Unmarshal([]byte(text), into.Interface()) != nil {
			continue
		}
		if again, err := json.Marshal(into.Interface()); err == nil && string(again) == text {
			v.Set(into.Elem())
			return
		}
	}
}
