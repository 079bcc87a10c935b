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
    /// `true` in a wave of refusals.
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
        if let pausedUntil = pacer.limits.pausedUntil, pacer.isPaused(at: now) { pause = pausedUntil - now }
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

/// What keeps the grants of a client from being refreshed.
extension ClientStatus {
    /// An older failure says nothing about now.
    private static let maximumAge: Duration = .seconds(60)

    /// The endpoint's last failure, unless a success or a long time has followed.
    private func currentFailure(at now: Timestamp) -> ClientFailure? {
        guard let failure = failures.first(where: { $0.isOfEndpoint || $0.code == breakerReason }) else { return nil }
        if breakerReason != nil { return failure }
        if let lastSuccessAt, lastSuccessAt > failure.lastAt { return nil }
        return now - failure.lastAt <= Self.maximumAge ? failure : nil
    }

    /// What the endpoint answers now instead of tokens, as in `HTTP 503 since 2026-11-29T17:59:52Z`.
    package func answer(at now: Timestamp) -> String? {
        guard let failure = currentFailure(at: now) else { return nil }
        let name = failure.status == nil ? "no answer (\(failure.code))" : failure.name
        return "\(name) since \(failure.since.iso8601Seconds)"
    }

    /// `true` if a service that needs a new token now gets an error.
    package func isBlocked(at now: Timestamp) -> Bool {
        breakerReason != nil || pause != nil || currentFailure(at: now) != nil
    }

    /// Why nothing is sent, and until when, or `nil` while requests are sent.
    package func obstacle(at now: Timestamp) -> String? {
        let answer = answer(at: now)
        var parts: [String] = []
        if let reason = breakerReason {
            if let answer {
                parts.append(answer)
            } else if let breakerSince {
                parts.append("\(reason) since \(breakerSince.iso8601Seconds)")
            } else {
                parts.append(reason)
            }
            if let nextProbe { parts.append("next try in \(nextProbe.inTwoUnits)") }
        } else if let pause {
            if let answer { parts.append(answer) }
            parts.append("a pause of \(pause.inTwoUnits) more")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
}

extension ClientStatus {
    /// Why a grant that needs a refresh now gets none, or `nil` if it needs none or is refreshed.
    package func wait(of grant: Grant, at now: Timestamp) -> String? {
        guard grant.needsRefresh(at: now), let obstacle = obstacle(at: now) else { return nil }
        return "waits: nothing is sent for its client (\(obstacle))"
    }
}

extension Grant {
    /// `true` if a refresh is due or was refused, or if services have no valid token.
    package func needsRefresh(at now: Timestamp) -> Bool {
        guard let dueAt else { return false }
        if dueAt <= now || state == .retrying { return true }
        guard let accessToken else { return true }
        return accessToken.expiresAt <= now
    }
}
