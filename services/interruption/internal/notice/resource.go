package notice

import (
	"encoding/json"
	"regexp"
	"strings"
)

// texts is a list of strings that may also be written as one string.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	*t = many
	return nil
}

// instanceID is the shape of an instance's id: eight digits of old, seventeen
// of late.
var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,32}$`)

// instance checks that the id of the detail is one, and that the event's first
// resource is the ARN of the same instance, in the event's account and region.
// An event in which the two disagree was not written by AWS.
func (h header) instance(id string) error {
	if !instanceID.MatchString(id) {
		return h.poison("instance-id %q is none", short(id))
	}
	if len(h.Resources) == 0 {
		return h.poison("it names no resource")
	}
	parts := strings.Split(h.Resources[0], ":")
	switch {
	case len(parts) < 5 || parts[0] != "arn" || parts[2] != "ec2":
		return h.poison("resource %q is no ARN of EC2", short(h.Resources[0]))
	case parts[len(parts)-1] != "instance/"+id:
		return h.poison("resource %q is not instance %s", short(h.Resources[0]), id)
	}
	return h.place(parts)
}

// place compares where the ARN lies. The spot warning's has a zone in the place
// of the region, and no account.
func (h header) place(parts []string) error {
	switch {
	case len(parts) == 5 && strings.HasPrefix(parts[3], h.Region):
		return nil
	case len(parts) == 6 && parts[3] == h.Region && parts[4] == h.Account:
		return nil
	default:
		return h.poison("resource %q is not of account %s in %s", short(h.Resources[0]), h.Account, h.Region)
	}
}
