package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// The shape of an instance's id: eight hexadecimal digits of old, seventeen of
// late.
const (
	idPrefix  = "i-"
	digitsMin = 8
	digitsMax = 32
)

// isInstance reports whether the text is an instance's id.
func isInstance(text string) bool {
	digits, ok := strings.CutPrefix(text, idPrefix)
	if !ok || len(digits) < digitsMin || len(digits) > digitsMax {
		return false
	}
	for i := range len(digits) {
		if c := digits[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// one reads the instance of an event that speaks of one, and makes sure that the
// event's resources do not speak of another.
func (r *reading) one() ([]string, error) {
	id, err := r.needed(instanceID)
	if err != nil {
		return nil, err
	}
	if !isInstance(id) {
		return nil, r.poison("instance-id %q is none", short(id))
	}
	found, err := r.resources()
	if err != nil {
		return nil, err
	}
	for _, other := range found {
		if other != id {
			return nil, r.poison("instance-id is %s, and the resources name %s", id, other)
		}
	}
	return []string{id}, nil
}

// resources are the instances that the event's resources name: a list, or one
// text without it. What is no instance's name is passed over.
func (r *reading) resources() ([]string, error) {
	value := r.header[resources]
	if said := text(value); len(said) > 0 {
		return r.named(nil, string(said))
	}
	var found []string
	var room [4][]byte
	for _, element := range event.Elements(value, room[:0]) {
		var err error
		if found, err = r.named(found, string(text(element))); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// named appends the instance that a name names: its id, or its ARN, which has to
// lie where the event says that it is from.
func (r *reading) named(found []string, name string) ([]string, error) {
	if isInstance(name) {
		return append(found, name), nil
	}
	arn, ok := strings.CutPrefix(name, "arn:")
	if !ok {
		return found, nil
	}
	_, arn, _ = strings.Cut(arn, ":") // the partition
	service, arn, _ := strings.Cut(arn, ":")
	place, arn, _ := strings.Cut(arn, ":")
	id, isOne := strings.CutPrefix(arn[strings.LastIndexByte(arn, ':')+1:], "instance/")
	if service != "ec2" || !isOne || !isInstance(id) {
		return found, nil
	}
	owner, _, _ := strings.Cut(arn, ":")
	if owner == "instance/"+id {
		owner = "" // The spot warning's ARN has no account.
	}
	return append(found, id), r.place(name, place, owner)
}

// place compares where an ARN lies with what the event says. The spot warning's
// has a zone in the place of the region.
func (r *reading) place(name, place, owner string) error {
	said, by := r.region, r.account
	if place != "" && said != "" && !strings.HasPrefix(place, said) || owner != "" && by != "" && owner != by {
		return r.poison("resource %q is not of account %s in %s", short(name), by, said)
	}
	return nil
}
