"""From layers to a task: listeners, scalar mixes, and the gradient back to the component."""
