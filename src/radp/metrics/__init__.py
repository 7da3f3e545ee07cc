"""nuPlan's closed-loop metrics on rollouts, and the score made of them."""
