package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// hostileTenant is the attacker that may only create pods. The other attackers are services.
const hostileTenant = "tenant"

// Attackers lists the attackers of hostile seeds.
var Attackers = []string{"planner", "disruption", "interruption", "catalog", "launcher", "watcher", "lifecycle", hostileTenant}

// attacker sends what the rights of one service, or of a tenant, allow. The genuine service runs too.
type attacker struct {
	*sim
	name   string
	rights *hostileRights
	random *rand.Rand
	// kinds are the actions of this seed; one seed uses some of them, so that each has quiet phases of the others.
	kinds []hostileAction
	next  time.Time
	ends  time.Time
	// recorded are messages that services have handled, by type, as an attacker may have captured them.
	recorded map[event.Type][][]byte
	// sent are the messages that AWS accepted from the attacker, by body. ended are the instances that its own calls to
	// EC2 terminated.
	sent  map[string]*sentMessage
	ended map[string]bool
	pods  int
	// plant breaks a promise once, for the tests of the checkers.
	plant func(*attacker)
}

// sentMessage is a message of the attacker and its fate.
type sentMessage struct {
	source, kind string
	// handled is whether a service accepted it; final is the last disposition's action, with its kind and reason.
	handled              bool
	action, kindOfReason string
	reason               string
	expires              time.Time
}

// hostileAction is one kind of attack.
type hostileAction struct {
	name string
	do   func(*attacker)
}

func newAttacker(s *sim, name string, seed int64) (*attacker, error) {
	r, err := readHostileRights()
	if err != nil {
		return nil, err
	}
	dice := rand.New(rand.NewPCG(uint64(seed), 0x686f7374)) //nolint:gosec // a seeded source: a run must be repeatable
	a := &attacker{sim: s, name: name, rights: r, random: dice, recorded: map[event.Type][][]byte{}, sent: map[string]*sentMessage{}, ended: map[string]bool{}}
	all := serviceActions
	if name == hostileTenant {
		all = tenantActions
	}
	for _, action := range all {
		if dice.IntN(3) > 0 {
			a.kinds = append(a.kinds, action)
		}
	}
	if len(a.kinds) == 0 {
		a.kinds = all
	}
	return a, nil
}

var serviceActions = []hostileAction{
	{"fact", (*attacker).publishFact}, {"fact", (*attacker).publishFact}, {"fact", (*attacker).publishFact},
	{"fact of another service", (*attacker).publishForeignFact}, {"command", (*attacker).sendCommand}, {"command", (*attacker).sendCommand},
	{"replay", (*attacker).replayMessage}, {"flood", (*attacker).floodQueue}, {"malformed", (*attacker).sendMalformed}, {"document", (*attacker).writeDocument},
	{"object", (*attacker).writeObject}, {"steal", (*attacker).stealMessages}, {"ec2", (*attacker).callEC2},
}

// AttackKinds lists each attacker's kinds of attack, as the histogram names them. A service without facts, such as
// the watcher, tries to publish those of others.
func AttackKinds() []string {
	var out []string
	for _, name := range Attackers {
		actions := serviceActions
		if name == hostileTenant {
			actions = tenantActions
		}
		for _, action := range actions {
			out = append(out, name+": "+action.name)
		}
	}
	return out
}

// attack runs the next action when it is due.
func (a *attacker) attack(now time.Time) {
	if now.Before(a.next) || !now.Before(a.ends) {
		return
	}
	if a.plant != nil && now.Add(attackDuration/2).After(a.ends) {
		a.plant(a)
		a.plant = nil
	}
	a.next = now.Add(time.Duration(100+a.random.IntN(1700)) * time.Millisecond)
	action := a.kinds[a.random.IntN(len(a.kinds))]
	a.count(action.name)
	action.do(a)
}

// count adds to the histogram.
func (a *attacker) count(what string) { a.faults["attack "+a.name+": "+what]++ }

// pick returns a random item; the zero value of an empty list.
func pick[T any](random *rand.Rand, list []T) T {
	if len(list) == 0 {
		var zero T
		return zero
	}
	return list[random.IntN(len(list))]
}

// publish puts an entry on the bus, if the policies allow it.
func (a *attacker) publish(source, detailType string, detail []byte) {
	if !a.rights.allowsFact(a.name, source, detailType) {
		a.count("refused by IAM")
		return
	}
	err := a.world.Bus.Send(context.Background(), queue.Outgoing{Source: source, Type: detailType, Body: detail})
	a.recordSent(detail, err)
}

// send sends a message to the queue of a service or to a DLQ ("planner-dead"), if the policies allow it.
func (a *attacker) send(to string, body []byte) {
	if !a.rights.allowsSend(a.name, to) {
		a.count("refused by IAM")
		return
	}
	q, ok := a.world.Broker.FindQueue(a.world.Cluster + "-" + to)
	if !ok {
		return
	}
	err := q.Send(context.Background(), queue.Outgoing{Source: "joist/" + a.name, Type: "hostile", Body: body})
	a.recordSent(body, err)
}

// recordSent remembers an accepted message. AWS refuses some, for their size or characters.
func (a *attacker) recordSent(body []byte, err error) {
	if err != nil {
		if !fault.Is(err, fault.Invalid) {
			a.checker.reportViolation("models return no errors", "sending a hostile message: %v", err)
		}
		a.count("refused by AWS")
		return
	}
	a.count("sent")
	if key := messageKey(body); a.sent[key] == nil {
		m := &sentMessage{}
		var head struct {
			Source, Type string
			Expires      time.Time
		}
		if json.Unmarshal(body, &head) == nil {
			m.source, m.kind, m.expires = head.Source, head.Type, head.Expires
		}
		a.sent[key] = m
	}
}

// messageKey identifies a message by its text. The bus compacts white space.
func messageKey(body []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, body) != nil {
		return string(event.DigestOf(body))
	}
	return string(event.DigestOf(out.Bytes()))
}

// isRepeat reports whether a genuine service sent the same text before: the attacker only repeats it.
func (a *attacker) isRepeat(body []byte) bool {
	for _, text := range a.recorded[typeOf(body)] {
		if bytes.Equal(text, body) {
			return true
		}
	}
	return false
}

func typeOf(body []byte) event.Type {
	var head struct{ Type event.Type }
	_ = json.Unmarshal(body, &head)
	return head.Type
}

// observe records a handled message: those of others can be replayed, those of the attacker are checked.
func (a *attacker) observe(actor string, m message, err error) {
	if sent := a.sent[messageKey(m.Body)]; sent != nil {
		if err == nil {
			a.checkForgery(actor, m, sent)
		}
		return
	}
	if kind := typeOf(m.Body); kind != "" && len(a.recorded[kind]) < 20 {
		a.recorded[kind] = append(a.recorded[kind], bytes.Clone(m.Body))
	}
}
