package event

import (
	"errors"
	"fmt"
)

// RebootRequested requests the reboot of an instance. Lifecycle persists the node's boot ID before it sends this, and
// sends it again until the reboot is settled. EC2 reboots an instance for each request, so a duplicate may reboot it
// again: until every request has expired, lifecycle keeps pods off the node.
type RebootRequested struct {
	InstanceID string `json:"instanceId"`
	Claim      string `json:"claim"`
	ClaimUID   string `json:"claimUid"`
	// Operation is the same for all requests of one reboot.
	Operation string `json:"operation"`
}

func (RebootRequested) EventType() Type { return RebootRequestedType }

// Key is the claim, the instance and the operation.
func (b RebootRequested) Key() []string   { return []string{b.ClaimUID, b.InstanceID, b.Operation} }
func (b RebootRequested) Subject() string { return "instance/" + b.InstanceID }

// Validate requires an instance, its claim and an operation.
func (b RebootRequested) Validate() error {
	if b.InstanceID == "" || b.Claim == "" || b.ClaimUID == "" {
		return errors.New("instanceId, claim and claimUid are needed")
	}
	return checkOperation(b.Operation)
}

// RebootSettled is the result of a request to reboot an instance: EC2 accepted it, or never will.
type RebootSettled struct {
	InstanceID string `json:"instanceId"`
	Claim      string `json:"claim"`
	ClaimUID   string `json:"claimUid"`
	// Operation is that of the request.
	Operation string `json:"operation"`
	// Refusal is why EC2 will not reboot the instance; empty if it accepted the request.
	Refusal string `json:"refusal,omitempty"`
}

func (RebootSettled) EventType() Type { return RebootSettledType }

// Key is the claim, the operation and the refusal.
func (b RebootSettled) Key() []string   { return []string{b.ClaimUID, b.Operation, b.Refusal} }
func (b RebootSettled) Subject() string { return "instance/" + b.InstanceID }

// Validate requires an instance, its claim and an operation, and limits the refusal, which lifecycle writes on the claim.
func (b RebootSettled) Validate() error {
	switch {
	case b.InstanceID == "" || b.Claim == "" || b.ClaimUID == "":
		return errors.New("instanceId, claim and claimUid are needed")
	case len(b.Refusal) > maxRefusalMessage:
		return fmt.Errorf("a refusal of %d bytes exceeds the limit of %d", len(b.Refusal), maxRefusalMessage)
	default:
		return checkOperation(b.Operation)
	}
}

// maxOperation is more than a UID, a time and a boot ID need.
const maxOperation = 512

func checkOperation(operation string) error {
	if operation == "" || len(operation) > maxOperation {
		return fmt.Errorf("an operation of 1 to %d bytes is needed", maxOperation)
	}
	return nil
}
