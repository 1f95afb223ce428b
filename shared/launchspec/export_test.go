package launchspec

import "github.com/joist-autoscaler/joist/shared/cloud"

// TemplateName returns the name of a launch template with the content.
func TemplateName(template cloud.Template) string {
	name, err := templateName(template)
	if err != nil {
		panic(err)
	}
	return name
}
