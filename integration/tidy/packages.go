package tidy

import (
	"cmp"
	"go/parser"
	"go/token"
	"path"
	"slices"
)

// PackageDocs finds packages that do not say their idea.
func PackageDocs(files []File) []Finding {
	documented := map[string]bool{}
	for _, file := range files {
		if !file.isGo() || file.isData() {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file.Path, file.Text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			continue // the compiler says it better
		}
		dir := path.Dir(file.Path)
		documented[dir] = documented[dir] || syntax.Doc.Text() != ""
	}
	var found []Finding
	for dir, said := range documented {
		if !said {
			found = append(found, Finding{dir, 0, "the package has no doc: say its idea and its invariants above one package clause"})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return found
}
