package import Base
package import Storage

/// The state of one client id, as `status`, `/readyz`, the metrics and the status page show it.
package struct ClientStatus: Hashable, Sendable {
    package var id: String
    package var breaker = Breaker.State.closed(consecutiveFailures: 0, grants: [])
    /// The time since which the breaker is not closed.
    package var breakerSince: Timestamp?
    package var nextProbe: Duration?
    /// The number of requests per second that are allowed now.
    package var ceiling = 0.0
    package var isSlowed = false
    /// The remaining time of a pause that the endpoint asked for.
    package var pause: Duration?
    /// `true` in a wave of `invalid_grant`.
    package var isWave = false
    /// The time of the last successful refresh.
    package var lastSuccessAt: Timestamp?
    /// The kinds of answers without a token in the last day, that of the latest answer first.
    package var failures: [ClientFailure] = []

    /// Makes the state of a client id without a health.
    package init(id: String) {
        self.id = id
    }

    init(id: String, health: ClientHealth, pacer: Pacer, at now: BootInstant, wallClock: Timestamp) {
        self.id = id
        breaker = health.breaker.state
        breakerSince = breaker.opening.map { wallClock - (now - $0.since) }
        nextProbe =
            switch health.breaker.permits(at: now) {
            case .all: nil
            case .probeDue: .zero
            case .wait(let next): next - now
            }
        ceiling = pacer.ceiling(at: now)
        isSlowed = ceiling < pacer.maxRate
        pause = pacer.isPaused(at: now) ? pacer.limits.pausedUntil.map { $0 - now } : nil
        isWave = health.level(at: wallClock) == .wave
        lastSuccessAt = health.provenSuccessAt
        failures = health.failures.filter { wallClock - $0.lastAt < ClientFailure.shownFor }
    }

    /// Makes the state from the stored health.
    package init(id: String, stored: [UInt8]?, maxRate: Double, at lease: LeaseTime, wallClock: Timestamp) {
        let health = ClientHealth(stored: stored, epoch: lease.epoch)
        var pacer = Pacer(maxRate: maxRate)
        pacer.limits = health.limits
        self.init(id: id, health: health, pacer: pacer, at: lease.instant, wallClock: wallClock)
    }

    /// The code of the reason why requests stopped, or `nil` while they are sent.
    package var breakerReason: String? { breaker.opening?.reason.code }
}
