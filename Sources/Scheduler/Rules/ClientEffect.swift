/// The changes of a client's health by an answer that have a consequence of their own.
struct ClientEffect {
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    /// `true` if the answer ends an outage of the endpoint or a fault of the client. The grants that failed during it
    /// are tried again at once.
    var endsOutage = false

    /// Adds the effect of plain refreshes that were counted before this answer.
    mutating func add(_ other: ClientEffect) {
        breakerChange = breakerChange ?? other.breakerChange
        endsOutage = endsOutage || other.endsOutage
    }
}
