"""What a client decides: who leads, what to fetch, what to send, when to try again.

Rule: this room decides and returns. Time, randomness and the state of the cluster come in as
arguments; nothing here sleeps, opens a socket or starts a thread, so a test turns the clock by
hand. Carrying a decision out is the business of `engine`.
"""
