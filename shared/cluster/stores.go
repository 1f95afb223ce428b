package cluster

// Stores are the stores of several kinds. They implement Feed, so that code that reads a cache also
// reads objects that were listed once. A kind without a store has no objects.
type Stores map[Kind]*Store

var _ Feed = Stores{}

// NewStores returns empty stores of the kinds, which apply the trims.
func NewStores(kinds []Kind, trims Trims) Stores {
	out := Stores{}
	for _, kind := range kinds {
		out[kind] = NewStore(kind, trims[kind])
	}
	return out
}

// List implements Cache.
func (s Stores) List(kind Kind) []Object {
	if store, ok := s[kind]; ok {
		return store.List()
	}
	return nil
}

// ListBy implements Cache.
func (s Stores) ListBy(kind Kind, index Index, value string) []Object {
	if store, ok := s[kind]; ok {
		return store.ListBy(index, value)
	}
	return nil
}

// Get implements Cache.
func (s Stores) Get(kind Kind, key Key) (Object, bool) {
	if store, ok := s[kind]; ok {
		return store.Get(key)
	}
	return nil, false
}

// Synced implements Cache.
func (s Stores) Synced() bool {
	for _, store := range s {
		if !store.Synced() {
			return false
		}
	}
	return true
}

// TakeChanges implements Feed.
func (s Stores) TakeChanges(kind Kind) Changed {
	if store, ok := s[kind]; ok {
		return store.TakeChanges()
	}
	return Changed{}
}
