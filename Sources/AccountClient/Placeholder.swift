// Its parts follow.
