package account

import (
	"net/http"
	"strings"
)

// cluster answers EKS calls about clusters.
func (s *Service) cluster(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, clusters), "/", 3)
	name, kind, rest := parts[0], "", ""
	if len(parts) > 1 {
		kind = parts[1]
	}
	if len(parts) > 2 {
		rest = parts[2]
	}
	switch kind {
	case "access-entries":
		s.entry(w, name, rest)
	case "pod-identity-associations":
		s.pods(w, r, name, rest)
	default:
		write(w, http.StatusOK, map[string]any{"cluster": map[string]any{
			"name": name, "status": "ACTIVE", "accessConfig": map[string]string{"authenticationMode": s.Mode},
			"identity": map[string]any{"oidc": map[string]string{"issuer": s.Issuer}},
		}})
	}
}

// entry answers DescribeAccessEntry.
func (s *Service) entry(w http.ResponseWriter, cluster, principal string) {
	kind, there := s.Entries[principal]
	if !there {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "The specified principalArn could not be found.")
		return
	}
	write(w, http.StatusOK, map[string]any{"accessEntry": map[string]string{"clusterName": cluster, "principalArn": principal, "type": kind}})
}

// pods answers ListPodIdentityAssociations, which returns no roles, and
// DescribePodIdentityAssociation. An association's id is a-namespace-account.
func (s *Service) pods(w http.ResponseWriter, r *http.Request, cluster, id string) {
	if s.Denied["ListPodIdentityAssociations"] {
		refuse(w, http.StatusForbidden, "AccessDeniedException", "not authorized to perform: eks:ListPodIdentityAssociations")
		return
	}
	list := []map[string]string{}
	for key, role := range s.Pods {
		namespace, account, _ := strings.Cut(key, "/")
		one := map[string]string{"clusterName": cluster, "namespace": namespace, "serviceAccount": account, "associationId": "a-" + namespace + "-" + account}
		if id == one["associationId"] {
			one["roleArn"] = role
			write(w, http.StatusOK, map[string]any{"association": one})
			return
		}
		if asked := r.URL.Query(); id == "" && asked.Get("namespace") == namespace && asked.Get("serviceAccount") == account {
			list = append(list, one)
		}
	}
	if id != "" {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "No association "+id)
		return
	}
	write(w, http.StatusOK, map[string]any{"associations": list})
}
