package packing

const (
	// nearlyNothing counts as zero in a program, whose numbers are about one.
	nearlyNothing = 1e-9
	// exchangesMax ends a program that goes round in circles.
	exchangesMax = 1000
)

// program is a linear program of few unknowns x: their sum is to be as large as it
// can be while no x is negative and every cut a·x ≤ 1 holds. It is kept solved
// while cuts are added, each of which costs an exchange or two (the dual simplex
// method): to solve it anew for each would cost as many as there are cuts.
//
// What must not be negative, each x and what each cut leaves over, is written as a
// sum over n variables that are zero at present. So is the goal, and as it falls
// with each of these, it is the highest; what is negative is mended by exchanging it
// for one of them, the one that costs the goal least.
type program struct {
	// rows have their value first, and then their factors of the n variables.
	rows [][]float64
	goal []float64
	// arena is memory for rows, and pivot for one.
	arena, pivot []float64
}

// newProgram begins with every x at its most; cuts that imply that must follow.
func newProgram(most []float64) *program {
	n := len(most)
	p := &program{rows: make([][]float64, 0, n+cutsMax)}
	p.goal, p.pivot = p.take(n), p.take(n)
	for i, x := range most {
		row := p.take(n)
		row[0], row[1+i], p.goal[1+i] = x, -1, -1
		p.rows = append(p.rows, row)
	}
	return p
}

// take gives a row of zeroes.
func (p *program) take(n int) []float64 {
	if len(p.arena) == 0 {
		p.arena = make([]float64, 16*(n+1))
	}
	out := p.arena[: n+1 : n+1]
	p.arena = p.arena[n+1:]
	return out
}

// cut adds a·x ≤ 1.
func (p *program) cut(a []float64) {
	row := p.take(len(a))
	row[0] = 1
	for i, factor := range a {
		for j, of := range p.rows[i] {
			row[j] -= float64(factor * of)
		}
	}
	p.rows = append(p.rows, row)
}

// x is the i-th unknown.
func (p *program) x(i int) float64 { return max(0, p.rows[i][0]) }

// solve mends what is negative, the most negative first.
func (p *program) solve() {
	for range exchangesMax {
		worst := 0
		for i, row := range p.rows {
			if row[0] < p.rows[worst][0] {
				worst = i
			}
		}
		at := p.cheapest(p.rows[worst])
		if p.rows[worst][0] > -nearlyNothing || at == 0 {
			return
		}
		p.exchange(p.rows[worst], at)
	}
}

// cheapest is the variable that raises a row at the least cost for the goal; 0 when
// none does.
func (p *program) cheapest(row []float64) (at int) {
	least := 0.0
	for j := 1; j < len(row); j++ {
		if row[j] > nearlyNothing && (at == 0 || -p.goal[j] < float64(least*row[j])) {
			at, least = j, -p.goal[j]/row[j]
		}
	}
	return at
}

// exchange makes what a row stands for one of the variables that are zero, in the
// place of the j-th.
func (p *program) exchange(row []float64, j int) {
	copy(p.pivot, row)
	for _, other := range p.rows {
		p.replace(other, j)
	}
	p.replace(p.goal, j)
}

func (p *program) replace(row []float64, j int) {
	by := row[j] / p.pivot[j]
	if by == 0 {
		return
	}
	for i, factor := range p.pivot {
		row[i] -= float64(by * factor)
	}
	row[j] = by
}
