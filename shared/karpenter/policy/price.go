package policy

// ReadPriceLimit reads only PriceLimit, in US dollars per hour; nil is no limit. Errors in other annotations must
// neither raise the limit nor block launches.
func ReadPriceLimit(annotations map[string]string) (*float64, error) {
	text, limited := annotations[PriceLimit]
	if !limited {
		return nil, nil
	}
	p, err := Read(map[string]string{PriceLimit: text})
	return p.PriceLimit, err
}
