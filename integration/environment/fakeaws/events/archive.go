package events

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// archive is a named archive. Every bus of the model stores its events; an archive
// exposes them in the API.
type archive struct {
	bus  *memqueue.Bus
	days int
}

// playback is a replay. It takes Pace on the broker's clock and delivers all events at
// its end, so a cancelled one has delivered none.
type playback struct {
	name, source, state    string
	bus                    *memqueue.Bus
	rules                  []string
	from, to, begun, ended time.Time
}

// Pace is the duration of a replay.
const Pace = 300 * time.Millisecond

func (s *Service) describeRule(_ *http.Request, in struct{ Name, EventBusName string }) (any, error) {
	bus, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	r, ok := find(bus, in.Name)
	if !ok {
		return nil, awsjson.Errorf("ResourceNotFoundException", "Rule %s does not exist on EventBus %s.", in.Name, bus.Name())
	}
	return rule{Name: r.Name, Arn: arnOf(bus, r.Name), EventPattern: r.Pattern, State: "ENABLED", EventBusName: bus.Name()}, nil
}

func (s *Service) createArchive(_ *http.Request, in struct {
	ArchiveName, EventSourceArn string
	RetentionDays               int
}) (any, error) {
	bus, err := s.bus(in.EventSourceArn)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.archives[in.ArchiveName] != nil {
		return nil, awsjson.Errorf("ResourceAlreadyExistsException", "Archive %s already exists.", in.ArchiveName)
	}
	s.archives[in.ArchiveName] = &archive{bus: bus, days: in.RetentionDays}
	return map[string]string{"ArchiveArn": arnPrefix + "archive/" + in.ArchiveName, "State": "ENABLED"}, nil
}

func (s *Service) describeArchive(_ *http.Request, in struct{ ArchiveName string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.archives[in.ArchiveName]
	if a == nil {
		return nil, awsjson.Errorf("ResourceNotFoundException", "Archive %s does not exist.", in.ArchiveName)
	}
	return map[string]any{
		"ArchiveName": in.ArchiveName, "ArchiveArn": arnPrefix + "archive/" + in.ArchiveName, "State": "ENABLED",
		"EventSourceArn": arnPrefix + "event-bus/" + a.bus.Name(), "RetentionDays": a.days, "EventCount": a.bus.Stats().Taken,
	}, nil
}

func (s *Service) startReplay(_ *http.Request, in struct {
	ReplayName, EventSourceArn   string
	EventStartTime, EventEndTime float64
	Destination                  struct {
		Arn        string
		FilterArns []string
	}
}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.archives[strings.TrimPrefix(in.EventSourceArn, arnPrefix+"archive/")]
	switch {
	case a == nil:
		return nil, awsjson.Errorf("ResourceNotFoundException", "Archive %s does not exist.", in.EventSourceArn)
	case s.replays[in.ReplayName] != nil:
		return nil, awsjson.Errorf("ResourceAlreadyExistsException", "Replay %s already exists.", in.ReplayName)
	case in.Destination.Arn != arnPrefix+"event-bus/"+a.bus.Name():
		return nil, awsjson.Errorf("ValidationException", "The destination must be the event bus of the archive.")
	}
	p := &playback{name: in.ReplayName, source: in.EventSourceArn, state: "RUNNING", bus: a.bus, from: at(in.EventStartTime), to: at(in.EventEndTime), begun: s.broker.Now()}
	for _, arn := range in.Destination.FilterArns {
		name := arn[strings.LastIndex(arn, "/")+1:]
		if _, ok := find(a.bus, name); !ok || arn != arnOf(a.bus, name) {
			return nil, awsjson.Errorf("ResourceNotFoundException", "Rule %s does not exist.", arn)
		}
		p.rules = append(p.rules, name)
	}
	s.replays[in.ReplayName] = p
	return map[string]any{"ReplayArn": arnPrefix + "replay/" + in.ReplayName, "State": "STARTING", "ReplayStartTime": seconds(p.begun)}, nil
}

func at(epoch float64) time.Time { return time.UnixMilli(int64(epoch * 1000)) }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// advance completes a replay whose time has passed. The caller holds the lock.
func (s *Service) advance(p *playback) error {
	if p.state != "RUNNING" || s.broker.Now().Sub(p.begun) < Pace {
		return nil
	}
	p.state, p.ended = "COMPLETED", s.broker.Now()
	_, err := p.bus.Replay(p.name, p.from, p.to, slices.Clone(p.rules)...)
	return err
}

// replay returns a replay with its current state. The caller holds the lock.
func (s *Service) replay(name string) (*playback, error) {
	p := s.replays[name]
	if p == nil {
		return nil, awsjson.Errorf("ResourceNotFoundException", "Replay %s does not exist.", name)
	}
	return p, s.advance(p)
}

func (s *Service) describeReplay(_ *http.Request, in struct{ ReplayName string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.replay(in.ReplayName)
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"ReplayName": p.name, "State": p.state, "EventSourceArn": p.source, "EventStartTime": seconds(p.from), "EventEndTime": seconds(p.to),
		"ReplayStartTime": seconds(p.begun),
	}
	if p.state == "COMPLETED" {
		out["EventLastReplayedTime"], out["ReplayEndTime"] = seconds(p.to), seconds(p.ended)
	}
	return out, nil
}

func (s *Service) cancelReplay(_ *http.Request, in struct{ ReplayName string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.replay(in.ReplayName)
	if err != nil {
		return nil, err
	}
	if p.state != "RUNNING" {
		return nil, awsjson.Errorf("IllegalStatusException", "Replay %s is %s.", p.name, p.state)
	}
	p.state = "CANCELLED"
	return map[string]string{"ReplayArn": arnPrefix + "replay/" + p.name, "State": "CANCELLING"}, nil
}
