// Package evaluator judges requests by IAM policies, offline: what AWS would answer
// to a principal who does an action to a resource. It is pure, and it reads the very
// JSON that is deployed.
//
// The rules are those of AWS' pages, which the code names where it follows them:
//
//   - how policies add up, within an account and between two:
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
//   - what a condition operator does, also to a key that is missing:
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
//   - several values, on either side, and the set operators:
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-logic-multiple-context-keys-or-values.html
//     https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
//   - variables: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
//
// What is not known here (an operator, an element, a form of principal) is an error
// and never a right. Identity policies, resource policies and roles' trust policies
// are judged; service control policies, permissions boundaries, session policies and
// endpoint policies can only take rights away, and are not.
package evaluator
