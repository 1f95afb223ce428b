package policy

// ReadPriceLimit reads PriceLimit alone, in US dollars an hour; nil is no limit. Who
// launches nodes asks for nothing else: whatever is wrong with other annotations
// does not say that nodes may cost more, and does not say that none may come.
func ReadPriceLimit(annotations map[string]string) (*float64, error) {
	text, limited := annotations[PriceLimit]
	if !limited {
		return nil, nil
	}
	p, err := Read(map[string]string{PriceLimit: text})
	return p.PriceLimit, err
}
