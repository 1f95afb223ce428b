package memcloud

// Action is an API call by its IAM name.
type Action string

// The actions of the model.
const (
	CreateFleet            Action = "ec2:CreateFleet"
	RunInstances           Action = "ec2:RunInstances"
	CreateTemplate         Action = "ec2:CreateLaunchTemplate"
	DeleteTemplate         Action = "ec2:DeleteLaunchTemplate"
	DescribeTemplates      Action = "ec2:DescribeLaunchTemplates"
	DescribeInstances      Action = "ec2:DescribeInstances"
	DescribeStatus         Action = "ec2:DescribeInstanceStatus"
	DescribeSubnets        Action = "ec2:DescribeSubnets"
	DescribeSecurityGroups Action = "ec2:DescribeSecurityGroups"
	DescribeImages         Action = "ec2:DescribeImages"
	DescribeReservations   Action = "ec2:DescribeCapacityReservations"
	DescribeGroups         Action = "ec2:DescribePlacementGroups"
	TerminateInstances     Action = "ec2:TerminateInstances"
	RebootInstances        Action = "ec2:RebootInstances"
	CreateTags             Action = "ec2:CreateTags"
	GetParameter           Action = "ssm:GetParameter"
	DescribeCluster        Action = "eks:DescribeCluster"
	GetProfile             Action = "iam:GetInstanceProfile"
	ListProfiles           Action = "iam:ListInstanceProfiles"
	CreateProfile          Action = "iam:CreateInstanceProfile"
	DeleteProfile          Action = "iam:DeleteInstanceProfile"
	TagProfile             Action = "iam:TagInstanceProfile"
	AttachRole             Action = "iam:AddRoleToInstanceProfile"
	DetachRole             Action = "iam:RemoveRoleFromInstanceProfile"
)

// mutating are the writes, whose calls and responses can be lost.
var mutating = map[Action]bool{
	CreateFleet: true, CreateTemplate: true, DeleteTemplate: true,
	TerminateInstances: true, RebootInstances: true, CreateTags: true, CreateProfile: true,
	DeleteProfile: true, TagProfile: true, AttachRole: true, DetachRole: true,
}
