// Package evaluator evaluates IAM policies offline: whether AWS would allow a principal's
// action on a resource. It is pure and reads the deployed JSON.
//
// It follows AWS's documentation:
//
//   - how policies combine, within an account and between two:
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
//   - condition operators, also for missing keys:
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
//   - keys and conditions with several values, and set operators:
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-logic-multiple-context-keys-or-values.html
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
//   - variables: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
//
// Unsupported operators, elements and principals are errors, never permissions. It
// evaluates identity policies, resource policies and trust policies. It ignores service
// control policies, permissions boundaries, session policies and endpoint policies, which
// can only remove permissions.
package evaluator
