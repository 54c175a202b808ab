"""Commands that look at a cluster and steer Sickbay in it. Each acts as the person whose kubeconfig it uses."""
