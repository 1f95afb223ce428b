package catalog

// Kind is the folder of catalogue documents.
const Kind = "catalogues"
