package mutants

import "go/token"

// helpers are the functions of selection that replace arithmetic operators.
var helpers = map[token.Token]string{
	token.ADD: "mutantAdd", token.SUB: "mutantSubtract", token.MUL: "mutantMultiply", token.QUO: "mutantDivide", token.REM: "mutantRemainder",
}

// The variables with which a test binary is started.
const (
	// SelectedVariable has the number of the selected mutant.
	SelectedVariable = "JOIST_MUTANT"
	// reachedVariable has the name of a file to which the numbers of mutants that are reached are appended, one a line.
	reachedVariable = "JOIST_MUTANTS_REACHED"
)

// selection is added to each changed package. A mutant that is reached for the first time is written to a file, so that later
// only the tests that reach a mutant are run with it.
const selection = `package PACKAGE

import (
	mutantos "os"
	mutantstrconv "strconv"
	mutantatomic "sync/atomic"
)

var (
	mutantSelected = mutantNumber()
	mutantFile     = mutantOpen()
	mutantSeen     [COUNT]mutantatomic.Bool
)

func mutantNumber() int {
	number, _ := mutantstrconv.Atoi(mutantos.Getenv("JOIST_MUTANT"))
	return number
}

func mutantOpen() *mutantos.File {
	name := mutantos.Getenv("JOIST_MUTANTS_REACHED")
	if name == "" {
		return nil
	}
	file, err := mutantos.OpenFile(name, mutantos.O_APPEND|mutantos.O_WRONLY|mutantos.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	return file
}

func mutantOn(number int) bool {
	if mutantFile != nil {
		mutantReach(number)
	}
	return number == mutantSelected
}

func mutantReach(number int) {
	if !mutantSeen[number-FIRST].Swap(true) {
		_, _ = mutantFile.WriteString(mutantstrconv.Itoa(number) + "\n")
	}
}

type mutantNumeric interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantChoice[T any](number int, original, mutant T) T {
	if mutantOn(number) {
		return mutant
	}
	return original
}

func mutantAdd[T mutantNumeric](number int, a, b T) T {
	if mutantOn(number) {
		return a - b
	}
	return a + b
}

func mutantSubtract[T mutantNumeric](number int, a, b T) T {
	if mutantOn(number) {
		return a + b
	}
	return a - b
}

func mutantMultiply[T mutantNumeric](number int, a, b T) T {
	if mutantOn(number) {
		return a / b
	}
	return a * b
}

func mutantDivide[T mutantNumeric](number int, a, b T) T {
	if mutantOn(number) {
		return a * b
	}
	return a / b
}

func mutantRemainder[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](number int, a, b T) T {
	if mutantOn(number) {
		return a * b
	}
	return a % b
}
`
