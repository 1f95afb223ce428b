package karpenter

// MetadataOptions expose the instance metadata service.
type MetadataOptions struct {
	// Whether the service is enabled.
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// Whether the service is also available over IPv6.
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// The maximum number of network hops of a token response; with 1, containers with their own network
	// cannot use the service.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// Whether requests must have a session token (IMDSv2).
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum:={required,optional}
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// CPUOptions set up the processor.
type CPUOptions struct {
	// Whether virtual machines can run in the instance. If it is enabled, only instance types that support it
	// are used.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}

// NestedVirtualizationEnabled reports whether virtual machines can run in instances of the class.
func (c *EC2NodeClass) NestedVirtualizationEnabled() bool {
	options := c.Spec.CPUOptions
	return options != nil && options.NestedVirtualization != nil && *options.NestedVirtualization == "enabled"
}

// EnclavesEnabled reports whether Nitro Enclaves can run in instances of the class.
func (c *EC2NodeClass) EnclavesEnabled() bool {
	return c.Spec.EnclaveOptions != nil && c.Spec.EnclaveOptions.Enabled
}

// EnclaveOptions set up Nitro Enclaves.
type EnclaveOptions struct {
	// Whether enclaves can run in the instance. If it is true, only instance types that support them are used.
	// +required
	Enabled bool `json:"enabled"`
}
