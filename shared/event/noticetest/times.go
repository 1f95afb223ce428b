package noticetest

import (
	"time"
)

// times adds variants of the event's own time (rule 3).
func (c *corpus) times(b base) {
	at := func(name string, t time.Time, deadline time.Duration, want ExpectedResult) {
		c.written(b, name, t.Format(time.RFC3339Nano), deadline, want)
	}
	// A time in the future counts as the queue's timestamp.
	for _, ahead := range []time.Duration{0, time.Second, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		at("said "+ahead.String()+" after the queue's stamp", c.sent.Add(ahead), notice, Act)
	}
	c.written(b, "said in the year 9999", "9999-12-31T23:59:59Z", notice, Act)
	for _, ago := range []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 9 * time.Minute} {
		at("said "+ago.String()+" before the queue's stamp", c.sent.Add(-ago), notice-ago, Act)
	}
	// A notice is valid for ten minutes, and the termination of an instance for an hour.
	want := Stale
	if b.instances[0] == Ended {
		want = Act
	}
	for _, ago := range []time.Duration{11 * time.Minute, 50 * time.Minute} {
		at("said "+ago.String()+" before the queue's stamp", c.sent.Add(-ago), notice-ago, want)
	}
	for _, ago := range []time.Duration{61 * time.Minute, 6 * time.Hour, 30 * 24 * time.Hour} {
		at("said "+ago.String()+" before the queue's stamp", c.sent.Add(-ago), 0, Stale)
	}
	// No message is in transit for longer than a month, so such a time cannot be AWS's and the queue's timestamp
	// counts.
	for _, text := range []string{"1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1999-12-31T23:59:59+00:00"} {
		c.written(b, "said at "+text, text, notice, Act)
	}
	at("said 32 days before the queue's stamp", c.sent.Add(-32*24*time.Hour), notice, Act)
	at("said in another zone", c.sent.Add(-age).In(time.FixedZone("", 14*60*60)), notice-age, Act)
	at("said in a zone of half hours", c.sent.Add(-age).In(time.FixedZone("", -9*60*60-30*60)), notice-age, Act)
	at("said half a second before the queue's stamp", c.sent.Add(-500*time.Millisecond), notice-500*time.Millisecond, Act)
	said := c.sent.Add(-age)
	for _, odd := range []named{
		{"without a zone", said.Format("2006-01-02T15:04:05")}, {"with a blank for the T", said.Format("2006-01-02 15:04:05Z07:00")},
		{"without a time", said.Format(time.DateOnly)}, {"without a date", said.Format(time.TimeOnly)}, {"as mail writes it", said.Format(time.RFC1123)},
		{"without hyphens", said.Format("20060102T150405Z")}, {"in seconds since 1970", "1795176000"}, {"in a leap second", said.Format("2006-01-02T15:04:60Z")},
		{"at 24 o'clock", said.Format("2006-01-02T24:00:00Z")}, {"on a day that no month has", "2026-02-30T12:00:00Z"}, {"in the year 10000", "10000-01-01T00:00:00Z"},
		{"never", "never"}, {"with a blank behind", said.Format(time.RFC3339) + " "}, {"in a zone of 99 hours", said.Format("2006-01-02T15:04:05+99:00")},
	} {
		c.written(b, "said "+odd.name, odd.text, notice, Act)
	}
}

// written adds the event with the given text as its time.
func (c *corpus) written(b base, name, text string, deadline time.Duration, want ExpectedResult) {
	c.as(want, b.due(deadline), name, b.event.with("time", quote(text)))
}

// reservations adds variants of the termination time of a reservation's instance (rule 3).
func (c *corpus) reservations() {
	for _, typ := range []string{reservationType, interruptibleType} {
		b := c.reservation(typ)
		for _, end := range []struct {
			name, text string
			deadline   time.Duration
		}{
			{"in half a minute", c.stamp(30 * time.Second), 30 * time.Second},
			{"in a minute", c.stamp(time.Minute), time.Minute},
			{"in a minute, in another zone", c.sent.Add(time.Minute).In(time.FixedZone("", 9*60*60)).Format(time.RFC3339), time.Minute},
			{"in five minutes", c.stamp(5 * time.Minute), notice - age},
			{"tomorrow", c.stamp(24 * time.Hour), notice - age},
			{"in the year 9999", "9999-12-31T23:59:59Z", notice - age},
			{"a minute ago", c.stamp(-time.Minute), notice - age},
			{"in 1970", "1970-01-01T00:00:00Z", notice - age},
			{"never", "never", notice - age},
			{"without a zone", c.sent.Add(time.Minute).Format("2006-01-02T15:04:05"), notice - age},
		} {
			c.add(b.due(end.deadline), "it ends "+end.name, b.inside(b.detail.with("instance-termination-time", quote(end.text))))
		}
	}
}

func (c *corpus) stamp(after time.Duration) string { return c.sent.Add(after).Format(time.RFC3339) }
