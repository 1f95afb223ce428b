package launchspec

import "github.com/joist-autoscaler/joist/shared/cloud"

// TemplateName is the name that a launch template of the content has.
func TemplateName(template cloud.Template) string {
	name, err := templateName(template)
	if err != nil {
		panic(err)
	}
	return name
}
