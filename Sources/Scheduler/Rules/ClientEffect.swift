/// The changes of a client's health by an answer that have a consequence of their own.
struct ClientEffect {
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    var endsOutage = false
}
