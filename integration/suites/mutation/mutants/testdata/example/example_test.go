package example

import "testing"

func TestAdd(t *testing.T) {
	q := &Queue{Limit: 4}
	share, ok := q.Add(1, -1, 2, 0, 3)
	if share != 0.25 || !ok || len(q.Items) != 2 || q.dropped != 1 {
		t.Errorf("Add = %v, %v: %+v", share, ok, q)
	}
	if _, ok := q.Add(make([]int, 6)...); ok {
		t.Error("6 items were added")
	}
	if _, ok := q.Add(make([]int, 100)...); !ok {
		t.Error("100 items were not added")
	}
}

func TestSum(t *testing.T) {
	if sum := Sum([]int{1, 2, 4}, 2); sum != 3 {
		t.Errorf("Sum = %d, want 3", sum)
	}
}
