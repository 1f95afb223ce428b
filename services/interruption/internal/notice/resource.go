package notice

import (
	"bytes"

	"github.com/joist-autoscaler/joist/shared/event"
)

// The form of an instance ID. Old ids have 8 hexadecimal digits, current ones 17.
const (
	idPrefix  = "i-"
	minDigits = 8
	maxDigits = 32
)

// Parts of an instance's ARN.
var (
	colon = []byte(":")
	// instancePrefix precedes the ID.
	instancePrefix = []byte("instance/")
)

// isInstance reports whether the text is an instance ID.
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

// readInstance appends the instance of an event about one instance. It returns fault.Poison
// if the event's resources name another one.
func (r *eventReader) readInstance(into []string) ([]string, error) {
	id, err := r.requiredText(detailInstanceID)
	if err != nil {
		return nil, err
	}
	if !isInstance(id) {
		return nil, r.poisonError("instance-id %q is not an instance ID", truncateText(string(id)))
	}
	var buffer [4][]byte
	found, err := r.resourceInstances(buffer[:0])
	if err != nil {
		return nil, err
	}
	for _, other := range found {
		if !bytes.Equal(other, id) {
			return nil, r.poisonError("instance-id is %s, but the resources name %s", id, other)
		}
	}
	return append(into, string(id)), nil
}

// resourceInstances appends the instances among the event's resources, which are a list or
// a single string. It ignores other resources.
func (r *eventReader) resourceInstances(found [][]byte) ([][]byte, error) {
	value := r.header[headerResources]
	if text := stringValue(value); len(text) > 0 {
		return r.appendInstance(found, text)
	}
	var buffer [4][]byte
	for _, element := range event.SplitJSON(value, '[', buffer[:0]) {
		var err error
		if found, err = r.appendInstance(found, stringValue(element)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// appendInstance appends the instance that an ID or an ARN names. It returns fault.Poison
// for an ARN of another account or region than the event's instances.
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
	region, arn, _ := bytes.Cut(arn, colon)
	id, ok := bytes.CutPrefix(arn[bytes.LastIndexByte(arn, ':')+1:], instancePrefix)
	if string(service) != "ec2" || !ok || !isInstance(id) {
		return found, nil
	}
	account, _, _ := bytes.Cut(arn, colon)
	if resource, ok := bytes.CutPrefix(account, instancePrefix); ok && bytes.Equal(resource, id) {
		account = nil // The ARN in a spot warning has no account.
	}
	return append(found, id), r.checkLocation(name, region, account)
}

// checkLocation compares the region and account of an ARN with those of the event's instances. The ARN
// in a spot warning has a zone instead of the region.
func (r *eventReader) checkLocation(name, region, account []byte) error {
	// An event without a region has an empty one, with which every region begins.
	if len(region) > 0 && !bytes.HasPrefix(region, r.region) ||
		len(account) > 0 && len(r.account) > 0 && !bytes.Equal(account, r.account) {
		return r.poisonError("resource %q is not in account %s in %s", truncateText(string(name)), r.account, r.region)
	}
	return nil
}
