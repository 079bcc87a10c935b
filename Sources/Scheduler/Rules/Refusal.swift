import Base
import Storage

/// An answer that ends or suspends its grant, with the facts by which it is believed or doubted.
///
///     let refusal = Refusal(.invalidGrant, ending: .disconnected, in: context)
///     refusal.rate                 // .unusual: more than this client's usual refusals
///     refusal.isRepeated           // false: it is the grant's first refusal
///     refusal.nextConfirmation     // in five minutes
struct Refusal {
    /// The state of the grant once the refusal is believed.
    enum Ending {
        case disconnected
        case reauthRequired
        case suspended

        var state: GrantState {
            switch self {
            case .disconnected: .disconnected
            case .reauthRequired: .reauthRequired
            case .suspended: .suspended
            }
        }
    }

    let reason: GrantReason
    let ending: Ending
    /// The grant about which the rules decide (``DecisionContext``).
    let grant: Grant
    let now: Timestamp
    /// `true` if the grant is in doubt because of an earlier refusal.
    let isRepeated: Bool
    /// The time of the refusal that began the doubt, which is this one if the grant is not in doubt.
    let firstAt: Timestamp
    /// How many refusals the client gets, compared with its usual rate.
    let rate: RefusalRate.Level
    /// `true` if a wave was seen since the grant is in doubt, or at most ``ClientHealth/waveReach`` earlier, and was
    /// not over before this refusal.
    ///
    /// The rate counts first refusals. Once all grants of a fault are in doubt there are none, and the rate is as usual
    /// long before the fault is over.
    let isOfUnendedWave: Bool
    /// The grants that the same wave ended before it was recognised.
    let recalls: [GrantID]
    /// The client's health, in which this refusal is counted.
    let health: ClientHealth

    init(_ reason: GrantReason, ending: Ending, in context: DecisionContext) {
        self.reason = reason
        self.ending = ending
        grant = context.grant
        now = context.now
        isRepeated = grant.isInDoubt
        firstAt = Self.firstRefusal(of: grant, at: now)

        // Only first refusals count: the retry of a grant in doubt must not prolong the wave that it waits for.
        var health = isRepeated ? context.health : context.healthRecordingAnswer(isRefusal: true)
        // The refusal of a grant that never worked is not recorded. It counts only in the decision about that grant.
        let isUncounted = !grant.isProven && now - firstAt < RefusalRate.span
        rate = health.level(at: now, uncounted: isUncounted ? 1 : 0)
        switch rate {
        case .usual, .unusual:
            recalls = []
        case .wave:
            recalls = health.takeUnconfirmedEnds(at: now)
            // First refusals of proven grants show that the fault goes on, whoever has worked again before. A worker of
            // an earlier version can have dropped the wave.
            let isNew = !isRepeated && grant.isProven
            if isNew || health.lastWave == nil { health.lastWave = ClientHealth.Wave(lastRefusalAt: now) }
        }
        // By the health as it was before this refusal.
        isOfUnendedWave = isRepeated && health.hasUnendedWave(around: firstAt)
        if grant.isConfirmation(at: now), grant.isProven { health.lastWave?.recordRefusal() }
        self.health = health
    }

    private static func firstRefusal(of grant: Grant, at now: Timestamp) -> Timestamp {
        guard let inDoubtSince = grant.inDoubtSince else { return now }
        // A time in the future was stored before the clock was set back.
        return min(inDoubtSince, now)
    }
}

extension Refusal {
    /// The time of the confirmation that this refusal came before, because a caller asked for a token.
    var pendingConfirmation: Timestamp? { grant.pendingConfirmation(at: now) }

    /// `true` while another worker might hold the answer that spent the token, and not reach the database.
    var answerMightBeElsewhere: Bool {
        // A time in the future was stored before the clock was set back.
        guard reason == .answerLost, let lostAt = grant.answerLostAt, lostAt <= now else { return false }
        return now - lostAt < RefreshRules.maximumLostResponseWait
    }

    /// `true` once the grant was in doubt for as long as a user who left can show as connected.
    var doubtIsOver: Bool { isRepeated && now - firstAt >= RefreshRules.maximumDoubt }

    /// The time of the next confirmation.
    var nextConfirmation: Timestamp {
        for span in RefreshRules.confirmationTimes where now - firstAt < span {
            return firstAt + span
        }
        return now + RefreshRules.firstConfirmationAfter
    }
}
