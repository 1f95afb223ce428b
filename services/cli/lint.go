package cli

import (
	"github.com/spf13/cobra"
)

func lintCommand(env Env) *cobra.Command {
	var flags convertFlags
	cmd := &cobra.Command{
		Use:   "lint -f FILE...",
		Short: "Name mistakes and older versions in manifests and values",
		Long: "Lint reads manifests, values of Karpenter's or Joist's chart and node groups, and prints what `joist convert` would\n" +
			"change, the mistakes that it cannot repair, and valid values that are probably mistakes, such as placeholders. Each\n" +
			"line has the file, the line and the remedy. It changes nothing.\n\n" +
			"Exit codes: 0 no findings, 2 findings, 1 an error.",
		Example: "  joist lint -f karpenter/\n" +
			"  kubectl get nodepools,ec2nodeclasses -o yaml | joist lint -f - -o json",
		Args: rejectArgument("joist lint -f "),
		RunE: func(cmd *cobra.Command, _ []string) error { return runLint(cmd, env, flags) },
	}
	addInputFlags(cmd, &flags)
	formatFlag(cmd, &flags.format, "text", "json")
	return cmd
}

func runLint(cmd *cobra.Command, env Env, flags convertFlags) error {
	result, err := convertInputs(cmd, env, flags, true)
	if err != nil {
		return err
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), newConversion(result, false))
	} else {
		printRemarks(cmd.OutOrStdout(), result.Remarks)
	}
	if err == nil && len(result.Remarks) > 0 {
		return errChanges
	}
	return err
}
