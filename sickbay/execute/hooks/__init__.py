"""What of the owner's runs around a step: Jobs from PodTemplates in Sickbay's own namespace, calls to endpoints."""
