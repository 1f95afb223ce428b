package launching

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// decodeForm sets the fields of an input of the SDK from a request of EC2's query protocol. A parameter without a field
// is an error.
func decodeForm(form url.Values, input reflect.Value) error {
	d := formDecoder{form: form, used: map[string]bool{}}
	if err := d.decodeInto("", input.Elem()); err != nil {
		return err
	}
	for key := range form {
		if !d.used[key] {
			return fmt.Errorf("the input has no field for %s", key)
		}
	}
	return nil
}

type formDecoder struct {
	form url.Values
	used map[string]bool
}

// has reports whether there is a value at the path or below it.
func (d formDecoder) has(path string) bool {
	if _, ok := d.form[path]; ok {
		return true
	}
	for key := range d.form {
		if strings.HasPrefix(key, path+".") {
			return true
		}
	}
	return false
}

// otherNames are the names in requests of fields that are neither the field's name nor its singular.
var otherNames = map[string]string{"Groups": "SecurityGroupId", "Resources": "ResourceId"}

// nameField returns the name of a field in the request below the path.
func (d formDecoder) nameField(path, field string) (string, bool) {
	for _, name := range []string{field, strings.TrimSuffix(field, "s"), otherNames[field]} {
		if name != "" && d.has(path+name) {
			return path + name, true
		}
	}
	return "", false
}

func (d formDecoder) decodeInto(path string, into reflect.Value) error {
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.decodeInto(path, into.Elem())
	case reflect.Struct:
		if path != "" {
			path += "."
		}
		for i := range into.NumField() {
			if name, ok := d.nameField(path, into.Type().Field(i).Name); ok && into.Field(i).CanSet() {
				if err := d.decodeInto(name, into.Field(i)); err != nil {
					return err
				}
			}
		}
		return nil
	case reflect.Slice:
		for n := 1; d.has(path + "." + strconv.Itoa(n)); n++ {
			item := reflect.New(into.Type().Elem()).Elem()
			if err := d.decodeInto(path+"."+strconv.Itoa(n), item); err != nil {
				return err
			}
			into.Set(reflect.Append(into, item))
		}
		return nil
	default:
		d.used[path] = true
		return setScalar(into, d.form.Get(path))
	}
}

// setScalar sets a text, boolean or number.
func setScalar(into reflect.Value, text string) error {
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		into.SetBool(text == "true")
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			return err
		}
		into.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		into.SetFloat(n)
	default:
		return fmt.Errorf("a field of type %s is not supported", into.Type())
	}
	return nil
}

// element is a value of the SDK as an element of EC2's responses.
type element struct {
	name  string
	value reflect.Value
}

// elementNames are the names in responses that differ from the field's.
var elementNames = map[string]string{
	"CreateFleetOutput.Instances": "fleetInstanceSet", "CreateFleetOutput.Errors": "errorSet", "TerminateInstancesOutput.TerminatingInstances": "instancesSet",
}

// MarshalXML writes the element.
func (e element) MarshalXML(to *xml.Encoder, _ xml.StartElement) error {
	value, start := e.value, xml.StartElement{Name: xml.Name{Local: e.name}}
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct && value.Kind() != reflect.Slice {
		return to.EncodeElement(value.Interface(), start)
	}
	if at, ok := reflect.TypeAssert[time.Time](value); ok {
		return to.EncodeElement(at, start)
	}
	if err := to.EncodeToken(start); err != nil {
		return err
	}
	for _, child := range listChildren(value) {
		if err := child.MarshalXML(to, xml.StartElement{}); err != nil {
			return err
		}
	}
	return to.EncodeToken(start.End())
}

// listChildren returns the items of a list, or the fields of a structure that are set.
func listChildren(value reflect.Value) []element {
	var out []element
	if value.Kind() == reflect.Slice {
		for i := range value.Len() {
			out = append(out, element{"item", value.Index(i)})
		}
		return out
	}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() || field.Name == "ResultMetadata" || value.Field(i).IsZero() {
			continue
		}
		name := elementNames[value.Type().Name()+"."+field.Name]
		if name == "" {
			name = strings.ToLower(field.Name[:1]) + field.Name[1:]
		}
		out = append(out, element{name, value.Field(i)})
	}
	return out
}
