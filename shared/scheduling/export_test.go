package scheduling

// FirstSteps is what the first effort at a batch takes, replans of it included, in
// the packer's steps.
func FirstSteps(batch Batch, stock Stock) int {
	var w *world
	return plan(&batch, stock, effort{}, afterthoughts, &w).steps
}
