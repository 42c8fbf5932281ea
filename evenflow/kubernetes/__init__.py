"""`evenflow k8s`: the resources of a job on Kubernetes, with KubeRay, and what runs in its pods."""
