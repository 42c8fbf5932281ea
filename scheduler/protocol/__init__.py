"""Values that a job exchanges with the outside: effects, messages, requests, answers, manifests and reports."""
