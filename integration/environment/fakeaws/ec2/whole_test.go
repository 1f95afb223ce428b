package ec2

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
)

// filler sets every field of a value to a distinct value, so that a lost or swapped field
// is detected.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("v" + strconv.Itoa(f.n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(field)
		}
	default:
		panic("the test cannot fill a " + v.Kind().String())
	}
}

// sent returns the form that the adapter's call sends.
func sent(t *testing.T, call func(ec2cloud.Cloud)) query.Form {
	t.Helper()
	var got query.Form
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, err := query.Read(r)
		if err != nil {
			t.Error(err)
		}
		got = form
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	call(ec2cloud.New(aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDFAKE", "secret", ""),
	}))
	return got
}

func TestEveryTemplateFieldArrives(t *testing.T) {
	var want cloud.Template
	new(filler).fill(reflect.ValueOf(&want).Elem())
	want.Interfaces[0].Card, want.Interfaces[0].Device = 0, 0 // The primary interface has the addresses.
	got, err := template(sent(t, func(c ec2cloud.Cloud) { _ = c.EnsureTemplate(t.Context(), want) }))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryRunFieldArrives(t *testing.T) {
	var want cloud.RunRequest
	new(filler).fill(reflect.ValueOf(&want).Elem())
	got, err := runRequest(sent(t, func(c ec2cloud.Cloud) { _ = c.TryRun(t.Context(), want) }))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFleetFieldArrives(t *testing.T) {
	for _, test := range []struct{ name, capacityType, target, strategy string }{
		{"spot", cloud.Spot, "", "price-capacity-optimized"},
		{"on-demand", cloud.OnDemand, "", "lowest-price"},
		{"a capacity block", cloud.Reserved, cloud.TargetCapacityBlock, ""},
		{"an interruptible reservation", cloud.Reserved, cloud.TargetReservedCapacity, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want cloud.FleetRequest
			new(filler).fill(reflect.ValueOf(&want).Elem())
			want.CapacityType, want.Target, want.Strategy = test.capacityType, test.target, test.strategy
			form := sent(t, func(c ec2cloud.Cloud) { _, _ = c.CreateFleet(t.Context(), want) })
			if diff := cmp.Diff(want, fleetRequest(form)); diff != "" {
				t.Error(diff)
			}
			interruptible := form.Get("ReservedCapacityOptions.ReservationType.1") == "interruptible-capacity-reservation"
			if want := test.target == cloud.TargetReservedCapacity; interruptible != want {
				t.Errorf("interruptible reservations requested: %t, want %t", interruptible, want)
			}
		})
	}
}
