package notice

import (
	"bytes"

	"github.com/joist-autoscaler/joist/shared/event"
)

// The shape of an instance's id: eight hexadecimal digits of old, seventeen of
// late.
const (
	idPrefix  = "i-"
	minDigits = 8
	maxDigits = 32
)

// What an ARN is made of.
var (
	colon = []byte(":")
	// instancePrefix stands before the id.
	instancePrefix = []byte("instance/")
)

// isInstance reports whether the text is an instance's id.
func isInstance(text []byte) bool {
	if len(text) < len(idPrefix)+minDigits || len(text) > len(idPrefix)+maxDigits || string(text[:len(idPrefix)]) != idPrefix {
		return false
	}
	for _, c := range text[len(idPrefix):] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// readInstance appends the instance of an event that speaks of one, and makes sure that the
// event's resources do not speak of another.
func (r *eventReader) readInstance(into []string) ([]string, error) {
	id, err := r.requiredText(detailInstanceID)
	if err != nil {
		return nil, err
	}
	if !isInstance(id) {
		return nil, r.poisonError("instance-id %q is none", truncateText(string(id)))
	}
	var room [4][]byte
	found, err := r.resourceInstances(room[:0])
	if err != nil {
		return nil, err
	}
	for _, other := range found {
		if !bytes.Equal(other, id) {
			return nil, r.poisonError("instance-id is %s, and the resources name %s", id, other)
		}
	}
	return append(into, string(id)), nil
}

// resourceInstances appends the instances that the event's resources name: a list, or one
// text without it. What is no instance's name is passed over.
func (r *eventReader) resourceInstances(found [][]byte) ([][]byte, error) {
	value := r.header[headerResources]
	if said := stringValue(value); len(said) > 0 {
		return r.appendInstance(found, said)
	}
	var room [4][]byte
	for _, element := range event.Elements(value, room[:0]) {
		var err error
		if found, err = r.appendInstance(found, stringValue(element)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// appendInstance appends the instance that a name names: its id, or its ARN, which has to
// lie where the event says that it is from.
func (r *eventReader) appendInstance(found [][]byte, name []byte) ([][]byte, error) {
	if isInstance(name) {
		return append(found, name), nil
	}
	arn, ok := bytes.CutPrefix(name, []byte("arn:"))
	if !ok {
		return found, nil
	}
	_, arn, _ = bytes.Cut(arn, colon) // the partition
	service, arn, _ := bytes.Cut(arn, colon)
	place, arn, _ := bytes.Cut(arn, colon)
	id, isOne := bytes.CutPrefix(arn[bytes.LastIndexByte(arn, ':')+1:], instancePrefix)
	if string(service) != "ec2" || !isOne || !isInstance(id) {
		return found, nil
	}
	owner, _, _ := bytes.Cut(arn, colon)
	if named, isOne := bytes.CutPrefix(owner, instancePrefix); isOne && bytes.Equal(named, id) {
		owner = nil // The spot warning's ARN has no account.
	}
	return append(found, id), r.checkLocation(name, place, owner)
}

// checkLocation compares where an ARN lies with what the event says. The spot warning's
// has a zone in the place of the region.
func (r *eventReader) checkLocation(name, place, owner []byte) error {
	said, by := r.region, r.account
	if len(place) > 0 && len(said) > 0 && !bytes.HasPrefix(place, said) || len(owner) > 0 && len(by) > 0 && !bytes.Equal(owner, by) {
		return r.poisonError("resource %q is not of account %s in %s", truncateText(string(name)), by, said)
	}
	return nil
}
